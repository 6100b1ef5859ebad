/** `kubelet-authenticator join`: finds the cluster, verifies it, and writes the files that the kubelet needs to log in. */
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { isSea } from 'node:sea';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from '../../adapters/kubernetes/transport.ts';
import { oneLine, withoutHidden } from '../../core/outcome/printable-text.ts';
import type { FlagDependencies } from './cluster-flags.ts';
import { kubeadmPatience, maxAnswerBytes } from './server-calls.ts';
import type { DiscoveryDependencies, Patience } from './server-calls.ts';
import { conflicts, joinFiles, placesOf, writeFiles } from './join-files.ts';
import type { JoinFile } from './join-files.ts';
import { planOf } from './join-flags.ts';
import type { JoinPlan } from './join-flags.ts';
import { joinHelp } from './join-options.ts';
import { joinExits } from './stop.ts';
import type { Stop } from './stop.ts';
import { readGivenFile } from '../files/own-files.ts';
import type { Settings } from '../settings/settings.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface JoinDependencies extends DiscoveryDependencies, FlagDependencies {
  out(text: string): void;
  err(text: string): void;
  readonly patience: Patience;
}

export function processDependencies(): JoinDependencies {
  const err = (text: string): void => void process.stderr.write(text);
  return {
    out: (text) => void process.stdout.write(text),
    err,
    log: (line) => err(`kubelet-authenticator: ${line}\n`),
    readText: readGivenFile,
    hostname,
    // A single executable: its own path (argv[1] is only the word in the command line). Otherwise the script that Node runs.
    program: isSea() ? process.execPath : resolve(process.argv[1] ?? process.execPath),
    sleep: (milliseconds) => sleep(milliseconds),
    monotonic: () => performance.now(),
    patience: kubeadmPatience,
    async call(server, caPem, { bearer, ...call }) {
      const trust = caPem === undefined ? { rejectUnauthorized: false } : { ca: caPem, rejectUnauthorized: true };
      const headers = bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } };
      const transport = createTransport(new URL(server), () => Promise.resolve({ ...trust, ...headers }));
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
    out: (text) => given.out(withoutHidden(text)),
    err: (text) => given.err(withoutHidden(text)),
    log: (line) => given.log(oneLine(line)),
  };
  const plan = planOf(argv, dependencies);
  if ('help' in plan) {
    dependencies.out(joinHelp);
    return joinExits.ok;
  }
  const stop = 'exit' in plan ? plan : await join(plan, dependencies);
  if (stop === undefined) return joinExits.ok;
  dependencies.err(`kubelet-authenticator: ${stop.message}\n`);
  if (stop.hint !== undefined) dependencies.err(`kubelet-authenticator: ${stop.hint}\n`);
  return stop.exit;
}

async function join(plan: JoinPlan, dependencies: JoinDependencies): Promise<Stop | undefined> {
  const { serving, directory, command, dryRun, force, timeoutSeconds } = plan;
  const reachMilliseconds = Math.min(timeoutSeconds * 1_000, dependencies.patience.reachMilliseconds);
  const signatureMilliseconds = Math.min(reachMilliseconds, dependencies.patience.signatureMilliseconds);
  const found = await plan.discover(dependencies, {
    ...dependencies.patience,
    reachMilliseconds,
    signatureMilliseconds,
  });
  if (!found.ok) {
    const exit = found.why === 'Unreachable' ? joinExits.temporary : joinExits.refused;
    return {
      exit,
      message: `${found.message} [${found.why}]`,
      ...(found.hint === undefined ? {} : { hint: found.hint }),
    };
  }
  dependencies.log(`the cluster is ${found.server}, its CA ${found.pins.join(', ')}`);
  for (const warning of found.warnings) dependencies.log(`warning: ${warning}`);
  const settings = plan.settings(found.server);
  if ('exit' in settings) return settings;

  const files = joinFiles(settings, found.caPem, plan.loginToken, serving, { directory, command });
  if (dryRun) {
    for (const file of files) dependencies.out(shown(file));
    return undefined;
  }
  try {
    const existing = force ? [] : conflicts(files);
    if (existing.length > 0)
      return {
        exit: joinExits.conflict,
        message: `these files exist with other content; no file was written: ${existing.join(', ')}`,
        hint: 'this machine may have joined a cluster before (kubeadm reset); --force overwrites them',
      };
    writeFiles(files, force);
  } catch (error) {
    return {
      exit: joinExits.configuration,
      message: `cannot write: ${errorMessage(error)}`,
    };
  }
  for (const { path } of files) dependencies.log(`wrote ${path}`);
  dependencies.out(nextSteps(settings, plan, dependencies));
  return undefined;
}

/** The kubelet's flags. The command does not start the kubelet. */
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

function shown({ path, mode, text, secret }: JoinFile): string {
  return `# ${path} (${mode.toString(8).padStart(4, '0')})\n${secret === true ? '# (the bootstrap token)\n' : text}\n`;
}
