import { globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { toolPath } from '../../tools/tools.ts';
import { startOnFreePort } from '../kubernetes/control-plane-servers.ts';
import {
  freePort,
  startProcess,
  temporaryFolder,
  waitUntilReady,
  type RunningProcess,
} from '../processes/processes.ts';

export interface LambdaOptions {
  /** Holds the code, as unpacked: Lambda's /var/task. */
  readonly folder: string;
  readonly handler: string;
  readonly functionName: string;
  readonly timeoutSeconds: number;
  readonly memoryMegabytes: number;
  /** Region, credentials and endpoint included: nothing of ours is passed on. */
  readonly environment: Readonly<Record<string, string>>;
}

/** One execution environment, hence one call at a time: as many of these as calls are to run at once. */
export interface LambdaEnvironment {
  readonly url: string;
  readonly pid: number;
  /** The first call starts the handler's process: it is the cold one. A second at once waits for it. */
  invoke(event: unknown): Promise<LambdaAnswer>;
  /** Since the start, what the function printed and what Lambda reports. */
  log(): string;
  stop(): Promise<void>;
}

export interface LambdaAnswer {
  /** What the handler returned, or, after it threw, `errorType`, `errorMessage` and `trace`. */
  readonly payload: unknown;
  /** From sending the event until the whole answer was there. */
  readonly milliseconds: number;
}

/** In the ARN under which the emulator runs every function; it cannot be told another. */
export const runtimeAccount = '012345678912';

const answerTimeoutMilliseconds = 60_000;

/**
 * A function as Lambda runs it, without Lambda: AWS's runtime interface emulator serves the Runtime API, and AWS's Node.js
 * runtime client, on the Node that runs this, loads the handler and asks for events. Both listen on loopback.
 */
export async function startLambda(options: LambdaOptions): Promise<LambdaEnvironment> {
  const emulator = emulatorBinary(await toolPath('lambda-rie'));
  const client = join(await toolPath('lambda-ric'), 'index.mjs');
  const scratch = temporaryFolder('lambda');
  const running: RunningProcess[] = [];
  const stop = async (): Promise<void> => {
    for (const server of running) await server.stop();
    scratch.remove();
  };
  try {
    const { url } = await startOnFreePort(running, async (port) => {
      const server = startProcess({
        name: `lambda ${options.functionName}`,
        command: emulator,
        args: [
          // Without these it listens on all interfaces, and at the same port for every function.
          `--runtime-interface-emulator-address=127.0.0.1:${port}`,
          `--runtime-api-address=127.0.0.1:${await freePort()}`,
          process.execPath,
          client,
          options.handler,
        ],
        logPath: join(scratch.path, `${port}.log`),
        env: lambdaVariables(options),
      });
      const url = `http://127.0.0.1:${port}`;
      // Any path but the one for calls: that would be the first call.
      return { server, url, ready: () => waitUntilReady(server, async () => (await fetch(url)).status > 0) };
    });
    const server = running.at(-1)!;
    let last: Promise<unknown> = Promise.resolve();
    return {
      url,
      pid: server.pid,
      invoke(event) {
        // The emulator panics when it is called while it works.
        const answer = last.then(() => call(url, event));
        last = answer.catch(() => {});
        return answer.catch((error: unknown) => {
          throw new Error(`${options.functionName}: ${String(error)}\n${server.logTail()}`, { cause: error });
        });
      },
      log: () => readFileSync(server.logPath, 'utf8'),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function call(url: string, event: unknown): Promise<LambdaAnswer> {
  const body = JSON.stringify(event);
  const begin = performance.now();
  const response = await fetch(`${url}/2015-03-31/functions/function/invocations`, {
    method: 'POST',
    body,
    signal: AbortSignal.timeout(answerTimeoutMilliseconds),
  });
  const text = await response.text();
  const milliseconds = performance.now() - begin;
  if (response.status !== 200) throw new Error(`HTTP ${response.status}: ${text}`);
  return { payload: JSON.parse(text) as unknown, milliseconds };
}

/** https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html, as far as functions or the SDK read them. */
function lambdaVariables(options: LambdaOptions): Readonly<Record<string, string>> {
  return {
    ...options.environment,
    PATH: '/usr/bin:/bin',
    TZ: ':UTC',
    LAMBDA_TASK_ROOT: resolve(options.folder),
    AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
    AWS_LAMBDA_FUNCTION_NAME: options.functionName,
    AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(options.memoryMegabytes),
    AWS_LAMBDA_FUNCTION_TIMEOUT: String(options.timeoutSeconds),
  };
}

function emulatorBinary(python: string): string {
  const architecture = process.arch === 'arm64' ? 'arm64' : 'x86_64';
  const pattern = `lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-${architecture}`;
  const [found] = globSync(pattern, { cwd: dirname(dirname(python)) });
  if (found === undefined) throw new Error(`no ${pattern} in ${dirname(dirname(python))}`);
  return join(dirname(dirname(python)), found);
}
