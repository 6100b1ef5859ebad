/** A registry and a containerd of the test's own, on loopback and in its folder. */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasDebianMirror, offeredPackages, pinnedPackages } from '../../../deploy/image/debian.ts';
import { startOnFreePort } from '../../harness/kubernetes/control-plane-servers.ts';
import { startProcess, waitUntilReady, type RunningProcess } from '../../harness/processes/processes.ts';
import { toolPath } from '../../tools/tools.ts';

/** The images have Debian's libraries, which apt fetches from a mirror of Debian. Another system has none, in CI too. */
export function noDebian(): boolean {
  if (hasDebianMirror()) return false;
  console.warn('Skipped: images are made on Debian, with apt');
  return true;
}

/**
 * A file like packages.json, with the versions of today's mirror where it does not offer the pinned one any more: Debian replaces
 * packages at any time, and that is no fault of the program under test.
 */
export function availablePackages(folder: string): string {
  const pinned = pinnedPackages();
  const packages = offeredPackages().map(
    (offered) =>
      pinned.find(
        ({ name, architecture, version }) =>
          name === offered.name && architecture === offered.architecture && version === offered.version,
      ) ?? offered,
  );
  const file = join(folder, 'packages.json');
  writeFileSync(file, JSON.stringify(packages));
  return file;
}

export interface Registry {
  /** `127.0.0.1:PORT` */
  readonly host: string;
  stop(): Promise<void>;
}

/** What it is given is gone when it stops. */
export async function startRegistry(folder: string): Promise<Registry> {
  const crane = await toolPath('crane');
  const running: RunningProcess[] = [];
  const { port } = await startOnFreePort(running, (free) => {
    const server = startProcess({
      name: 'registry',
      command: crane,
      args: ['registry', 'serve', '--address', `127.0.0.1:${free}`],
      logPath: join(folder, `registry-${free}.log`),
    });
    const url = `http://127.0.0.1:${free}/v2/`;
    return Promise.resolve({ server, url, ready: () => waitUntilReady(server, async () => (await fetch(url)).ok) });
  });
  return { host: `127.0.0.1:${port}`, stop: async () => running[0]?.stop() };
}

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function run(file: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Ran> {
  return new Promise((done) => {
    const options = { env, timeout: 1_200_000, maxBuffer: 64 * 1_048_576 };
    const child = execFile(file, args, options, (_, stdout, stderr) => done({ code: child.exitCode, stdout, stderr }));
  });
}

/** Throws with what the program said if it failed. */
export async function must(file: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> {
  const { code, stdout, stderr } = await run(file, args, env);
  if (code !== 0) throw new Error(`${file} ${args.join(' ')}: exit code ${code}\n${stderr}`);
  return stdout;
}

export interface Containerd {
  /** `ctr` with these arguments. */
  ctr(args: readonly string[]): Promise<Ran>;
  stop(): Promise<void>;
}

/** Its mounts are in a mount namespace of its own, which ends with it. */
export async function startContainerd(folder: string): Promise<Containerd> {
  const dir = join(folder, 'containerd');
  mkdirSync(dir);
  const socket = join(dir, 'containerd.sock');
  const settings = [
    'version = 2',
    `root = "${join(dir, 'root')}"`,
    `state = "${join(dir, 'state')}"`,
    // No kubelet calls it, and the second one makes /opt/containerd.
    'disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]',
    '[grpc]',
    `address = "${socket}"`,
    '[ttrpc]',
    `address = "${socket}.ttrpc"`,
  ];
  writeFileSync(join(dir, 'containerd.toml'), `${settings.join('\n')}\n`);
  const server: RunningProcess = startProcess({
    name: 'containerd',
    command: 'unshare',
    args: ['--mount', '--propagation', 'private', 'containerd', '--config', join(dir, 'containerd.toml')],
    logPath: join(dir, 'log'),
  });
  await waitUntilReady(server, () => existsSync(socket) && execFileSync('ctr', ['-a', socket, 'version']).length > 0);
  return {
    ctr: (args) => run('ctr', ['--address', socket, ...args]),
    stop: () => server.stop(),
  };
}
