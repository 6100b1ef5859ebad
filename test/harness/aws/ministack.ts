import { join } from 'node:path';
import { toolPath } from '../../tools/tools.ts';
import { emulatorEnvironment, startEmulator, type Emulator } from './emulator.ts';
import { startProcess, waitUntilReady } from '../processes/processes.ts';

/**
 * MiniStack on loopback. With `auth` it checks every signature, and IAM and key policies as far as it knows them; only
 * the root credentials, which `client` has, pass all of that: assume a role to test one.
 */
export async function startMiniStack({
  auth,
  functionEnvironment = {},
}: {
  auth: boolean;
  /** Beside what functions are deployed with. */
  functionEnvironment?: Readonly<Record<string, string>>;
}): Promise<Emulator> {
  const python = await toolPath('ministack');
  return startEmulator('ministack', async (folder, port) => {
    const url = `http://127.0.0.1:${port}`;
    const server = startProcess({
      name: 'ministack',
      command: python,
      args: ['-m', 'ministack'],
      logPath: join(folder, `ministack-${port}.log`),
      env: {
        ...emulatorEnvironment(folder),
        ...functionEnvironment, // which inherit it
        GATEWAY_PORT: String(port),
        BIND_HOST: '127.0.0.1', // it would listen everywhere
        MINISTACK_HOST: 'localhost',
        IOT_MTLS_ENABLED: '0', // another port
        LAMBDA_EXECUTOR: 'local',
        AUTH: String(auth),
        DOCKER_HOST: 'unix:///nonexistent', // not to be looked for
      },
    });
    const ready = () => waitUntilReady(server, async () => (await fetch(`${url}/_ministack/health`)).ok);
    return { server, url, ready };
  });
}
