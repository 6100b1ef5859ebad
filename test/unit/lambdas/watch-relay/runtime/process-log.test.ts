/** A log that is written in batches loses nothing: in a real process, read at the other end of a pipe. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';

const module = join(import.meta.dirname, '../../../../../lambdas/watch-relay/runtime/process-log.ts');
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

function run(script: string) {
  const program = `const { createProcessLog } = await import(${JSON.stringify(module)});
    const log = createProcessLog('info');
    ${script}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 20_000,
  });
  started.push(child);
  return child;
}

async function lines(script: string): Promise<{ messages: string[]; code: number | null }> {
  const child = run(script);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  const entries = text.split('\n').slice(0, -1);
  return { messages: entries.map((line) => (JSON.parse(line) as { msg: string }).msg), code };
}

const many = 5_000;
const numbers = Array.from({ length: many }, (_, index) => String(index));
const say = `for (let i = 0; i < ${many}; i++) log.info({ uid: 'u'.repeat(36) }, String(i));`;

test('finding 21: what a requester wrote is short and printable in every line', async () => {
  const child =
    run(`log.error({ name: '\\u0001'.repeat(450_000), uid: 'u', detail: 'HTTP 404: "\\u001b[31m\\u202e" not found' }, 'object malformed');
    log.info({ codes: ['a\\u0007'], failures: 3, detail: 'Error: x\\n    at y' }, 'm');
    process.exit(0);`);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  await once(child, 'close');
  const [first = '', second = ''] = text.split('\n');
  expect(first.length).toBeLessThan(1_200);
  expect(first).toMatch(/^[ -~…]*$/);
  expect(JSON.parse(first)).toMatchObject({ uid: 'u', detail: 'HTTP 404: "\\u{1b}[31m\\u{202e}" not found' });
  expect(JSON.parse(second)).toMatchObject({ codes: ['a\\u{7}'], failures: 3, detail: 'Error: x\n    at y' });
});

test('every line is there, in order, after an exit of our own', async () => {
  expect(await lines(`${say} process.exit(7);`)).toEqual({ messages: numbers, code: 7 });
});

test('and after an uncaught exception', async () => {
  expect(await lines(`${say} throw new Error('a fault');`)).toEqual({ messages: numbers, code: 1 });
});

test('an error is out at once, and what was said before it, though the process is killed in the next moment', async () => {
  const { messages } = await lines(
    `log.info({}, 'one'); log.warn({}, 'two'); log.error({}, 'three'); process.kill(process.pid, 'SIGKILL');`,
  );
  expect(messages).toEqual(['one', 'two', 'three']);
});

test('a single line does not wait for others, nor for the end', async () => {
  const child = run(`log.info({}, 'one'); setInterval(() => {}, 1_000);`);
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  expect(JSON.parse(chunk.toString())).toMatchObject({ level: 'info', msg: 'one' });
  expect(child.exitCode).toBeNull();
});

test('a reader who has gone ends the log, and nothing else', async () => {
  const child = run(
    `process.stderr.write('ready'); setTimeout(() => { ${say} setTimeout(() => process.exit(7), 300); }, 300);`,
  );
  await once(child.stderr, 'data');
  child.stdout.destroy();
  expect(await once(child, 'exit')).toEqual([7, null]);
});
