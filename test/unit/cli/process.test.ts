/** The program as a process: what only shows there. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { version } from '../../../core/version.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import { countersignProgram } from '../../../cli/program.ts';
import { processIo } from '../../../cli/world.ts';
import { run } from './run.ts';

const root = join(import.meta.dirname, '../../..');

function start(
  program: string,
  argv: readonly string[],
  input = '',
  nodeOptions: readonly string[] = [],
): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...nodeOptions, join(root, program), ...argv], {
      timeout: 45_000,
      env: { PATH: '/usr/bin:/bin' },
    });
    const printed = { out: '', err: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => void (printed.out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => void (printed.err += text));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...printed }));
    child.stdin.end(input);
  });
}

test.each(['cli/countersign.ts', 'cli/countersign.mjs'])(
  '%s reads standard input and ends with the exit code',
  async (program) => {
    const argv = [
      'csr',
      'explain',
      '-',
      '--signer-name',
      'kubernetes.io/kube-apiserver-client',
      '--usages',
      'client auth',
    ];
    const good = await start(program, argv, makeRequest({ subject: { CN: 'alice' } }).pem);
    expect(good).toMatchObject({ code: 0, err: '' });
    expect(good.out).toContain('Not yet: it would be signed once it is approved');
    const masters = await start(program, argv, makeRequest({ subject: { CN: 'alice', O: 'system:masters' } }).pem);
    expect(masters.code).toBe(1);
    expect(masters.out).toContain('[NameReserved]');
  },
);

/** Prints each module that is loaded. */
const loads = `import { registerHooks } from 'node:module';
  registerHooks({ load: (url, context, next) => {
    if (url.startsWith('file:')) process.stderr.write(url + '\\n');
    return next(url, context);
  } });`;

test.each([[['--help']], [['--version']], [['__complete', '--', 'c']]])(
  '%j loads no client of AWS and of Kubernetes, and of the libraries only commander',
  async (argv) => {
    const hook = `data:text/javascript,${encodeURIComponent(loads)}`;
    const { code, err } = await start('cli/countersign.ts', argv, '', ['--import', hook]);
    const files = err.trim().split('\n');
    expect([code, files.filter((file) => file.endsWith('/cli/main.ts')).length]).toEqual([0, 1]);
    expect(
      files.filter((file) => /\/node_modules\/(?!commander\/)|\/adapters\/|\/core\/configuration\//.test(file)),
    ).toEqual([]);
    // With a command these come.
    const listed = await start('cli/countersign.ts', ['config', 'schema'], '', ['--import', hook]);
    expect(listed.err).toContain('/node_modules/zod/');
  },
);

test('--help is the same whether the commands are loaded or not', async () => {
  const loaded = await countersignProgram(processIo(), () => undefined);
  const asked = await countersignProgram(processIo(), () => undefined, ['--help']);
  expect(asked.helpInformation()).toBe(loaded.helpInformation());
  // A new command has its line.
  expect(loaded.subcommands().filter((command) => command.summary() === '')).toEqual([]);
  for (const command of loaded.subcommands()) expect((await run([command.name(), '--help'])).code).toBe(0);
});

test('a reader that stops early is no error', async () => {
  const child = spawn(
    '/bin/sh',
    ['-c', `"${process.execPath}" cli/countersign.ts config schema | head -c 10 > /dev/null`],
    {
      cwd: root,
      timeout: 45_000,
    },
  );
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (err += text));
  await new Promise((resolve) => child.on('close', resolve));
  expect(err).toBe('');
});

describe('help', () => {
  test.each([
    [[]],
    [['ca', 'init']],
    [['ca', 'show']],
    [['csr', 'explain']],
    [['config', 'validate']],
    [['config', 'schema']],
    [['config', 'docs']],
    ...['list', 'show', 'reset', 'adopt'].map((verb) => [['tofu', verb]]),
    ...['list', 'allow', 'remove'].map((verb) => [['machines', verb]]),
    [['report']],
    ...['create', 'list', 'delete', 'reconcile'].map((verb) => [['token', verb]]),
    [['cluster', 'harden']],
  ])('of %j goes to standard output, with examples for each command', async (command) => {
    const ran = await run([...command, '--help']);
    expect([ran.code, ran.err]).toEqual([0, '']);
    expect(ran.out).toMatch(/Examples:\n {2}(kubectl|countersign) /);
    // Defaults as they are typed.
    expect(ran.out).not.toMatch(/default: (\[|\d{3})/);
    if (command.length === 0) expect(ran.out).toContain('Exit codes: 0 ok');
  });

  test.each(['--version', '-V'])('%s prints the version', async (flag) => {
    expect(await run([flag])).toEqual({ code: 0, out: `${version}\n`, err: '' });
  });

  test('without a command is a usage error', async () => {
    const ran = await run([]);
    expect(ran.code).toBe(2);
    expect(ran.err).toMatch(/^Usage: countersign/);
  });
});
