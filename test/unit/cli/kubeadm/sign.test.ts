/** `countersign kubeadm sign` on a machine where kubeadm wrote keys and requests. */
import { X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { readLogin } from '../../../../cli/kubeadm/kubeconfig.ts';
import { kubeadmCertificates } from '../../../../core/kubeadm/certificates.ts';
import { kubeadmKeys } from '../../core/kubeadm/requests.ts';
import { newKey } from '../../../harness/x509/requests.ts';
import { run } from '../run.ts';
import { generate, machine, read } from './control-plane.ts';
import type { Machine } from './control-plane.ts';

const made: Machine[] = [];
afterEach(() => made.splice(0).forEach(({ root }) => rmSync(root, { recursive: true })));

async function withRequests(keys?: string): Promise<Machine> {
  const on = await machine(keys);
  made.push(on);
  generate(on.folders, kubeadmCertificates);
  return on;
}

const sign = ({ dir, data, config }: Machine, ...more: string[]) =>
  run(['kubeadm', 'sign', '--dir', dir, '--data', data, '--config', config, ...more]);

function filesIn(folder: string): Readonly<Record<string, string>> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [join(parentPath, name), read(join(parentPath, name))]),
  );
}

test('a machine of kubeconfigs alone gets the folder for the certificate of the CA', async () => {
  const on = await machine();
  made.push(on);
  generate(on.folders, ['admin.conf']);
  expect((await sign(on)).code).toBe(0);
  expect(new X509Certificate(read(join(on.dir, 'pki/ca.crt'))).subject).toBe('CN=kubernetes');
});

test('puts each certificate beside its key, with the CAs, and is the same when it is repeated', async () => {
  const on = await withRequests();
  const keys = Object.entries(filesIn(on.dir)).filter(([path]) => path.endsWith('.key'));
  const { code, out } = await sign(on, '--include', 'super-admin', '-o', 'json');
  expect(code).toBe(0);
  const report = JSON.parse(out) as { certificates: { name: string; done: string; file: string }[]; leftOut: object[] };
  expect(report.certificates.map(({ name, done }) => [name, done])).toEqual(
    kubeadmCertificates.map((name) => [name, 'written']),
  );
  expect(report.leftOut).toEqual([]);
  const ca = new X509Certificate(read(join(on.dir, 'pki/ca.crt')));
  expect(ca.subject).toBe('CN=kubernetes');
  const admin = readLogin('admin.conf', read(join(on.dir, 'admin.conf')));
  const login = new X509Certificate(admin.certificate!);
  expect([login.subject, login.verify(ca.publicKey), admin.hasAuthority]).toEqual([
    'O=kubeadm:cluster-admins\nCN=kubernetes-admin',
    true,
    true,
  ]);
  const member = new X509Certificate(read(join(on.dir, 'pki/etcd/peer.crt')));
  expect(member.verify(new X509Certificate(read(join(on.dir, 'pki/etcd/ca.crt'))).publicKey)).toBe(true);
  expect(statSync(join(on.dir, 'pki/apiserver.crt')).mode & 0o777).toBe(0o644);
  expect(statSync(join(on.dir, 'admin.conf')).mode & 0o777).toBe(0o600);
  expect(Object.entries(filesIn(on.dir)).filter(([path]) => path.endsWith('.key'))).toEqual(keys);

  const before = filesIn(on.dir);
  const again = JSON.parse((await sign(on, '--include', 'super-admin', '-o', 'json')).out) as typeof report;
  expect(new Set(again.certificates.map(({ done }) => done))).toEqual(new Set(['unchanged']));
  expect(filesIn(on.dir)).toEqual(before);
  // The ledger has one record each, under the name of the user.
  const listed = await run(['cert', 'list', '--data', on.data, '-o', 'json']);
  expect(listed.out.match(/"signerName": "countersign.dev\/kubeadm"/g)).toHaveLength(kubeadmCertificates.length);
});

test('a dry run writes nothing, and leaves out what the configuration or the operator leaves out', async () => {
  const on = await withRequests(kubeadmKeys.replace(', frontProxy: front-proxy', ''));
  const before = filesIn(on.dir);
  const { code, out } = await sign(on, '--dry-run');
  expect(code).toBe(0);
  expect(out).toMatch(/^apiserver +permitted$/m);
  expect(out).toContain('left out: super-admin.conf: --include super-admin was not given\n');
  expect(out).toContain(
    'left out: front-proxy-client: the configuration of cluster prod has no kubeadm.cas.frontProxy\n',
  );
  expect(filesIn(on.dir)).toEqual(before);
});

test('one refusal ends it before anything is signed or written', async () => {
  const on = await machine(kubeadmKeys.replace('cp-1: [10.0.0.11, cp-1.example.com], ', ''));
  made.push(on);
  generate(on.folders, ['apiserver', 'admin.conf', 'etcd-peer']);
  const before = filesIn(on.dir);
  const { code, err } = await sign(on);
  expect(code).toBe(1);
  expect(err).toContain('apiserver: SanNotPermitted: its DNS names must hold exactly one name of a node');
  expect(err).toContain('etcd-peer: SubjectNotPermitted: common name "cp-1" is not that of kubeadm');
  expect(err).toContain('nothing was signed or written');
  expect(filesIn(on.dir)).toEqual(before);
  expect((await run(['cert', 'list', '--data', on.data, '-o', 'json'])).out).not.toContain('kubeadm');
});

test('a request whose key is another one, or is missing, is refused by its file', async () => {
  const on = await withRequests();
  const path = join(on.dir, 'pki/apiserver.key');
  writeFileSync(path, newKey('P-256').keyPem);
  expect(await sign(on)).toMatchObject({
    code: 3,
    err: expect.stringContaining('apiserver.csr cannot be used: it is of another key than the one beside it') as string,
  });
  writeFileSync(path, 'secret');
  const { err } = await sign(on);
  expect(err).toContain('apiserver.key cannot be used: its private key cannot be read');
  expect(err).not.toContain('secret');
  rmSync(path);
  expect((await sign(on)).err).toContain('its private key is not in');
});

test('a CA that the control plane does not trust is refused', async () => {
  const [on, other] = [await withRequests(), await withRequests()];
  await sign(other);
  writeFileSync(join(on.dir, 'pki/ca.crt'), read(join(other.dir, 'pki/ca.crt')));
  const { code, err } = await sign(on);
  expect([code, err]).toEqual([
    6,
    expect.stringContaining('pki/ca.crt does not hold the CA that signs apiserver (CN=kubernetes)'),
  ]);
  expect(existsSync(join(on.dir, 'pki/apiserver.crt'))).toBe(false);
});

test('a symbolic link stays, and a file keeps its mode', async () => {
  const on = await withRequests();
  const [link, real] = [join(on.dir, 'pki/apiserver.crt'), join(on.root, 'elsewhere.crt')];
  writeFileSync(real, 'old');
  chmodSync(real, 0o640);
  symlinkSync(real, link);
  await sign(on);
  expect(read(real)).toContain('BEGIN CERTIFICATE');
  expect(statSync(real).mode & 0o777).toBe(0o640);
  expect(readdirSync(on.root).toSorted()).toEqual(['countersign.yaml', 'data', 'elsewhere.crt', 'kubernetes']);
});

test('without requests, without a cluster and without a configuration it says what is missing', async () => {
  const on = await machine();
  made.push(on);
  expect(await sign(on)).toMatchObject({
    code: 4,
    err: expect.stringContaining('kubeadm certs generate-csr') as string,
  });
  generate(on.folders, ['admin.conf']);
  expect((await run(['kubeadm', 'sign', '--dir', on.dir])).code).toBe(2);
  expect((await run(['kubeadm', 'sign', '--dir', on.dir, '--data', on.data])).err).toContain('--data needs --config');
  writeFileSync(join(on.dir, 'admin.conf'), 'a: [');
  expect((await sign(on)).err).toContain('admin.conf cannot be used as a kubeconfig: it is not YAML');
});

test('asks the kubeadm function of a deployed cluster, with the ARN of the caller', async () => {
  const on = await machine();
  made.push(on);
  generate(on.folders, ['admin.conf']);
  const asked: object[] = [];
  const world = {
    connectAccount: async () =>
      ({ callerArn: async () => 'arn:aws:iam::111122223333:user/jo', close: () => {} }) as never,
    callFunction: async (call: { readonly functionName: string; readonly request: object }) => {
      asked.push({ ...call.request, functionName: call.functionName });
      return { cluster: 'prod', name: 'admin.conf', result: { ok: false, why: 'Missing', message: 'no CA' } };
    },
  };
  const { code, err } = await run(['kubeadm', 'sign', '--dir', on.dir, '--cluster', 'prod'], { world });
  expect([code, err]).toEqual([1, expect.stringContaining('admin.conf: Missing: no CA')]);
  expect(asked).toEqual([
    {
      functionName: 'countersign-prod-kubeadm',
      certificate: 'admin.conf',
      csr: read(join(on.dir, 'admin.conf.csr')),
      include: [],
      dryRun: true,
      by: 'arn:aws:iam::111122223333:user/jo',
    },
  ]);
  // No private key is in it.
  const key = readLogin('admin.conf', read(join(on.dir, 'admin.conf'))).key!;
  expect(JSON.stringify(asked)).not.toContain(key.split('\n')[1]);
});
