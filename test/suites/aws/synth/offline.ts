/** Programs in a network namespace of their own, in which not even loopback is up: https://man7.org/linux/man-pages/man1/unshare.1.html */
import { spawnSync } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { compileCache } from '../../../harness/processes/processes.ts';

export const root = resolve(import.meta.dirname, '../../../..');

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Root may leave the network; others may where the kernel lets them be root of a namespace of their own. */
const unshare = ['-n', '-rn'].find((flags) => spawnSync('unshare', [flags, 'true']).status === 0);
// In CI a suite that cannot run has failed: without the skip every test here does.
export const skipped = unshare === undefined && process.env['CI'] === undefined;

/** The variables that npm needs. */
export const npm = { PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin` };

/** Without a network, and with these variables only, beside the folder of Node's compile cache. */
export function alone(command: readonly string[], variables: Readonly<Record<string, string>>, cwd = root): Ran {
  const settings = Object.entries({ ...compileCache(), ...variables }).map(([name, value]) => `${name}=${value}`);
  const { status, stdout, stderr, error } = spawnSync(
    'unshare',
    [unshare ?? '-n', 'env', '-i', ...settings, ...command],
    {
      cwd,
      encoding: 'utf8',
      timeout: 100_000,
    },
  );
  if (error !== undefined) throw error;
  return { code: status, out: stdout, err: stderr };
}
