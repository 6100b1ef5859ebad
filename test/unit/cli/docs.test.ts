/** docs/cli.md shows what the program does. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodes } from '../../../cli/runtime/exit.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import { run } from './run.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/cli.md'), 'utf8');

test('the exit codes are those of the table', () => {
  const listed = [...page.matchAll(/^\| (\d) \|/gm)].map(([, code]) => Number(code));
  expect(listed).toEqual(Object.values(exitCodes));
});

test('every command of the table exists', async () => {
  const commands = [...page.matchAll(/^\| `countersign ([a-z]+(?: [a-z]+)?)/gm)].map(([, words = '']) => words);
  expect(commands.length).toBe(44);
  for (const words of commands) expect(await run([...words.split(' '), '--help'])).toMatchObject({ code: 0 });
});

test('the explanation on the page is the output of the command', async () => {
  const { bytes } = makeRequest({ subject: { O: 'system:nodes', CN: 'n1' }, sans: { dns: ['n1'], ip: ['10.0.0.1'] } });
  const object = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'n1', uid: 'uid' },
    spec: {
      request: bytes.toString('base64'),
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      username: 'system:node:n1',
      groups: ['system:nodes'],
    },
  };
  const { out } = await run(['csr', 'explain', '-'], { files: { '-': JSON.stringify(object) } });
  expect(page).toContain(`csr explain -\n${out}\`\`\``);
});
