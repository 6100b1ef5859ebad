/** `kubelet-authenticator join`: finds the cluster, makes sure of it, and writes what the kubelet needs to come in. */
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { isSea } from 'node:sea';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from '../../adapters/kubernetes/transport.ts';
import { oneLine, withoutHidden } from '../../core/outcome/printable-text.ts';
import { kubeadmPatience, maxAnswerBytes } from './discovery.ts';
import type { DiscoveryWorld, Patience } from './discovery.ts';
import { conflicts, joinFiles, placesOf, writeFiles } from './join-files.ts';
import type { JoinFile } from './join-files.ts';
import { joinExits, joinHelp, planOf } from './join-flags.ts';
import type { FlagWorld, JoinPlan, Stop } from './join-flags.ts';
import { readGivenFile } from '../files/own-files.ts';
import type { Settings } from '../settings/settings.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface JoinWorld extends DiscoveryWorld, FlagWorld {
  out(text: string): void;
  err(text: string): void;
  readonly patience: Patience;
}

export function processJoinWorld(): JoinWorld {
  const err = (text: string): void => void process.stderr.write(text);
  return {
    out: (text) => void process.stdout.write(text),
    err,
    say: (line) => err(`kubelet-authenticator: ${line}\n`),
    readText: readGivenFile,
    hostname,
    // A single executable is itself (its argv[1] is only what the shell was told); else this is Node, running a script.
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

export async function joinCommand(argv: readonly string[], given: JoinWorld = processJoinWorld()): Promise<number> {
  // Messages quote what a server that nobody vouches for yet has said.
  const world: JoinWorld = {
    ...given,
    out: (text) => given.out(withoutHidden(text)),
    err: (text) => given.err(withoutHidden(text)),
    say: (line) => given.say(oneLine(line)),
  };
  const plan = planOf(argv, world);
  if ('help' in plan) {
    world.out(joinHelp);
    return joinExits.ok;
  }
  const stop = 'exit' in plan ? plan : await join(plan, world);
  if (stop === undefined) return joinExits.ok;
  world.err(`kubelet-authenticator: ${stop.message}\n`);
  if (stop.hint !== undefined) world.err(`kubelet-authenticator: ${stop.hint}\n`);
  return stop.exit;
}

async function join(plan: JoinPlan, world: JoinWorld): Promise<Stop | undefined> {
  const { serving, directory, command, dryRun, force, timeoutSeconds } = plan;
  const reachMilliseconds = Math.min(timeoutSeconds * 1_000, world.patience.reachMilliseconds);
  const signatureMilliseconds = Math.min(reachMilliseconds, world.patience.signatureMilliseconds);
  const found = await plan.discover(world, { ...world.patience, reachMilliseconds, signatureMilliseconds });
  if (!found.ok) {
    const exit = found.why === 'Unreachable' ? joinExits.temporary : joinExits.refused;
    return {
      exit,
      message: `${found.message} [${found.why}]`,
      ...(found.hint === undefined ? {} : { hint: found.hint }),
    };
  }
  world.say(`the cluster is ${found.server}, its CA ${found.pins.join(', ')}`);
  for (const warning of found.warnings) world.say(`warning: ${warning}`);
  const settings = plan.settings(found.server);
  if ('exit' in settings) return settings;

  const files = joinFiles(settings, found.caPem, plan.loginToken, serving, { directory, command });
  if (dryRun) {
    for (const file of files) world.out(shown(file));
    return undefined;
  }
  try {
    const there = force ? [] : conflicts(files);
    if (there.length > 0)
      return {
        exit: joinExits.conflict,
        message: `there already, and nothing was written: ${there.join(', ')}`,
        hint: 'this machine may have joined a cluster before (kubeadm reset); --force overwrites them',
      };
    writeFiles(files, force);
  } catch (error) {
    return {
      exit: joinExits.configuration,
      message: `cannot write: ${errorMessage(error)}`,
    };
  }
  for (const { path } of files) world.say(`wrote ${path}`);
  world.out(nextSteps(settings, plan, world));
  return undefined;
}

/** Pointed at the kubelet's own flags: nothing here can start it. */
function nextSteps({ nodeName }: Settings, { directory, serving }: JoinPlan, world: JoinWorld): string {
  const { kubeconfig, dropIn } = placesOf(directory);
  const override = nodeName === world.hostname().toLowerCase() ? '' : ` --hostname-override=${nodeName}`;
  const attested =
    serving === 'attested' ? '\nBefore it, and then all the time: kubelet-authenticator serving --watch' : '';
  return `Start the kubelet with --kubeconfig=${kubeconfig} --config-dir=${dirname(dropIn)}${override}
and without --bootstrap-kubeconfig: with it the kubelet would ask for its certificate by itself.${attested}
`;
}

function shown({ path, mode, text, secret }: JoinFile): string {
  return `# ${path} (${mode.toString(8).padStart(4, '0')})\n${secret === true ? '# (the bootstrap token)\n' : text}\n`;
}
