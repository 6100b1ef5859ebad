/** Entries of records that the real sign handler wrote. */
import { hash, X509Certificate } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { certificateEntry } from '../../../../core/inventory/certificate-entry.ts';
import type { CertificateEntry } from '../../../../core/inventory/certificate-entry.ts';
import { maxFactBytes, requestFacts } from '../../../../core/kubernetes/request-facts.ts';
import { embeddedSigner } from '../../../../adapters/embedded/signer.ts';
import type { IssuingRecord } from '../../../../core/ports/certificate-ledger.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { certificatesIn, csrFixture, startStack } from '../../lambdas/sign/stack.ts';
import type { Stack } from '../../lambdas/sign/stack.ts';

async function stackOf(change: Parameters<typeof startStack>[0] = {}): Promise<Stack> {
  const stack = await startStack(change);
  onTestFinished(stack.close);
  return stack;
}

async function recordOf(stack: Stack, { metadata }: ReturnType<typeof csrFixture>): Promise<IssuingRecord> {
  const record = await stack.ledger.find(metadata.uid);
  if (record === undefined) throw new Error('there is no record');
  return record;
}

test('the entry of an issued certificate says what the certificate and the request said', async () => {
  const stack = await stackOf({
    wrapSigner: (signer) => ({ ...signer, sign: async (tbs) => ({ ...(await signer.sign(tbs)), requestId: 'kms-1' }) }),
  });
  const csr = csrFixture({
    request: {
      subject: { O: 'system:nodes', CN: 'system:node:n1' },
      sans: { dns: ['n1.example'], ip: ['10.0.0.1', '2001:db8::1'] },
    },
    spec: {
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['server auth', 'digital signature'],
      username: 'system:node:n1',
      groups: ['system:nodes', 'system:authenticated'],
      expirationSeconds: 3_600,
    },
  });
  const [leaf] = certificatesIn(await stack.post(csr));
  const record = await recordOf(stack, csr);
  const entry = certificateEntry({ ...record, identity: 'aws#i-1', lambdaRequestId: 'invocation-1' });
  expect(entry).toEqual({
    serial: leaf!.serialNumber.toLowerCase(),
    uid: csr.metadata.uid,
    state: 'issued',
    subject: 'O=system:nodes, CN=system:node:n1',
    commonName: 'system:node:n1',
    organizations: ['system:nodes'],
    sans: { dns: ['n1.example'], email: [], ip: ['10.0.0.1', '2001:db8::1'], uri: [] },
    nodeName: 'n1',
    signerName: 'kubernetes.io/kubelet-serving',
    requester: 'system:node:n1',
    groups: ['system:nodes', 'system:authenticated'],
    usages: ['server auth', 'digital signature'],
    expirationSeconds: 3_600,
    identity: 'aws#i-1',
    caKeyId: record.caKeyId,
    notBefore: Date.parse(leaf!.validFrom),
    notAfter: record.notAfter,
    openedAt: stack.clock.now,
    attempt: 1,
    fingerprintSha256: leaf!.fingerprint256.replaceAll(':', '').toLowerCase(),
    publicKeySha256: hash('sha256', leaf!.publicKey.export({ type: 'spki', format: 'der' }), 'hex'),
    kmsRequestId: 'kms-1',
    lambdaRequestId: 'invocation-1',
  } satisfies CertificateEntry);
  expect(Math.floor(entry.notAfter / 1_000) * 1_000).toBe(Date.parse(leaf!.validTo));
});

test('an intent has an entry without a fingerprint, and a record of an early version one without the request', async () => {
  const ca = await createTestAuthority('demo ca');
  const stack = await stackOf({
    authority: async () => ({
      name: 'ca',
      certificate: new Uint8Array(new X509Certificate(ca.certificatePem).raw),
      intermediates: [],
      signer: { ...embeddedSigner(ca.keyPem), sign: () => Promise.reject(new Error('the key does not answer')) },
    }),
  });
  const csr = csrFixture();
  await stack.post(csr);
  const { request, ...early } = await recordOf(stack, csr);
  expect(request?.signerName).toBe('kubernetes.io/kube-apiserver-client-kubelet');
  const entry = certificateEntry(early);
  expect(entry).toMatchObject({ state: 'intent', commonName: 'system:node:n1', nodeName: 'n1' });
  for (const absent of ['fingerprintSha256', 'signerName', 'requester', 'identity', 'kmsRequestId'])
    expect(entry).not.toHaveProperty(absent);
});

test('a record whose bytes are no certificate is named, and not shown half', async () => {
  const stack = await stackOf();
  const csr = csrFixture();
  await stack.post(csr);
  const record = await recordOf(stack, csr);
  expect(() => certificateEntry({ ...record, certificate: record.tbs })).toThrow(`the record of ${record.uid}`);
  expect(() => certificateEntry({ ...record, certificate: Uint8Array.of(1) })).toThrow(TypeError);
});

test('a requester with many groups costs no more than the limit: a list above it is left out as a whole', () => {
  const object = { username: 'u', groups: ['a'], usages: ['client auth'] } as never as Parameters<
    typeof requestFacts
  >[0];
  const facts = (change: object) => requestFacts({ ...object, ...change }, 'example.com/s');
  expect(facts({})).toEqual({ signerName: 'example.com/s', requester: 'u', groups: ['a'], usages: ['client auth'] });
  const most = 'ü'.repeat(maxFactBytes / 2 - 1) + 'x';
  expect(facts({ groups: [most] }).groups).toEqual([most]);
  expect(facts({ groups: [`${most}x`] })).not.toHaveProperty('groups');
  expect(facts({ groups: Array.from({ length: maxFactBytes + 1 }, () => '') })).not.toHaveProperty('groups');
  expect(facts({ usages: [`${most}x`] })).not.toHaveProperty('usages');
  expect(facts({ username: `${most}x` })).not.toHaveProperty('requester');
  expect(facts({ expirationSeconds: 0 }).expirationSeconds).toBe(0);
});
