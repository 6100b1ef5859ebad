/** dev/run.mjs installs what is missing once, also if two commands ask for it at once, and after a killed installation again. A stand-in of npm counts. */
import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { onlyDeep } from '../../harness/determinism/tier.ts';

const folder = temporaryFolder('install');
afterAll(() => folder.remove());
let root: string;
const inRoot = (...path: readonly string[]): string => join(root, ...path);
/** A line for each `npm ci` that began, and one for each that ended. */
const npmLog = (): readonly string[] =>
  readFileSync(inRoot('npm.log'), 'utf8')
    .split('\n')
    .filter((line) => line !== '');

let count = 0;
beforeEach(() => {
  root = join(folder.path, String((count += 1)));
  mkdirSync(inRoot('dev'), { recursive: true });
  mkdirSync(inRoot('bin'));
  copyFileSync(join(import.meta.dirname, '../../../dev/run.mjs'), inRoot('dev', 'run.mjs'));
  writeFileSync(inRoot('package-lock.json'), '{}');
  writeFileSync(inRoot('program.mjs'), "console.log('ran');");
  writeFileSync(inRoot('npm.log'), '');
});

/** `seconds`: how long it takes. */
function npm(seconds: number, code = 0): void {
  const script = `#!/bin/sh
echo begin >> npm.log
rm -rf node_modules
sleep ${seconds}
mkdir node_modules
echo end >> npm.log
exit ${code}
`;
  writeFileSync(inRoot('bin', 'npm'), script);
  chmodSync(inRoot('bin', 'npm'), 0o755);
}

function run(words: readonly string[] = ['program.mjs'], more: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [inRoot('dev', 'run.mjs'), ...words], {
    env: { ...more, PATH: [inRoot('bin'), process.env['PATH'] ?? ''].join(delimiter) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (text) => (out += String(text)));
  child.stderr.on('data', (text) => (err += String(text)));
  const ended = new Promise<{ code: number | null; out: string; err: string }>((done) => {
    child.on('close', (code) => done({ code, out, err }));
  });
  return { child, ended };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(50);
}

test('three first commands at once: one installs, the others wait for it, all run', async () => {
  npm(2);
  const all = await Promise.all([run(), run(), run()].map(({ ended }) => ended));
  expect(all.map(({ code, out }) => [code, out])).toEqual([1, 2, 3].map(() => [0, 'ran\n']));
  expect(npmLog()).toEqual(['begin', 'end']);
  expect(all.filter(({ err }) => err.includes('Another command installs')).length).toBeGreaterThanOrEqual(1);
  expect(existsSync(inRoot('.countersign', 'install.lock'))).toBe(false);
  expect(await run().ended).toEqual({ code: 0, out: 'ran\n', err: '' });
});

test.each(onlyDeep)('a killed installation is not waited for longer than it takes to see it', async () => {
  npm(600);
  const { child, ended } = run();
  await until(() => npmLog().length === 1);
  // The whole group: run.mjs, npm and what npm started.
  process.kill(-(child.pid ?? 0), 'SIGKILL');
  await ended;
  expect(existsSync(inRoot('.countersign', 'install.lock'))).toBe(true);
  npm(0);
  expect(await run().ended).toMatchObject({ code: 0, out: 'ran\n' });
  expect(npmLog()).toEqual(['begin', 'begin', 'end']);
});

test.each(onlyDeep)('if only run.mjs is killed, its npm is waited for', async () => {
  npm(6);
  const { child, ended } = run();
  await until(() => npmLog().length === 1);
  child.kill('SIGKILL');
  void ended;
  expect(await run().ended).toMatchObject({ code: 0, out: 'ran\n' });
  // The stamp of the first one is missing, so the second installs again: after it, not beside it.
  expect(npmLog()).toEqual(['begin', 'end', 'begin', 'end']);
});

test('a failed installation says so, and the next command tries again', async () => {
  npm(0, 1);
  const failed = await run().ended;
  expect(failed).toMatchObject({ code: 3, out: '' });
  expect(failed.err).toContain('npm ci failed');
  npm(0);
  expect(await run().ended).toMatchObject({ code: 0, out: 'ran\n' });
});

test('with --here a program stands where the operator stands, otherwise in the checkout', async () => {
  npm(0);
  writeFileSync(inRoot('program.mjs'), 'console.log(process.cwd());');
  const operator = { INIT_CWD: realpathSync(folder.path) };
  expect(await run(['--here', 'program.mjs'], operator).ended).toMatchObject({ out: `${operator.INIT_CWD}\n` });
  expect(await run(['program.mjs'], operator).ended).toMatchObject({ out: `${realpathSync(root)}\n` });
});

test('the commands that read files of an operator are started with --here', () => {
  const { scripts } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  for (const name of ['countersign', 'dev', 'relay', 'cdk', 'synth'])
    expect(scripts[name]).toContain('run.mjs --here ');
});
