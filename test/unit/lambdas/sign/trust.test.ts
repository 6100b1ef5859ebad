import { X509Certificate } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { defaultCluster, parseConfiguration } from '../../../../core/configuration/parse.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { CaNotInForceError } from '../../../../core/ports/errors.ts';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { eventFixture, outcomeOf, startStack } from './stack.ts';
import type { StackChange } from './stack.ts';

async function get(path: string, change: StackChange) {
  const stack = await startStack(change);
  onTestFinished(stack.close);
  return stack.handler(eventFixture({ path: `/v1/clusters/demo/${path}` }));
}

describe('a rotation below a root, and other signers', () => {
  const parsed = parseConfiguration(
    `version: 1
clusters:
  demo:
    cas:
      root: {subject: {commonName: root}, pathLen: 1}
      old: {subject: {commonName: old}}
      nodes: {kind: issued, issuedBy: root, subject: {commonName: nodes}, replaces: old}
      next: {kind: imported, subject: {commonName: next}, replaces: nodes}
      web: {kind: issued, issuedBy: root, subject: {commonName: web}}
    profiles:
      kubernetes.io/kube-apiserver-client: {ca: nodes}
      kubernetes.io/kubelet-serving: {ca: nodes}
      k8s.example.com/web: {ca: web, usages: {allowed: [server auth]}, sans: {dns: [a.example.com]}}
      k8s.example.com/mesh: {ca: web, usages: {allowed: [server auth, client auth]}, sans: {dns: [a.example.com]}}
`,
    'countersign.yaml',
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
  const cluster = parsed.value.configuration.clusters.get('demo');
  const certificates = new Map<string, Uint8Array>();
  const der = async (name: string): Promise<Uint8Array> => {
    const known = certificates.get(name);
    if (known !== undefined) return known;
    const made = new Uint8Array(new X509Certificate((await createTestAuthority(name)).certificatePem).raw);
    certificates.set(name, made);
    return made;
  };
  const authority = async (_: string, name: string): Promise<Authority> => {
    if (name === 'next') throw new CaNotInForceError('next awaits its certificate');
    const root = name === 'nodes' || name === 'web' ? { root: await der('root') } : {};
    const signer = {
      keyId: name,
      algorithm: 'ECDSA_SHA_256',
      sign: () => Promise.reject(new Error('not asked')),
    } as const;
    return { name, certificate: await der(name), intermediates: [], ...root, signer };
  };
  const change = { authority, cluster: () => cluster };
  const pem = async (...names: readonly string[]) =>
    (await Promise.all(names.map(async (name) => toPem('CERTIFICATE', await der(name))))).join('');

  test('the client bundle has the CAs of logins, old and new, and neither their root nor the CA of another signer', async () => {
    const answer = await get('trust-bundle', change);
    expect([answer.statusCode, answer.body]).toEqual([200, await pem('old', 'nodes')]);
  });

  test('each signer has its own anchors; a CA that awaits its certificate holds nothing up', async () => {
    const answer = await get('trust-bundles', change);
    expect([answer.statusCode, outcomeOf(answer), answer.headers['content-type']]).toEqual([
      200,
      'ok',
      'application/json',
    ]);
    expect(JSON.parse(answer.body)).toEqual({
      cluster: 'demo',
      signers: {
        'kubernetes.io/kube-apiserver-client': await pem('old', 'nodes'),
        'kubernetes.io/kubelet-serving': await pem('old', 'root'),
        'k8s.example.com/web': await pem('root'),
        'k8s.example.com/mesh': await pem('web'),
      },
    });
    for (const path of ['healthz', 'revoked', 'trust-bundle/root'])
      expect((await get(path, change)).statusCode, path).toBe(200);
    expect((await get('trust-bundle/next', change)).statusCode).toBe(503);
  });

  test.each(['trust-bundle', 'trust-bundles'])(
    '%s: a CA that does not answer makes no shorter bundle',
    async (path) => {
      const gone = (name: string, ca: string) =>
        ca === 'old' ? Promise.reject(new Error('gone')) : authority(name, ca);
      expect((await get(path, { ...change, authority: gone })).statusCode).toBe(503);
    },
  );
});

test('a cluster without logins has no client bundle', async () => {
  const cluster = defaultCluster('demo');
  const profiles = new Map([...cluster.profiles].filter(([name]) => name.endsWith('serving')));
  const change = { cluster: () => ({ ...cluster, profiles }) };
  expect((await get('trust-bundle', change)).statusCode).toBe(404);
  expect((await get('trust-bundles', change)).statusCode).toBe(200);
});

test('no CA in force: no bundle, and no empty one', async () => {
  const authority = () => Promise.reject(new CaNotInForceError('awaits its certificate'));
  expect((await get('trust-bundle', { authority })).statusCode).toBe(503);
  expect(JSON.parse((await get('trust-bundles', { authority })).body)).toEqual({ cluster: 'demo', signers: {} });
});
