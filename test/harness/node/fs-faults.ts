/*
 * Loaded into a program under test before it (`node --import`): counts what it does to one folder, and kills it, or says
 * no, at one of these steps. Set by the environment:
 *   FS_FAULTS_FOLDER   the folder; what happens elsewhere is not counted
 *   FS_FAULTS_KILL_AT  SIGKILL instead of step n (from 1); a write is done by half first, as it is when power goes
 *   FS_FAULTS_REFUSE   an error code that every write and every new file gets: ENOSPC, EROFS …
 *   FS_FAULTS_LOG      a file that gets a line per step
 *   CLOCK_AHEAD        milliseconds that Date.now() is ahead; nothing to do with files, and wanted by the same tests
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import process from 'node:process';

const { FS_FAULTS_FOLDER: folder, FS_FAULTS_KILL_AT: killAt, FS_FAULTS_REFUSE: refuse } = process.env;
const { FS_FAULTS_LOG: logFile, CLOCK_AHEAD: ahead } = process.env;

type Call = (...args: unknown[]) => unknown;
const real = { ...fs } as unknown as Record<string, Call>;
const patched = fs as unknown as Record<string, Call>;
const descriptors = new Map<unknown, string>();
let steps = 0;

function place(first: unknown): string | undefined {
  const path = typeof first === 'number' ? descriptors.get(first) : String(first);
  return path !== undefined && folder !== undefined && path.startsWith(folder) ? path : undefined;
}

function step(name: string, args: readonly unknown[]): void {
  const path = place(args[0]);
  if (path === undefined) return;
  steps += 1;
  if (logFile !== undefined) real['appendFileSync']?.(logFile, `${name} ${path.slice(folder?.length)}\n`);
  if (steps === Number(killAt)) {
    if (name === 'writeSync') {
      const bytes = args[1] as Uint8Array;
      real['writeSync']?.(args[0], bytes, 0, Math.floor(bytes.length / 2));
    }
    process.kill(process.pid, 'SIGKILL');
    // The signal is on its way; nothing more may happen.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
  const creates = name === 'mkdirSync' || (name === 'openSync' && /[wax]/.test(String(args[1])));
  if (refuse !== undefined && (creates || name === 'writeSync' || (refuse === 'EROFS' && name === 'unlinkSync')))
    throw Object.assign(new Error(`${refuse}: said by a test, ${name}`), { code: refuse, syscall: name });
}

if (folder !== undefined)
  for (const name of [
    'openSync',
    'writeSync',
    'fsyncSync',
    'closeSync',
    'renameSync',
    'unlinkSync',
    'mkdirSync',
    'readdirSync',
    'readFileSync',
    'truncateSync',
    'chmodSync',
  ])
    patched[name] = (...args) => {
      step(name, args);
      const result = real[name]?.(...args);
      if (name === 'openSync') descriptors.set(result, String(args[0]));
      if (name === 'closeSync') descriptors.delete(args[0]);
      return result;
    };
syncBuiltinESMExports();

if (ahead !== undefined) {
  const now = Date.now.bind(Date);
  Date.now = () => now() + Number(ahead);
}
