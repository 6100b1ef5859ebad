/**
 * A TPM in software for the demo: swtpm on loopback, with endorsement keys and no certificates of a manufacturer. Its state is in a
 * folder of its own.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface SoftwareTpm {
  /** For processes that use tpm2-tools. */
  readonly environment: Readonly<Record<string, string>>;
  /** `TPM2TOOLS_TCTI`. */
  readonly tcti: string;
  /** SubjectPublicKeyInfo (PEM) of the P-256 endorsement key. */
  endorsementKey(): Promise<string>;
  stop(): Promise<void>;
}

const packages: Readonly<Record<string, string>> = {
  swtpm: 'swtpm',
  swtpm_setup: 'swtpm-tools',
  tpm2_createek: 'tpm2-tools libtss2-tcti-swtpm0',
};

/** The Debian packages whose programs this machine lacks. */
export async function missingPackages(): Promise<readonly string[]> {
  const found = await Promise.all(
    Object.entries(packages).map(async ([program, name]) => {
      const isThere = await run(program, ['--version']).then(
        () => true,
        (error: unknown) => codeOf(error) !== 'ENOENT',
      );
      return isThere ? [] : [name];
    }),
  );
  return found.flat();
}

/** `folder`: an existing one, which the caller removes. */
export async function startSoftwareTpm(folder: string, name: string, signal: AbortSignal): Promise<SoftwareTpm> {
  const state = join(folder, name);
  mkdirSync(state);
  await run('swtpm_setup', ['--tpm2', '--tpmstate', state, '--createek', '--pcr-banks', 'sha256'], { signal });
  const port = await freePort();
  const flags = ['--flags', 'not-need-init,startup-clear'];
  // tpm2-tools expect the control channel on the next port.
  const server = ['--server', `type=tcp,port=${port},bindaddr=127.0.0.1`];
  const control = ['--ctrl', `type=tcp,port=${port + 1},bindaddr=127.0.0.1`];
  const child = spawn('swtpm', ['socket', '--tpm2', '--tpmstate', `dir=${state}`, ...flags, ...server, ...control], {
    stdio: 'ignore',
  });
  const ended = new Promise<void>((done) => void child.on('exit', () => done()));
  const tcti = `swtpm:host=127.0.0.1,port=${port}`;
  const environment = { PATH: process.env['PATH'] ?? '', TPM2TOOLS_TCTI: tcti };
  const tool = (program: string, args: readonly string[]) =>
    run(program, args, { env: environment, cwd: state, signal });
  const stop = async (): Promise<void> => {
    child.kill();
    await ended;
  };
  try {
    await untilReady(() => tool('tpm2_getcap', ['properties-variable']), signal);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    environment,
    tcti,
    async endorsementKey() {
      await tool('tpm2_createek', ['-G', 'ecc', '-c', 'ek.ctx', '-f', 'pem', '-u', 'ek.pem']);
      // Without a resource manager each tool leaves what it loaded.
      await tool('tpm2_flushcontext', ['-t']);
      return readFileSync(join(state, 'ek.pem'), 'utf8');
    },
    stop,
  };
}

async function untilReady(ask: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await ask();
      return;
    } catch (error) {
      if (signal.aborted || attempt === 50) throw error;
      await sleep(100);
    }
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => void server.close(done));
  return port;
}
