import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { requireTools, toolPath } from '../../tools/tools.ts';
import { systemJava } from './dynamodb-local.ts';
import { describeEmulator, emulatorEnvironment, startEmulator, type Emulator } from './emulator.ts';
import { startProcess, waitUntilReady } from '../processes/processes.ts';

const tools = join(import.meta.dirname, '../../tools');

/** For the top of a suite, like `requireTools`; a LocalStack that runs already needs no tool of ours. */
export async function requireLocalStack(): Promise<{ skip: boolean }> {
  return runningEndpoint() === undefined ? requireTools('localstack', 'dynamodb-local') : { skip: false };
}

/**
 * LocalStack with KMS, DynamoDB, Lambda, CloudFormation and whatever else its core has, on loopback. With
 * AWS_ENDPOINT_URL set it is that one, which the caller starts and stops: the container image, or a newer version.
 *
 * Ours runs without Docker: Lambda functions are child processes (test/tools/localstack/executor), DynamoDB is
 * DynamoDB Local, which listens on all interfaces since it cannot otherwise. In it, IAM and key policies are not
 * enforced, and HTTP APIs of API Gateway exist by name only.
 */
export async function startLocalStack(
  options: {
    /** The Node that runs Lambda functions and what it runs first, to which the handler's name is appended. */
    lambdaRuntime?: readonly string[];
  } = {},
): Promise<Emulator> {
  const given = runningEndpoint();
  if (given !== undefined)
    return describeEmulator('localstack', given, { logTail: () => 'not started by this test', stop: async () => {} });

  const python = await toolPath('localstack');
  const jars = await toolPath('dynamodb-local');
  // Before LocalStack puts its own first on PATH.
  const java = systemJava();
  const runtime = options.lambdaRuntime ?? [process.execPath, join(tools, 'localstack/executor/runtime.mjs')];
  return startEmulator('localstack', async (folder, port) => {
    const root = join(folder, 'fs');
    placeDynamoDbLocal(root, jars);
    const url = `http://127.0.0.1:${port}`;
    const server = startProcess({
      name: 'localstack',
      command: python,
      args: [join(tools, 'localstack/executor/start.py')],
      logPath: join(folder, `localstack-${port}.log`),
      env: {
        ...emulatorEnvironment(folder),
        FILESYSTEM_ROOT: root,
        GATEWAY_LISTEN: `127.0.0.1:${port}`,
        LOCALSTACK_HOST: `localhost:${port}`,
        OVERRIDE_IN_DOCKER: '0', // else it decides from files of this machine whether it is in a container
        DISABLE_EVENTS: '1', // no telemetry
        SKIP_SSL_CERT_DOWNLOAD: '1',
        DNS_ADDRESS: '0',
        DYNAMODB_IN_MEMORY: '1',
        LAMBDA_RUNTIME_EXECUTOR: 'countersign',
        COUNTERSIGN_LAMBDA_RUNTIME: JSON.stringify(runtime),
        COUNTERSIGN_JAVA: java,
      },
    });
    const ready = () => waitUntilReady(server, async () => (await fetch(`${url}/_localstack/health`)).ok, 120_000);
    return { server, url, ready };
  });
}

function runningEndpoint(): string | undefined {
  return process.env['AWS_ENDPOINT_URL'] || undefined;
}

/** Where LocalStack's installer would have put it; that one needs a network. */
function placeDynamoDbLocal(root: string, jars: string): void {
  const home = join(root, 'usr/lib/localstack');
  const [java, dynamodb] = [join(home, 'java/21/bin'), join(home, 'dynamodb-local/2')];
  for (const folder of [java, dynamodb]) mkdirSync(folder, { recursive: true });
  copyFileSync(join(tools, 'dynamodb-local/java.sh'), join(java, 'java'));
  writeFileSync(join(dynamodb, 'DynamoDBLocal.jar'), ''); // looked for, never read
  symlinkSync(jars, join(dynamodb, 'DynamoDBLocal_lib'));
}
