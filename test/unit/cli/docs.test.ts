/** docs/cli.md shows what the program does. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withReference } from '../../../cli/output/command-reference.ts';
import { countersignProgram } from '../../../cli/program.ts';
import { exitCodes } from '../../../cli/runtime/exit.ts';
import { processIo } from '../../../cli/world.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import { run } from './run.ts';

const docs = join(import.meta.dirname, '../../../docs');
const page = readFileSync(join(docs, 'cli.md'), 'utf8');

test('the exit codes are those of the table', () => {
  const listed = [...page.matchAll(/^\| (\d) \|/gm)].map(([, code]) => Number(code));
  expect(listed).toEqual(Object.values(exitCodes));
});

const program = await countersignProgram(processIo(), () => undefined);

test('the table of commands and the reference are those of the program', () => {
  expect(page === withReference(page, program), 'docs/cli.md differs from the commands: run npm run cli-docs').toBe(
    true,
  );
});

test('a page without the places of the generated parts is refused', () => {
  expect(() => withReference('# The command line\n', program)).toThrow('docs/cli.md has no line <!-- commands');
  expect(withReference(page.replace('| [`countersign locks`]', '| [`countersign lokcs`]'), program)).toBe(page);
});

test('pages that entries name exist', () => {
  const pages = [...page.matchAll(/\(\[more\]\(([^)#]+)/g)].map(([, path = '']) => path);
  expect(pages.length).toBeGreaterThan(5);
  expect(pages.filter((path) => !existsSync(join(docs, path)))).toEqual([]);
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
