/** `csr create` and `csr certificate` against `countersign dev` with its stand-in of a cluster: from a PEM to a certificate. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { serveHere } from '../../dev/serve-here.ts';
import type { ServedHere } from '../../dev/serve-here.ts';
import { run } from '../run.ts';
import type { Ran } from '../run.ts';

const folder = temporaryFolder('csr-create');
const kubeconfig = join(folder.path, 'new', 'kubeconfig');
let served: ServedHere;
beforeAll(async () => {
  served = await serveHere('--write-kubeconfig', kubeconfig);
});
afterAll(async () => {
  await served.stop();
  folder.remove();
});

const pem = Buffer.from(makeRequest({ subject: { CN: 'jane' } }).bytes).toString();
const files = { 'jane.csr': `made by openssl\n${pem}`, two: `${pem}${pem}`, none: 'hello\n' };
// Each look at the clock is ten seconds later, so that a wait ends soon.
let clock = Date.now();
const late = { now: () => (clock += 10_000) };
const csr = (words: readonly string[], world: object = {}): Promise<Ran> =>
  run(['csr', ...words, '--kubeconfig', kubeconfig], { files, world });
const client = ['--signer-name', 'kubernetes.io/kube-apiserver-client', '--usages', 'client auth'] as const;

test('a request is created, approved, and its certificate printed', async () => {
  const created = await csr(['create', 'jane', 'jane.csr', ...client, '--expiration-seconds', '3600']);
  expect(created).toMatchObject({ code: 0, out: expect.stringContaining('countersign csr approve jane') as string });
  expect(created.err).toMatch(
    /^countersign: server http:\/\/127\.0\.0\.1:\d+, context stand-in, user kubernetes-admin\n$/,
  );
  const waiting = await csr(['certificate', 'jane'], late);
  expect(waiting).toMatchObject({ code: 5, out: '' });
  expect(waiting.err).toMatch(/it is pending\n.*csr approve jane/);

  expect(await csr(['approve', 'jane', '--reason', 'test'])).toMatchObject({ code: 0 });
  const { code, out } = await csr(['certificate', 'jane'], { now: Date.now });
  expect(code).toBe(0);
  const certificate = new X509Certificate(out);
  expect(certificate.subject).toBe('CN=jane');
  const lifetime = certificate.validToDate.getTime() - Date.now();
  expect(lifetime).toBeGreaterThan(3_000_000);
  expect(lifetime).toBeLessThanOrEqual(3_600_000);
});

test('the banner’s next commands are for that kubeconfig', () => {
  expect(served.output()).toContain(`export KUBECONFIG=${kubeconfig}`);
  expect(served.output()).toContain(`--signer-name ${client[1]} --usages '${client[3]}'`);
});

test('/ of the server lists its paths', async () => {
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(served.output()) ?? [];
  const answer = await fetch(url);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
  expect(await answer.text()).toContain('/v1/clusters/demo/sign');
  expect((await fetch(`${url}/nothing`)).status).toBe(404);
});

test('a refused request has its reasons instead of a certificate', async () => {
  const signer = ['--signer-name', 'kubernetes.io/kubelet-serving', '--usages', 'server auth'];
  await csr(['create', 'wrong', 'jane.csr', ...signer]);
  await csr(['approve', 'wrong', '--reason', 'test']);
  const { code, out, err } = await csr(['certificate', 'wrong'], { now: Date.now });
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(/wrong has failed: .*system:nodes.*\n.*csr explain wrong/s);
});

test.each([
  [['create', 'jane', 'jane.csr', ...client], 6, /has this name already|choose another/],
  [['create', 'a', 'none', ...client], 1, /none has no certificate request in PEM\n.*openssl req/],
  [['create', 'a', 'two', ...client], 1, /two has 2 certificate requests/],
  [['create', 'a', 'gone', ...client], 4, /no file gone/],
  [['create', 'a', 'jane.csr'], 2, /--signer-name/],
  [['create', 'a', 'jane.csr', ...client, '--expiration-seconds', '60'], 2, /at least 600/],
  [['certificate', 'gone'], 4, /csr list/],
] as const)('%j ends with %d and says why', async (words, code, message) => {
  const ran = await csr(words);
  expect(ran).toMatchObject({ code, out: '' });
  expect(ran.err).toMatch(message);
});

test('a web page can neither read nor write the stand-in', async () => {
  const { clusters } = JSON.parse(readFileSync(kubeconfig, 'utf8')) as { clusters: { cluster: { server: string } }[] };
  const url = `${clusters[0]?.cluster.server}/apis/certificates.k8s.io/v1/certificatesigningrequests`;
  expect((await fetch(url)).status).toBe(200);
  const posted = await fetch(url, { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}' });
  expect(posted.status).toBe(400);
  expect(await posted.text()).toContain('send application/json');
});
