/**
 * Calls tpm2-tools, one program for each step. Files that they exchange are in a private directory inside the cache, which
 * exists while the TPM is in use.
 *
 * Nothing stays in the TPM. The directory remembers the session, so a process that was killed is cleaned up by the next one.
 * Loaded objects are flushed as well: behind a resource manager (/dev/tpmrm0) this is a no-op, since each program's objects
 * go with it. Without one, objects of other programs are of no use to them between two calls either.
 */
import { execFile } from 'node:child_process';
import type { ExecFileException } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf, makeDirectory } from '../files/cache.ts';
import { takeLock } from '../files/lock.ts';
import { oneLine } from '../../core/outcome/printable-text.ts';

export interface TpmPlace {
  /** The cache, in which the private directory is made. */
  readonly directory: string;
  /** How tpm2-tools reach the TPM, as in TPM2TOOLS_TCTI. Absent: the kernel's resource manager. */
  readonly tcti?: string | undefined;
  /** Where the programs are. */
  readonly path: string | undefined;
  /** After this time a program is killed. */
  readonly programMilliseconds?: number | undefined;
}

/** A TPM that this process alone of this node uses. File names are relative to the private directory. */
export interface Tpm {
  /** The output of a program. Throws TpmError with a message for the operator. */
  run(program: TpmProgram, args: readonly string[], input?: string): Promise<string>;
  read(file: string): Buffer;
  write(file: string, content: Uint8Array): void;
}

export type TpmProgram = `tpm2_${string}`;

export class TpmError extends Error {
  override readonly name = 'TpmError';
  /** The TPM's response code without its layer (TPM 2.0 Part 2, 6.6); absent if no TPM answered. */
  readonly code: number | undefined;
  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}

/** The file of a policy session. It has this name so that it is found after a crash. */
export const sessionFile = 'session.ctx';

const defaultTcti = 'device:/dev/tpmrm0';
/** A TPM of its own chip takes some ten seconds for an RSA key. */
const longestProgram = 60_000;
const lockMilliseconds = 30_000;
/** Another program has the TPM for some milliseconds, a self-test takes longer. */
const retryDelays: readonly number[] = [50, 100, 200, 400, 800];

export async function withTpm<T>(place: TpmPlace, work: (tpm: Tpm) => Promise<T>): Promise<T> {
  const slot = { directory: place.directory, name: 'tpm' } as const;
  makeDirectory(slot);
  const lock = await takeLock(slot, Date.now, Date.now() + lockMilliseconds);
  if (lock === undefined) throw new TpmError('another process of this node uses the TPM');
  const folder = join(place.directory, slot.name);
  const call = caller(folder, place);
  try {
    // The last process was killed: its session is still in the TPM.
    if (existsSync(folder)) await cleanUp(folder, call);
    mkdirSync(folder, { mode: 0o700 });
    // Crash from here on: the next process finds the directory.
    try {
      return await work({
        run: (program, args, input) => retryWhileBusy(call, program, args, input),
        read: (file) => readFileSync(join(folder, file)),
        write: (file, content) => writeFileSync(join(folder, file), content, { flag: 'wx', mode: 0o600 }),
      });
    } finally {
      await cleanUp(folder, call);
    }
  } finally {
    lock.release();
  }
}

type Call = (program: TpmProgram, args: readonly string[], input?: string) => Promise<string>;

/** An error here says less than the one before it; a TPM that was restarted knows the session no more. */
async function cleanUp(folder: string, call: Call): Promise<void> {
  if (existsSync(join(folder, sessionFile))) await call('tpm2_flushcontext', [sessionFile]).catch(() => {});
  await call('tpm2_flushcontext', ['-t']).catch(() => {});
  rmSync(folder, { recursive: true, force: true });
}

async function retryWhileBusy(call: Call, program: TpmProgram, args: readonly string[], input?: string) {
  for (const delay of retryDelays) {
    try {
      return await call(program, args, input);
    } catch (error) {
      if (!(error instanceof TpmError && error.code !== undefined && busyCodes.has(error.code))) throw error;
      // Without a resource manager, each call leaves what it loaded.
      await call('tpm2_flushcontext', ['-t']).catch(() => {});
      await sleep(delay);
    }
  }
  return call(program, args, input);
}

/** TPM 2.0 Part 2, 6.6.3. The last one is ours: the device is open in another process. */
const deviceBusy = -1;
const busyCodes: ReadonlySet<number> = new Set([
  0x902, // TPM_RC_OBJECT_MEMORY
  0x903, // TPM_RC_SESSION_MEMORY
  0x904, // TPM_RC_MEMORY
  0x905, // TPM_RC_SESSION_HANDLES
  0x906, // TPM_RC_OBJECT_HANDLES
  0x908, // TPM_RC_YIELDED
  0x909, // TPM_RC_CANCELED
  0x90a, // TPM_RC_TESTING
  0x920, // TPM_RC_NV_RATE
  0x922, // TPM_RC_RETRY
  0x923, // TPM_RC_NV_UNAVAILABLE
  deviceBusy,
]);
const lockout = 0x921;

function caller(folder: string, { tcti = defaultTcti, path, programMilliseconds = longestProgram }: TpmPlace): Call {
  // Without its log the library adds no lines to those of the programs.
  const env = { PATH: path, TPM2TOOLS_TCTI: tcti, TSS2_LOG: 'all+none', LC_ALL: 'C' };
  const options = { cwd: folder, env, timeout: programMilliseconds, killSignal: 'SIGKILL' } as const;
  return (program, args, input) =>
    new Promise((resolve, reject) => {
      const child = execFile(program, args, options, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else if (error.killed === true)
          reject(new TpmError(`${program} did not end within ${programMilliseconds / 1_000} seconds`));
        else reject(explain(program, error, stderr, tcti));
      });
      // A program that does not read its input is no error.
      child.stdin?.on('error', () => {});
      child.stdin?.end(input);
    });
}

/** `Esys_Quote(0x921) - …` */
const withCode = /\((0x[0-9a-f]{1,8})\)/i;

/** What the operator reads. The programs print no secret. */
function explain(program: string, { code, signal }: ExecFileException, stderr: string, tcti: string): TpmError {
  if (code === 'ENOENT')
    return new TpmError(
      `${program} is not installed: apt-get install tpm2-tools (Debian, Ubuntu) or dnf install tpm2-tools (RHEL, Fedora)`,
    );
  if (typeof code === 'string') return new TpmError(`${program} cannot be started (${code})`);
  if (typeof signal === 'string') return new TpmError(`${program} was killed (${signal})`);
  const lines = stderr.split('\n').filter((each) => each.startsWith('ERROR'));
  const line = lines.find((each) => withCode.test(each)) ?? lines[0] ?? 'no message';
  const why = oneLine(line.replace(/^ERROR:? */, '')).slice(0, 200);
  const answer = Number(withCode.exec(line)?.[1] ?? Number.NaN);
  // The layer of a response code (TSS 2.0 Overview and Common Structures, 3.4): the TPM, or the TPM behind a resource manager.
  if (![0, 11].includes(answer >>> 16) || Number.isNaN(answer))
    return line.includes('tcti') ? unreachable(tcti, why) : new TpmError(`${program} failed: ${why}`);
  const responseCode = answer & 0xfff;
  if (responseCode === lockout)
    return new TpmError(
      'the TPM is in lockout after wrong authorizations: wait, or run tpm2_dictionarylockout --clear-lockout',
      lockout,
    );
  return new TpmError(`the TPM refuses ${program}: ${why}`, responseCode);
}

function unreachable(tcti: string, why: string): TpmError {
  const device = /^device:(\/.+)$/.exec(tcti)?.[1];
  const problem = device === undefined ? undefined : whyNotOpened(device);
  switch (problem) {
    case 'ENOENT':
      return new TpmError(`there is no TPM: ${device} does not exist (is a TPM 2.0 enabled in the firmware?)`);
    case 'EACCES':
    case 'EPERM':
      return new TpmError(`this user may not open ${device}: run as root, or as a member of the group tss`);
    case 'EBUSY':
      return new TpmError(`${device} is open in another process: use /dev/tpmrm0`, deviceBusy);
    case undefined:
    default:
      return new TpmError(`the TPM does not answer at ${tcti} (TPM2TOOLS_TCTI): ${why}`);
  }
}

/** tpm2-tools tell only that they cannot use the device. */
function whyNotOpened(device: string): string | undefined {
  try {
    closeSync(openSync(device, 'r+'));
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
}
