import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { toolPath } from '../../tools/tools.ts';
import { startProcess, waitUntilReady } from '../processes/processes.ts';
import { emulatorEnvironment, startEmulator, type Emulator } from './emulator.ts';

/**
 * DynamoDB Local by itself, for what needs no other service: the program that AWS gives out, which is the DynamoDB of
 * LocalStack too. It listens on all interfaces, since it has no option for an address.
 */
export async function startDynamoDbLocal(): Promise<Emulator> {
  const jars = await toolPath('dynamodb-local');
  const java = systemJava();
  return startEmulator('dynamodb-local', async (folder, port) => {
    const url = `http://127.0.0.1:${port}`;
    const server = startProcess({
      name: 'dynamodb-local',
      command: java,
      // Quick to start and small, rather than quick after an hour.
      args: ['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', `-Djava.library.path=${jars}`].concat(
        ['-cp', join(jars, '*'), 'com.amazonaws.services.dynamodbv2.local.main.ServerRunner'],
        ['-inMemory', '-port', String(port)],
      ),
      logPath: join(folder, `dynamodb-local-${port}.log`),
      env: { ...emulatorEnvironment(folder), DDB_LOCAL_TELEMETRY: '0' },
    });
    // Any answer will do: it has no address that asks for no signature.
    const ready = () => waitUntilReady(server, async () => (await fetch(url)).status > 0);
    return { server, url, ready };
  });
}

/** Where `java` is on PATH. */
export function systemJava(): string {
  const found = spawnSync('sh', ['-c', 'command -v java'], { encoding: 'utf8' }).stdout.trim();
  if (found === '') throw new Error('DynamoDB Local needs Java 17 or newer (Debian: default-jre-headless)');
  return found;
}
