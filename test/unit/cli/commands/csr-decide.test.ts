/** `csr list`, `show`, `approve` and `deny` against the stand-in of the CertificateSigningRequest API, which has the server's rules. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startCsrApi } from '../../../../dev/csr-api/csr-api.ts';
import type { CsrApi } from '../../../../dev/csr-api/csr-api.ts';
import { CommandFailure, exitCodes } from '../../../../cli/runtime/exit.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { makeRequest, sharedKey } from '../../../harness/x509/requests.ts';
import type { RequestSpec } from '../../../harness/x509/requests.ts';
import { run } from '../run.ts';
import type { Ran } from '../run.ts';

const folder = temporaryFolder('csr-decide');
const kubeconfig = join(folder.path, 'kubeconfig');
let api: CsrApi;
beforeAll(async () => {
  api = await startCsrApi();
  writeFileSync(kubeconfig, api.kubeconfig());
});
afterAll(async () => {
  await api.close();
  folder.remove();
});

const collection = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const signerName = 'example.com/web';

async function create(name: string, spec: RequestSpec | string, more: object = {}): Promise<void> {
  const request =
    typeof spec === 'string' ? Buffer.from(spec).toString('base64') : makeRequest(spec).bytes.toString('base64');
  const response = await fetch(`${api.url}${collection}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'impersonate-user': 'alice', 'impersonate-group': 'system:masters' },
    body: JSON.stringify({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name, annotations: { 'countersign.dev/identity': 'aws#forged' } },
      spec: { request, signerName, usages: ['digital signature', 'server auth'], ...more },
    }),
  });
  expect(response.status, await response.clone().text()).toBe(201);
}

async function stored(name: string): Promise<{ readonly status: { readonly conditions?: readonly object[] } }> {
  return (await (await fetch(`${api.url}${collection}/${name}`)).json()) as never;
}

const csr = (...words: readonly string[]): Promise<Ran> =>
  run(['csr', ...words, '--kubeconfig', kubeconfig], { world: { now: () => Date.now() + 7_200_000 } });
const listed = async (...flags: readonly string[]) =>
  (JSON.parse((await csr('list', '-o', 'json', ...flags)).out) as readonly { readonly name: string }[]).map(
    ({ name }) => name,
  );

test('--watch prints the list, then the row of each request that is new or changed', async () => {
  await create('watch-1', web, { signerName: 'example.com/watched' });
  const printed: string[] = [];
  let looks = 0;
  const world = {
    now: () => Date.now() + 7_200_000,
    async pause() {
      looks += 1;
      if (looks === 2) await create('watch-2', web, { signerName: 'example.com/watched' });
      if (looks === 3) expect((await csr('approve', 'watch-1', '--reason', 'known')).code).toBe(0);
      if (looks === 4) throw new CommandFailure(exitCodes.ok, 'stopped');
      printed.push('--');
    },
  };
  const flags = ['--signer-name', 'example.com/watched', '--watch', '--kubeconfig', kubeconfig];
  const { code, out, err } = await run(['csr', 'list', ...flags], { world });
  expect([code, err, printed.length]).toEqual([0, 'countersign: stopped\n', 3]);
  const rows = out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
  expect(rows.map(([name, , , , state]) => `${name} ${state}`)).toEqual([
    'NAME STATE',
    'watch-1 pending',
    'watch-2 pending',
    'watch-1 approved',
  ]);
  expect(await run(['csr', 'list', ...flags, '-o', 'json'])).toMatchObject({ code: 2, out: '' });
});

const web: RequestSpec = { subject: { CN: 'web' }, sans: { dns: ['web.example.com'], ip: ['10.0.0.7'] } };

test('a list shows what was asked, by whom, and what became of it', async () => {
  await create('list-1', { ...web, key: sharedKey('P-256') });
  await create('list-2', { subject: { CN: 'other' } }, { signerName: 'example.com/other' });
  const { code, out } = await csr('list', '-o', 'wide');
  expect(code).toBe(0);
  const [head = '', ...rows] = out.trimEnd().split('\n');
  expect(head.split(/ {2,}/)).toEqual([
    'NAME',
    'AGE',
    'SIGNER',
    'REQUESTER',
    'STATE',
    'SUBJECT',
    'NAMES',
    'REASON',
    'MACHINE',
    'KEY FINGERPRINT',
  ]);
  const fingerprint = createHash('sha256').update(sharedKey('P-256').spki).digest('hex');
  expect(rows.find((row) => row.startsWith('list-1'))?.split(/ {2,}/)).toEqual([
    'list-1',
    '2h',
    signerName,
    'alice',
    'pending',
    'CN=web',
    'web.example.com 10.0.0.7',
    '-',
    '-',
    fingerprint,
  ]);
  expect(await listed('--signer-name', 'example.com/other')).toEqual(['list-2']);
  expect(await listed('--requester', 'bob')).toEqual([]);
  expect(await listed('--state', 'denied')).toEqual([]);
});

test('a request that cannot be read is shown as such, and is not approved', async () => {
  // The API server itself reads less strictly: a trailing byte is enough.
  const { der } = makeRequest(web);
  const bytes = Buffer.concat([der, Buffer.of(0)]).toString('base64');
  await create('unread-1', `-----BEGIN CERTIFICATE REQUEST-----\n${bytes}\n-----END CERTIFICATE REQUEST-----\n`);
  expect((await csr('show', 'unread-1')).out).toMatch(/^request +cannot be read: /m);
  const refused = await csr('approve', 'unread-1', '--reason', 'x');
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.out).toMatch(/^unread-1: not approved: it cannot be read: /);
  expect((await csr('deny', 'unread-1', '--reason', 'x')).code).toBe(0);
});

test('several are approved at once, each once, with the reason of the operator', async () => {
  await create('many-1', web);
  await create('many-2', web);
  const approved = await csr('approve', 'many-1', 'many-2', 'many-1', '--reason', 'ticket 4711');
  expect(approved).toMatchObject({
    code: 0,
    out: ['many-1', 'many-2'].map((name) => `${name} approved: CN=web, for alice by ${signerName}\n`).join(''),
  });
  const condition = { type: 'Approved', status: 'True', reason: 'OperatorApproved', message: 'ticket 4711' };
  expect((await stored('many-1')).status.conditions).toEqual([expect.objectContaining(condition)]);
  const again = await csr('approve', 'many-1', '--reason', 'other', '-o', 'json');
  expect(JSON.parse(again.out)).toMatchObject([{ name: 'many-1', outcome: 'already' }]);
  expect((await stored('many-1')).status.conditions).toEqual([expect.objectContaining(condition)]);
  expect((await csr('show', 'many-2')).out).toMatch(
    /^state +approved\nreason +OperatorApproved\nmessage +ticket 4711$/m,
  );
});

test('a decision is final, and one refusal does not keep the others from being decided', async () => {
  await create('final-1', web);
  await create('final-2', web);
  expect((await csr('deny', 'final-1', '--reason', 'unknown')).out).toMatch(/^final-1 denied: /);
  const mixed = await csr('approve', 'final-1', 'final-2', '--reason', 'x');
  expect(mixed.code).toBe(1);
  expect(mixed.out).toContain('final-1: not approved: it is denied (OperatorDenied)\n');
  expect(mixed.out).toContain('final-2 approved: ');
  expect((await csr('deny', 'final-2', '--reason', 'x')).out).toBe(
    'final-2: not denied: it is approved (OperatorApproved)\n',
  );
  expect((await csr('approve', 'no-such', '--reason', 'x')).code).toBe(4);
});

test('only with the key that the requester named', async () => {
  await create('key-1', { ...web, key: sharedKey('P-256') });
  const fingerprint = createHash('sha256').update(sharedKey('P-256').spki).digest('hex');
  const other = await csr('approve', 'key-1', '--reason', 'x', '--key-fingerprint', 'a'.repeat(64));
  expect(other.code).toBe(1);
  expect(other.out).toMatch(/^key-1: not approved: its key has another fingerprint/);
  expect((await csr('approve', 'key-1', '--reason', 'x', '--key-fingerprint', 'a')).code).toBe(2);
  const colons = `SHA256:${fingerprint.toUpperCase().match(/../g)!.join(':')}`;
  expect((await csr('approve', 'key-1', '--reason', 'x', '--key-fingerprint', colons)).code).toBe(0);
});

test('all pending requests of one signer, and a look at them before', async () => {
  const all = ['--all-pending', '--signer-name', 'example.com/all', '--reason', 'new servers'];
  for (const name of ['all-1', 'all-2']) await create(name, web, { signerName: 'example.com/all' });
  await create('all-3', web);
  const dry = await csr('approve', ...all, '--dry-run', '-o', 'json');
  expect((JSON.parse(dry.out) as { name: string }[]).map(({ name }) => name)).toEqual(['all-1', 'all-2']);
  expect(await listed('--state', 'pending', '--signer-name', 'example.com/all')).toEqual(['all-1', 'all-2']);
  expect((await csr('approve', ...all)).code).toBe(0);
  expect(await listed('--state', 'approved', '--signer-name', 'example.com/all')).toEqual(['all-1', 'all-2']);
  expect(await listed('--state', 'pending')).toContain('all-3');
});

test.for([
  [['approve', '--reason', 'x'], 'name requests'],
  [['approve', 'a'], "required option '--reason"],
  [['approve', '--all-pending', '--reason', 'x'], '--signer-name NAME'],
  [['deny', 'a', '--all-pending', '--signer-name', 'b', '--reason', 'x'], 'name requests'],
  [['deny', 'a', '--signer-name', 'b', '--reason', 'x'], 'choose among all pending requests'],
  [['approve', 'a', 'b', '--reason', 'x', '--key-fingerprint', 'a'.repeat(64)], 'one request by its name'],
] as const)('usage: %j', async ([words, message]) => {
  const { code, err } = await csr(...words);
  expect(code).toBe(2);
  expect(err).toContain(message);
});
