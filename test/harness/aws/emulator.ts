/** What the AWS emulators have in common for the tests that run on them. */
import { rmSync } from 'node:fs';
import { startOnFreePort, type Launch } from '../kubernetes/control-plane-servers.ts';
import { temporaryFolder, type RunningProcess } from '../processes/processes.ts';

/** An AWS of this machine, empty when started by us. */
export interface Emulator {
  readonly name: 'localstack' | 'ministack' | 'dynamodb-local';
  readonly url: string;
  readonly port: number;
  /** For the SDK's clients. These credentials may do everything, also where permissions are enforced. */
  readonly client: {
    readonly endpoint: string;
    readonly region: string;
    readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  };
  /** The same as environment variables, for processes. */
  readonly environment: Readonly<Record<string, string>>;
  logTail(lines?: number): string;
  stop(): Promise<void>;
}

export const emulatedRegion = 'eu-central-1';
/** LocalStack and MiniStack take twelve digits of the access key for the account, and this for 000000000000. */
const rootKey = 'test';

export function describeEmulator(
  name: Emulator['name'],
  url: string,
  end: Pick<Emulator, 'logTail' | 'stop'>,
): Emulator {
  return {
    name,
    url,
    port: Number(new URL(url).port),
    client: {
      endpoint: url,
      region: emulatedRegion,
      credentials: { accessKeyId: rootKey, secretAccessKey: rootKey },
    },
    environment: {
      AWS_ENDPOINT_URL: url,
      AWS_REGION: emulatedRegion,
      AWS_ACCESS_KEY_ID: rootKey,
      AWS_SECRET_ACCESS_KEY: rootKey,
    },
    ...end,
  };
}

/** Starts one at a free port of loopback, with a folder of its own for whatever it writes. */
export async function startEmulator(
  name: Emulator['name'],
  launch: (folder: string, port: number) => Promise<Awaited<ReturnType<Launch>>>,
): Promise<Emulator> {
  const folder = temporaryFolder(name);
  const running: RunningProcess[] = [];
  try {
    const { url } = await startOnFreePort(running, (port) => launch(folder.path, port));
    return describeEmulator(name, url, {
      logTail: (lines) => running.at(-1)?.logTail(lines) ?? '',
      async stop() {
        for (const server of running) await server.stop();
        // Children may write a last time when their server is gone.
        rmSync(folder.path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
        folder.remove();
      },
    });
  } catch (error) {
    for (const server of running) await server.stop();
    folder.remove();
    throw error;
  }
}

/** Nothing of the user's own AWS configuration, and nothing written outside the folder. */
export function emulatorEnvironment(folder: string): Readonly<Record<string, string>> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    TMPDIR: folder,
    XDG_CACHE_HOME: folder,
    AWS_EC2_METADATA_DISABLED: 'true',
    PYTHONDONTWRITEBYTECODE: '1',
  };
}
