import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inContinuousIntegration } from '../../../tools/tools.ts';

/*
 * What the image would be, as far as a machine without base images can have it: a root that holds Node, the shared
 * libraries it is linked with, the bundle, and nothing else, mounted read-only in a mount namespace of its own, with the
 * service account's files where a kubelet puts them. Not simulated: the user id and seccomp (the network is the host's).
 */

export interface Container {
  readonly command: string;
  args(...words: readonly string[]): string[];
}

/** As a user without rights too, where the kernel lets users have namespaces of their own. */
export function namespacesMissing(): boolean {
  const probe = spawnSync('unshare', ['--map-root-user', '--mount', 'true']);
  if (probe.status === 0) return false;
  if (inContinuousIntegration()) throw new Error('CI must be able to `unshare --map-root-user --mount`');
  console.warn('Skipped: this machine does not permit unsharing a mount namespace');
  return true;
}

const mountAndEnter = `
set -eu
root=$1 node=$2; shift 2
mount --bind "$root" "$root"
cd "$root"
mount --bind "$node" usr/local/bin/node
mount --rbind /proc proc
mount -o remount,bind,ro .
exec chroot . "$@"
`;

export function container(options: {
  /** An empty folder of the test's. */
  root: string;
  /** Absolute path in the container → file here. */
  files: Readonly<Record<string, string>>;
  /** Absolute path in the container → content. */
  texts?: Readonly<Record<string, string>>;
}): Container {
  const { root } = options;
  const place = (path: string): string => {
    const target = join(root, path);
    mkdirSync(dirname(target), { recursive: true });
    return target;
  };
  mkdirSync(join(root, 'proc'), { recursive: true });
  writeFileSync(place('/usr/local/bin/node'), '');
  for (const library of libraries(process.execPath)) copyFileSync(library, place(library));
  for (const [path, file] of Object.entries(options.files)) copyFileSync(file, place(path));
  for (const [path, text] of Object.entries(options.texts ?? {})) writeFileSync(place(path), text);
  return {
    command: 'unshare',
    args: (...words) => [
      '--map-root-user',
      '--mount',
      'sh',
      '-c',
      mountAndEnter,
      'sh',
      root,
      process.execPath,
      ...words,
    ],
  };
}

/** What a distroless `cc` image brings: libc, libm, libdl, libpthread, libgcc, libstdc++ and the loader. */
export function libraries(program: string): string[] {
  const text = execFileSync('ldd', [program], { encoding: 'utf8' });
  return [...text.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path]) => path!);
}
