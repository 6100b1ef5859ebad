import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { httpClient, type ConformanceFetch } from '../../conformance/http-client.ts';
import { cdkOn } from './cdk.ts';
import { signAws } from '../../conformance/sigv4.ts';
import { startCountedLocalStack, type CountedEmulator } from './kms-counter.ts';
import { leaveBootstrap } from './sdk-stacks.ts';
import { startFunctionUrls, type FunctionUrls } from '../lambda/function-urls.ts';
import { byTier } from '../determinism/tier.ts';
import { temporaryFolder } from '../processes/processes.ts';
import { clusterPath } from '../stack/stack.ts';

/** Cluster `demo` behind a Function URL, deployed by the ordinary `cdk` into a LocalStack of its own. */
export interface Deployment extends CountedEmulator {
  /** Of the sign endpoint, without path. Its front knows its callers, which LocalStack's own Function URL does not. */
  readonly url: string;
  /** Likewise of the attest endpoint, where machines prove themselves. */
  readonly attestUrl: string;
  /** Finds these endpoints, whose names not every resolver knows, and calls as the caller role. */
  readonly fetch: ConformanceFetch;
  /** For a relay: who it is to them. */
  readonly relayEnvironment: Readonly<Record<string, string>>;
  /** Types of resources that LocalStack does not know and took for made. */
  readonly passedOver: readonly string[];
  /** Of the service stack. */
  readonly outputs: Readonly<Record<string, string>>;
  /** Path of its countersign.yaml. */
  readonly configurationFile: string;
  /** Again, from a countersign.yaml that says something else. Resolves to the outputs there are then. */
  deployAgain(change: (configuration: string) => string): Promise<Readonly<Record<string, string>>>;
}

/** The CA has the name that the dev server gives its own. */
const configuration = `version: 1
clusters:
  demo:
    cas:
      ca: { subject: { commonName: demo ca } }
    profiles:
      kubernetes.io/kube-apiserver-client: { ca: ca, maxTtl: 1d }
      kubernetes.io/kube-apiserver-client-kubelet: { ca: ca, maxTtl: 1d }
      kubernetes.io/kubelet-serving: { ca: ca, maxTtl: 1d }
    # HTTP APIs exist in LocalStack by name only.
    frontDoor: functionUrl
    access:
      iam: { principals: ['arn:aws:iam::000000000000:role/relay'] }
    aws: { account: '000000000000', region: eu-central-1 }
`;

export async function deployOnLocalStack(
  options: {
    /** Of countersign.yaml, from the beginning. */
    readonly change?: (configuration: string) => string;
    /** Environment variables that its functions find besides. */
    readonly functions?: Readonly<Record<string, string>>;
  } = {},
): Promise<Deployment> {
  const { change: first = (text) => text, functions } = options;
  const folder = temporaryFolder('deployment');
  let stack: CountedEmulator | undefined;
  let urls: FunctionUrls | undefined;
  try {
    const file = join(folder.path, 'countersign.yaml');
    writeFileSync(file, first(configuration));
    const counted = (stack = await startCountedLocalStack(functions));
    const cdk = cdkOn(counted.emulator, { configuration: file, folder: folder.path });
    const bucket = `cdk-hnb659fds-assets-000000000000-${counted.emulator.client.region}`;
    // The default tier makes what the command leaves: the command takes ten seconds.
    await byTier({ default: () => leaveBootstrap(counted.emulator, bucket), deep: () => cdk.bootstrap() })();
    const { 'countersign-demo': outputs = {} } = await cdk.deploy();
    const front = (urls = await startFunctionUrls(counted.emulator, 'demo'));
    const client = httpClient({
      connect: { host: '127.0.0.1', port: front.port },
      authorize: signAws({ region: counted.emulator.client.region, credentials: front.credentials }),
    });
    return {
      ...counted,
      url: front.sign,
      attestUrl: `${front.attest}${clusterPath}`,
      fetch: client.fetch,
      relayEnvironment: front.relayEnvironment,
      passedOver: passedOver(counted.emulator.logTail(10_000)),
      outputs,
      configurationFile: file,
      async deployAgain(change) {
        writeFileSync(file, change(first(configuration)));
        return (await cdk.deploy())['countersign-demo'] ?? {};
      },
      async stop() {
        client.close();
        await front.close();
        await counted.stop();
        folder.remove();
      },
    };
  } catch (error) {
    await urls?.close();
    await stack?.stop();
    folder.remove();
    throw error;
  }
}

function passedOver(log: string): string[] {
  const types = log.matchAll(/No resource provider found for "([^"]+)"/g);
  return [...new Set([...types].map(([, type = '']) => type))].toSorted();
}
