import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  freePort,
  lostPortRace,
  startProcess,
  temporaryFolder,
  waitUntilReady,
  type RunningProcess,
} from '../processes/processes.ts';
import { createTpmAuthority, type TpmAuthority } from './tpm-authority.ts';

const run = promisify(execFile);

/**
 * A TPM of its own: swtpm on loopback. For the top of a suite: `const { skip } = await requireTools('swtpm')`.
 *
 * As its manufacturer made it: persistent endorsement keys RSA-2048 (0x81010001) and P-384 (0x81010016), their certificates
 * in NV (0x1c00002, 0x1c00016), the SHA-256 bank of PCRs. It has no resource manager: three slots for transient objects.
 */
export interface SoftwareTpm {
  /** For `TPM2TOOLS_TCTI`. */
  readonly tcti: string;
  /** For processes that use tpm2-tools. */
  readonly environment: Readonly<Record<string, string>>;
  readonly authority: TpmAuthority;
  /** A folder for files of tpm2-tools; they go with the TPM. */
  readonly folder: string;
  /** The process of swtpm, to take it away from a program that uses it. */
  readonly process: () => RunningProcess;
  /** The certificate of an endorsement key, in DER as it is in NV. */
  ekCertificate(kind: 'rsa-2048' | 'p-384'): Buffer;
  /** Runs a program of tpm2-tools in `folder`. Its output; an error has what it printed. */
  tool(name: `tpm2_${string}`, ...args: readonly string[]): Promise<string>;
  /** A file of `folder`. */
  read(name: string): Buffer;
  /** Frees the slots: without a resource manager each tool leaves what it loaded. */
  flush(): Promise<void>;
  /** Handles that are loaded or persistent now, such as `0x81010001`. */
  handles(kind: 'transient' | 'persistent' | 'loaded-session' | 'saved-session'): Promise<readonly string[]>;
  /**
   * Power off and on. resetCount grows by one. Orderly: TPM2_Shutdown first, as an operating system does. Otherwise the clock
   * falls back to that of the last orderly shutdown, and `safe` is off for up to four seconds.
   */
  restart(options: { readonly orderly: boolean }): Promise<void>;
  stop(): Promise<void>;
}

export async function startSoftwareTpm({
  name = 'tpm',
  authority,
}: {
  /** Common name of its certificates. */
  readonly name?: string;
  /** Absent: one of its own, removed with the TPM. */
  readonly authority?: TpmAuthority;
} = {}): Promise<SoftwareTpm> {
  const maker = authority ?? createTpmAuthority();
  const folder = temporaryFolder('tpm');
  const inFolder = (file: string) => join(folder.path, file);
  const remove = () => {
    folder.remove();
    if (authority === undefined) maker.remove();
  };
  try {
    for (const part of ['state', 'certificates', 'files']) mkdirSync(inFolder(part));
    await run('swtpm_setup', [
      '--tpm2',
      '--tpmstate',
      inFolder('state'),
      '--config',
      maker.configurationFile,
      '--vmid',
      name,
      '--createek',
      '--create-ek-cert',
      '--lock-nvram',
      '--write-ek-cert-files',
      inFolder('certificates'),
      '--log',
      inFolder('setup.log'),
    ]);
    let { server, tcti } = await powerOn(folder.path);
    const environment = () => ({ PATH: process.env['PATH'] ?? '', TPM2TOOLS_TCTI: tcti });
    const tool: SoftwareTpm['tool'] = async (program, ...args) => {
      const { stdout } = await run(program, args, { cwd: inFolder('files'), env: environment() });
      return stdout;
    };
    return {
      get tcti() {
        return tcti;
      },
      get environment() {
        return environment();
      },
      authority: maker,
      folder: inFolder('files'),
      process: () => server,
      ekCertificate: (kind) =>
        readFileSync(inFolder(`certificates/ek-${kind === 'rsa-2048' ? 'rsa2048' : 'secp384r1'}.crt`)),
      tool,
      read: (file) => readFileSync(inFolder(`files/${file}`)),
      flush: async () => {
        await tool('tpm2_flushcontext', '-t');
      },
      handles: async (kind) =>
        (await tool('tpm2_getcap', `handles-${kind}`)).split('\n').flatMap((line) => line.match(/0x\w+/i) ?? []),
      async restart({ orderly }) {
        if (orderly) await tool('tpm2_shutdown', '--clear');
        await server.stop(orderly ? 'SIGTERM' : 'SIGKILL');
        ({ server, tcti } = await powerOn(folder.path, Number(/port=(\d+)/.exec(tcti)?.[1])));
      },
      async stop() {
        await server.stop();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** On the port that it had, if it had one. */
async function powerOn(folder: string, again?: number): Promise<{ server: RunningProcess; tcti: string }> {
  for (let attempt = 1; ; attempt++) {
    const port = again ?? (await freePort());
    const tcti = `swtpm:host=127.0.0.1,port=${port}`;
    const server = startProcess({
      name: 'swtpm',
      command: 'swtpm',
      args: [
        'socket',
        '--tpm2',
        '--tpmstate',
        `dir=${folder}/state`,
        '--flags',
        'not-need-init,startup-clear',
        '--server',
        `type=tcp,port=${port},bindaddr=127.0.0.1`,
        // The clients take the next port for granted.
        '--ctrl',
        `type=tcp,port=${port + 1},bindaddr=127.0.0.1`,
      ],
      logPath: join(folder, 'swtpm.log'),
    });
    try {
      const env = { PATH: process.env['PATH'] ?? '', TPM2TOOLS_TCTI: tcti };
      await waitUntilReady(server, async () => {
        await run('tpm2_getcap', ['properties-variable'], { env, cwd: folder });
        return true;
      });
      return { server, tcti };
    } catch (error) {
      await server.stop();
      if (!lostPortRace(server) || attempt === 5) throw error;
    }
  }
}
