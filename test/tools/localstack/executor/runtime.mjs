/**
 * A minimal Node.js runtime for Lambda functions: it loads the handler and answers one event after the other.
 * https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
 */
import { existsSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(':');
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function call(method, path, body) {
  return new Promise((done, fail) => {
    const headers =
      body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const asked = request({ host, port, agent, method, headers, path: `/2018-06-01/runtime${path}` }, (answer) => {
      const chunks = [];
      answer.on('data', (chunk) => chunks.push(chunk));
      answer.on('error', fail);
      answer.on('end', () =>
        done({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    asked.on('error', fail);
    asked.end(body);
  });
}

function failure(error) {
  const { name = 'Error', message = String(error), stack = '' } = error ?? {};
  return JSON.stringify({ errorType: name, errorMessage: message, trace: stack.split('\n') });
}

async function load(handlerName) {
  const [, module, name] = /^(.+)\.([^.]+)$/.exec(handlerName);
  const file = ['.js', '.mjs', '.cjs']
    .map((extension) => resolve(process.env.LAMBDA_TASK_ROOT, module + extension))
    .find((path) => existsSync(path));
  if (file === undefined) throw new Error(`there is no module ${module}`);
  const loaded = await import(pathToFileURL(file).href);
  const handler = loaded[name] ?? loaded.default?.[name];
  if (typeof handler !== 'function') throw new Error(`${module} exports no function ${name}`);
  return handler;
}

let handler;
try {
  handler = await load(process.argv[2]);
} catch (error) {
  await call('POST', '/init/error', failure(error));
  process.exit(1);
}
for (;;) {
  const next = await call('GET', '/invocation/next').catch(() => undefined);
  // The Runtime API is closed, or it asks this process to exit.
  if (next?.status !== 200) process.exit(0);
  const id = next.headers['lambda-runtime-aws-request-id'];
  const deadline = Number(next.headers['lambda-runtime-deadline-ms']);
  const context = {
    awsRequestId: id,
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    invokedFunctionArn: next.headers['lambda-runtime-invoked-function-arn'],
    getRemainingTimeInMillis: () => deadline - Date.now(),
  };
  try {
    const answer = await handler(JSON.parse(next.body), context);
    await call('POST', `/invocation/${id}/response`, JSON.stringify(answer ?? null));
  } catch (error) {
    await call('POST', `/invocation/${id}/error`, failure(error));
  }
}
