/** `kubelet-authenticator join`: finds the cluster, verifies it, and writes the files that the kubelet needs to log in. */
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { isSea } from 'node:sea';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from '../../adapters/kubernetes/transport.ts';
import { oneLine, escapeHidden } from '../../core/outcome/printable-text.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import type { FlagDependencies } from './cluster-flags.ts';
import { kubeadmPatience, maxAnswerBytes } from './server-calls.ts';
import type { DiscoveryDependencies } from './server-calls.ts';
import { conflicts, joinFiles, placesOf, writeFiles } from './join-files.ts';
import type { JoinFile } from './join-files.ts';
import { planOf } from './join-flags.ts';
import type { JoinPlan } from './join-flags.ts';
import { joinHelp } from './join-options.ts';
import { configuration, joinExits } from './stop.ts';
import type { Stop } from './stop.ts';
import { readGivenFile } from '../files/own-files.ts';
import type { Settings } from '../settings/settings.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface JoinDependencies extends DiscoveryDependencies, FlagDependencies {
  out(text: string): void;
  err(text: string): void;
}

export function processDependencies(): JoinDependencies {
  const err = (text: string): void => void process.stderr.write(text);
  return {
    out: (text) => void process.stdout.write(text),
    err,
    log: (line) => err(`kubelet-authenticator: ${line}\n`),
    readText: readGivenFile,
    hostname,
    // For a single executable its own path, since argv[1] is only the word in the command line. Otherwise the script that Node runs.
    program: isSea() ? process.execPath : resolve(process.argv[1] ?? process.execPath),
    sleep: (milliseconds) => sleep(milliseconds),
    monotonic: () => performance.now(),
    patience: kubeadmPatience,
    async call(server, caPem, { bearer, clientCertificate: own, ...call }) {
      const trust = caPem === undefined ? { rejectUnauthorized: false } : { ca: caPem, rejectUnauthorized: true };
      const headers = bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } };
      const certificate = own === undefined ? {} : { cert: own.certificatePem, key: own.keyPem };
      const transport = createTransport(new URL(server), () =>
        Promise.resolve({ ...trust, ...headers, ...certificate }),
      );
      try {
        return await transport.call({
          ...call,
          signal: AbortSignal.timeout(callMilliseconds),
          timeoutMilliseconds: callMilliseconds,
          maxBytes: maxAnswerBytes,
        });
      } finally {
        transport.close();
      }
    },
  };
}

const callMilliseconds = 10_000;

export async function joinCommand(
  argv: readonly string[],
  given: JoinDependencies = processDependencies(),
): Promise<number> {
  // Messages may quote the answer of a server that is not verified yet.
  const dependencies: JoinDependencies = {
    ...given,
    out: (text) => given.out(escapeHidden(text)),
    err: (text) => given.err(escapeHidden(text)),
    log: (line) => given.log(oneLine(line)),
  };
  const plan = planOf(argv, dependencies);
  let result: Result<string, Stop>;
  if (!plan.ok) result = plan;
  else result = plan.value === undefined ? success(joinHelp) : await join(plan.value, dependencies);
  if (result.ok) {
    dependencies.out(result.value);
    return joinExits.ok;
  }
  const { exit, message, hint } = result.problem;
  for (const line of [message, hint]) if (line !== undefined) dependencies.err(`kubelet-authenticator: ${line}\n`);
  return exit;
}

/** Returns the text to print. */
async function join(plan: JoinPlan, dependencies: JoinDependencies): Promise<Result<string, Stop>> {
  const { force } = plan;
  const limited = (milliseconds: number): number => Math.min(milliseconds, plan.timeoutSeconds * 1_000);
  const patience = {
    ...dependencies.patience,
    reachMilliseconds: limited(dependencies.patience.reachMilliseconds),
    signatureMilliseconds: limited(dependencies.patience.signatureMilliseconds),
  };
  const found = await plan.discover({ ...dependencies, patience });
  if (!found.ok) {
    const { why, message, hint } = found.problem;
    const exit = why === 'Unreachable' ? joinExits.temporary : joinExits.refused;
    return failure({ exit, message: `${message} [${why}]`, hint });
  }
  const { server, caPem, pins, warnings } = found.value;
  dependencies.log(`the cluster is ${server}, its CA ${pins.join(', ')}`);
  for (const warning of warnings) dependencies.log(`warning: ${warning}`);
  const settings = plan.settings(server);
  if (!settings.ok) return settings;

  const files = joinFiles(settings.value, caPem, plan.login, plan.serving, plan);
  if (plan.dryRun) return success(files.map(fileText).join(''));
  try {
    const existing = force ? [] : conflicts(files);
    if (existing.length > 0)
      return failure({
        exit: joinExits.conflict,
        message: `these files exist with other content; no file was written: ${existing.join(', ')}`,
        hint: 'this machine may have joined a cluster before (kubeadm reset); --force overwrites them',
      });
    writeFiles(files, force);
  } catch (error) {
    return configuration(`cannot write: ${errorMessage(error)}`);
  }
  for (const { path } of files) dependencies.log(`wrote ${path}`);
  return success(nextSteps(settings.value, plan, dependencies));
}

/** Tells the operator how to start the kubelet. The command does not start it. */
function nextSteps({ nodeName }: Settings, { directory, serving }: JoinPlan, dependencies: JoinDependencies): string {
  const { kubeconfig, dropIn } = placesOf(directory);
  const override = nodeName === dependencies.hostname().toLowerCase() ? '' : ` --hostname-override=${nodeName}`;
  const attested =
    serving === 'attested'
      ? '\nStart kubelet-authenticator serving --watch before the kubelet, and keep it running.'
      : '';
  return `Start the kubelet with --kubeconfig=${kubeconfig} --config-dir=${dirname(dropIn)}${override}
and without --bootstrap-kubeconfig: with it the kubelet would request its certificate itself, without evidence.${attested}
`;
}

function fileText({ path, mode, text, secret }: JoinFile): string {
  return `# ${path} (${mode.toString(8).padStart(4, '0')})\n${secret === true ? '# (the bootstrap token)\n' : text}\n`;
}
