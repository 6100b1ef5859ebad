import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { CreateFunctionCommand, InvokeCommand, LambdaClient, waitUntilFunctionActiveV2 } from '@aws-sdk/client-lambda';
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { requireLocalStack, startLocalStack } from '../../../harness/aws/localstack.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { zip } from '../../../../acceptance/resources/zip.ts';
import { requireTools } from '../../../tools/tools.ts';

const code = `exports.handler = async (event, context) => {
  if (event.slow) await new Promise((done) => setTimeout(done, 60000));
  if (event.pause) await new Promise((done) => setTimeout(done, 700));
  if (event.bad) throw new TypeError('bad');
  if (event.exit) process.exit(3);
  console.log('said by the function');
  return { event, pid: process.pid, left: context.getRemainingTimeInMillis(), name: context.functionName };
};`;

describe.skipIf((await requireLocalStack()).skip)('our LocalStack', () => {
  let emulator: Emulator;
  let lambda: LambdaClient;
  beforeAll(async () => {
    emulator = await startLocalStack();
    lambda = new LambdaClient(emulator.client);
    // A new process counts, on a machine that may be busy.
    await deploy('f', code, 60);
    await deploy('impatient', code, 6);
  });
  afterAll(async () => {
    lambda.destroy();
    await emulator.stop();
  });

  async function deploy(name: string, source: string, seconds: number): Promise<void> {
    await lambda.send(
      new CreateFunctionCommand({
        FunctionName: name,
        Runtime: 'nodejs24.x',
        Handler: 'index.handler',
        Timeout: seconds,
        Role: 'arn:aws:iam::000000000000:role/f',
        Architectures: ['arm64'],
        Code: { ZipFile: zip(new Map([['index.js', Buffer.from(source)]])) },
      }),
    );
    await waitUntilFunctionActiveV2({ client: lambda, maxWaitTime: 60 }, { FunctionName: name });
  }

  async function call(event: object, name = 'f') {
    const answer = await lambda.send(
      new InvokeCommand({ FunctionName: name, Payload: JSON.stringify(event), LogType: 'Tail' }),
    );
    const payload = JSON.parse(Buffer.from(answer.Payload ?? []).toString('utf8')) as Record<string, unknown>;
    const log = Buffer.from(answer.LogResult ?? '', 'base64').toString('utf8');
    return { payload, log, error: answer.FunctionError };
  }

  test('runs functions in a process that stays, with the context Lambda gives and what they print', async () => {
    const first = await call({ a: 1 });
    expect(first).toMatchObject({ payload: { event: { a: 1 }, name: 'f' }, error: undefined });
    expect(first.payload['left']).toBeGreaterThan(1_000);
    const second = await call({ text: 'grüße €' });
    expect(second.payload).toMatchObject({ event: { text: 'grüße €' }, pid: first.payload['pid'] });
    // What a function says last may come with its next call.
    expect(first.log + second.log).toContain('said by the function');
  });

  test('after an error the process stays; after an exit or a timeout the next call finds a new one', async () => {
    const { pid } = (await call({})).payload;
    expect(await call({ bad: true })).toMatchObject({ error: 'Unhandled', payload: { errorType: 'TypeError' } });
    expect((await call({})).payload['pid']).toBe(pid);
    expect(await call({ exit: true })).toMatchObject({ payload: { errorType: 'Runtime.ExitError' } });
    expect((await call({})).payload['pid']).not.toBe(pid);
    // Its process may take longer to start than it has.
    const answered = async () => (await call({}, 'impatient')).payload['pid'];
    await expect.poll(answered).toEqual(expect.any(Number));
    const patient = await answered();
    expect(await call({ slow: true }, 'impatient')).toMatchObject({ payload: { errorType: 'Sandbox.Timedout' } });
    await expect.poll(answered).toEqual(expect.any(Number));
    expect(await answered()).not.toBe(patient);
  });

  test('calls at once run in processes of their own', async () => {
    const answers = await Promise.all([1, 2, 3].map((n) => call({ n, pause: true })));
    expect(answers.map(({ payload }) => (payload['event'] as { n: number }).n)).toEqual([1, 2, 3]);
    expect(new Set(answers.map(({ payload }) => payload['pid'])).size).toBe(3);
  });

  test('code that does not load is an error of the call, with its reason', async () => {
    await deploy('broken', 'throw new SyntaxError("no")', 6).catch(() => undefined);
    const answer = await call({}, 'broken').catch((error: unknown) => ({ payload: { errorMessage: String(error) } }));
    expect(JSON.stringify(answer.payload)).toMatch(/no/);
  });
});

const emulators = [
  { name: 'LocalStack', start: () => startLocalStack(), ...(await requireLocalStack()) },
  { name: 'MiniStack', start: () => startMiniStack({ auth: false }), ...(await requireTools('ministack')) },
];
// The processes of an emulator that this suite did not start are not known.
const ours = process.env['AWS_ENDPOINT_URL'] === undefined && existsSync('/proc/net/tcp');

for (const { name, start, skip } of emulators)
  describe.skipIf(skip || !ours)(`starting and stopping ${name}`, () => {
    test('it listens on loopback only, and nothing of it is left', async () => {
      const before = processes();
      const emulator = await start();
      const client = new DynamoDBClient(emulator.client);
      try {
        await client.send(new ListTablesCommand({}));
        // Its gateway, and so every port it opens but that of DynamoDB Local, which knows no address.
        expect(listeningAddresses(emulator.port)).toEqual(['0100007F']);
        expect(processes().some((pid) => !before.includes(pid))).toBe(true);
      } finally {
        client.destroy();
        await emulator.stop();
      }
      // On a busy machine a process that was killed may need a moment until it is gone.
      await expect.poll(() => listeningAddresses(emulator.port)).toEqual([]);
      await expect.poll(() => processes().filter((pid) => !before.includes(pid))).toEqual([]);
    });
  });

/** As the kernel writes them: hexadecimal, in the order of this machine's bytes. */
function listeningAddresses(port: number): string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local, , state]) => local?.endsWith(`:${wanted}`) === true && state === '0A')
      .map(([, local]) => local?.split(':')[0] ?? ''),
  );
}

/** Those alive whose environment or command line is of an emulator that this test process has started. */
function processes(): string[] {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,stat=,args='], { encoding: 'utf8' });
  return stdout
    .split('\n')
    .filter((line) =>
      /countersign-(localstack|ministack)-|ServerRunner|localstack\/executor\/start\.py|-m ministack/.test(line),
    )
    .map((line) => line.trim().split(/\s+/))
    .filter(([pid, stat]) => pid !== undefined && !stat?.startsWith('Z') && isOurs(pid))
    .map(([pid]) => pid ?? '');
}

/** Other suites, and other people's, may run at the same time. */
function isOurs(pid: string): boolean {
  for (let current = pid; current !== '1' && current !== '0' && current !== '';) {
    if (current === String(process.pid)) return true;
    const status = `/proc/${current}/status`;
    if (!existsSync(status)) return false;
    current = /^PPid:\s+(\d+)$/m.exec(readFileSync(status, 'utf8'))?.[1] ?? '';
  }
  return false;
}
