/** The program as a process: what only shows there. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { version } from '../../../core/version.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import { run } from './run.ts';

const root = join(import.meta.dirname, '../../..');

function start(
  program: string,
  argv: readonly string[],
  input = '',
): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, program), ...argv], {
      timeout: 15_000,
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

test('a reader that stops early is no error', async () => {
  const child = spawn(
    '/bin/sh',
    ['-c', `"${process.execPath}" cli/countersign.ts config schema | head -c 10 > /dev/null`],
    {
      cwd: root,
      timeout: 15_000,
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
