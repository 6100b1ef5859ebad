/**
 * Countersign as `cdk deploy` makes it, in a LocalStack on this machine: the real functions behind a Function URL, their
 * tables and keys emulated, and the relay that calls them. This measures an emulator, which runs on the same processors
 * as everything else: docs/internals/performance.md says what these numbers show.
 */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { deployOnLocalStack } from '../../test/harness/aws/deployment.ts';
import { signOperation } from '../../test/harness/aws/kms-counter.ts';
import { clusterPath } from '../../test/harness/stack/stack.ts';
import { ensureTool } from '../../test/tools/tools.ts';
import { attestationOf, attestedSigner } from './fake-aws.ts';
import type { FakeAws } from './fake-aws.ts';
import { descendants } from '../measure/process-usage.ts';
import type { ProcessGroup } from '../measure/process-usage.ts';

/** The cluster in its countersign.yaml. */
export const deployedCluster = 'demo';

export interface LocalStackDeployment {
  /** The relay's arguments: the sign function's URL; and its environment: the caller's credentials. */
  readonly relayArgs: readonly string[];
  readonly relayEnvironment: Readonly<Record<string, string>>;
  /** The first call deploys again with attestation. Returns the further arguments of a relay that approves. */
  readonly requireAttestation: () => Promise<readonly string[]>;
  readonly caPem: string;
  /** The processes of the Lambda functions, and those of LocalStack itself. */
  readonly handlers: ProcessGroup;
  readonly emulator: ProcessGroup;
  /** How long KMS signed between two moments of performance.now(), in milliseconds. */
  readonly kmsMilliseconds: (from: number, to: number) => number;
  stop(): Promise<void>;
}

/** Why LocalStack cannot be started on this machine, in a sentence; undefined when it can. */
export async function missingForLocalStack(): Promise<string | undefined> {
  if (process.env['AWS_ENDPOINT_URL'])
    return 'AWS_ENDPOINT_URL names another emulator, whose processes the bench cannot measure';
  for (const name of ['localstack', 'dynamodb-local'] as const) {
    const tool = await ensureTool(name);
    if ('missing' in tool) return tool.missing;
  }
  const path = (process.env['PATH'] ?? '').split(delimiter);
  if (!path.some((folder) => existsSync(join(folder, 'java')))) return 'LocalStack’s DynamoDB needs Java';
  return undefined;
}

/** Takes half a minute. LocalStack starts a process for each concurrent call, so the relay's concurrency is low. */
export async function deployLocalStack(aws: FakeAws): Promise<LocalStackDeployment> {
  const deployment = await deployOnLocalStack({ functions: aws.environment });
  let attested: Promise<readonly string[]> | undefined;
  try {
    const { url, attestUrl, configurationFile, kms } = deployment;
    const answer = await deployment.fetch(`${url}${clusterPath}/trust-bundle`, {
      method: 'GET',
      headers: {},
      signal: AbortSignal.timeout(60_000),
      redirect: 'manual',
    });
    const caPem = Buffer.from(await answer.arrayBuffer()).toString('utf8');
    if (answer.status !== 200) throw new Error(`trust-bundle: ${answer.status} ${caPem}`);
    const relayArgs = [`--url=${url}${clusterPath}`, '--concurrency=4'];
    return {
      relayArgs,
      relayEnvironment: deployment.relayEnvironment,
      requireAttestation() {
        attested ??= deployment
          .deployAgain((configuration) => withAttestation(configuration, aws))
          .then(() => [`--config=${configurationFile}`, `--attest-url=${attestUrl}`]);
        return attested;
      },
      caPem,
      handlers: { name: 'functions', pids: () => processes().handlers },
      emulator: { name: 'LocalStack', pids: () => processes().emulator },
      kmsMilliseconds: (from, to) =>
        kms.calls
          .filter(({ operation, begun }) => operation === signOperation && begun >= from && begun <= to)
          .reduce((sum, { begun, answered = begun }) => sum + answered - begun, 0),
      stop: () => deployment.stop(),
    };
  } catch (error) {
    await deployment.stop();
    throw error;
  }
}

/** Removes the signer that needs no evidence: a cluster must not issue the same names without it. */
function withAttestation(configuration: string, aws: FakeAws): string {
  return configuration
    .replace(
      /^ +kubernetes\.io\/kube-apiserver-client-kubelet: .*$/m,
      `      ${attestedSigner}: { ca: ca, maxTtl: 1d }`,
    )
    .replace(
      '    frontDoor:',
      `    approval: { ${attestedSigner}: approve }\n${attestationOf(aws, deployedCluster)}    frontDoor:`,
    );
}

/** The harness starts LocalStack's Python with this script, which starts Java and a Node process for each function. */
function processes(): { readonly handlers: readonly number[]; readonly emulator: readonly number[] } {
  const server = descendants().find(({ command }) => command.includes('localstack/executor/start.py'));
  if (server === undefined) return { handlers: [], emulator: [] };
  const all = descendants(server.pid);
  const isHandler = ({ command }: { command: string }): boolean => command.includes('localstack/executor/runtime.mjs');
  return {
    handlers: all.filter(isHandler).map(({ pid }) => pid),
    emulator: [server.pid, ...all.filter((each) => !isHandler(each)).map(({ pid }) => pid)],
  };
}
