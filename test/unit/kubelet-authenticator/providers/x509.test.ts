/** What a node makes, judged by the approver's own provider. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { x509Provider as approver } from '../../../../core/attestation/x509/provider.ts';
import { x509Provider } from '../../../../kubelet-authenticator/providers/x509.ts';
import { evidenceOf } from '../../../corpus/attestation/x509/judge.ts';
import * as world from '../../../corpus/attestation/x509/machine.ts';
import { keyOf, name } from '../../../harness/x509/certificate-writer.ts';

const { root, intermediate, leaf } = world.certificates;
const bundle = (...ders: readonly Buffer[]): string => ders.map(world.pem).join('');
const pkcs8 = (key: ReturnType<typeof keyOf>): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const good = { certificatePem: bundle(leaf, intermediate), keyPem: pkcs8(keyOf('machine')) };
const random = 'MDEyMzQ1Njc4OWFiY2RlZg';
const question = {
  version: 'x509/v1',
  clusterName: 'blue',
  binding: world.binding,
  nonce: random,
  now: world.now,
};

async function outcomeOf(files: typeof good): Promise<string> {
  const { data } = await x509Provider(() => files).makeEvidence(question);
  const examined = await approver(world.policy).examine(evidenceOf(Buffer.from(data)));
  return examined.ok ? examined.value.identity : examined.problem.map(({ message }) => message).join();
}
const identity = `x509#prod/uri/${world.spiffeId}`;

describe('evidence', () => {
  test.each(['P-256', 'P-384', 'P-521', 'Ed25519', 'RSA-2048'] as const)('by a key %s is accepted', async (kind) => {
    const key = keyOf('machine', kind);
    expect(await outcomeOf({ certificatePem: bundle(world.leaf({ key }), intermediate), keyPem: pkcs8(key) })).toBe(
      identity,
    );
  });

  test.each([
    ['EC', 'P-256', 'sec1'],
    ['RSA', 'RSA-2048', 'pkcs1'],
  ] as const)('by a key in an %s PRIVATE KEY block is accepted', async (label, kind, type) => {
    const key = keyOf('machine', kind);
    const keyPem = key.export({ type, format: 'pem' } as { type: 'sec1'; format: 'pem' }).toString();
    expect(keyPem).toContain(`BEGIN ${label} PRIVATE KEY`);
    expect(await outcomeOf({ certificatePem: bundle(world.leaf({ key }), intermediate), keyPem })).toBe(identity);
  });

  test('leaves out roots, which the approver has', async () => {
    const files = { ...good, certificatePem: `text before\n${bundle(leaf, intermediate, root)}` };
    const { data } = await x509Provider(() => files).makeEvidence(question);
    const { chain } = JSON.parse(data) as { readonly chain: readonly string[] };
    expect(chain).toEqual([leaf, intermediate].map((der) => der.toString('base64')));
    expect(await outcomeOf(files)).toBe(identity);
  });

  test('begins its nonce with the time, and is stale before the approver refuses it or the certificate expires', async () => {
    const { data, staleAt } = await x509Provider(() => good).makeEvidence(question);
    expect(JSON.parse(data)).toMatchObject({ nonce: `${world.now}.${random}` });
    expect(staleAt).toBe(world.now + 4 * world.minute);
    const shortLived = { ...good, certificatePem: bundle(world.leaf({ notAfter: world.now + world.minute })) };
    expect((await x509Provider(() => shortLived).makeEvidence(question)).staleAt).toBe(world.now + world.minute);
  });

  test('is made of the files as they are now', async () => {
    let files = { ...good, certificatePem: 'none' };
    const provider = x509Provider(() => files);
    await expect(provider.makeEvidence(question)).rejects.toThrow('holds no certificate');
    files = good;
    await expect(provider.makeEvidence(question)).resolves.toBeDefined();
  });

  const encrypted = createPrivateKey(good.keyPem)
    .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' })
    .toString();
  test.each([
    ['no key', { keyPem: 'secret' }, /holds no private key in PEM without a passphrase$/],
    ['a key with a passphrase', { keyPem: encrypted }, /holds no private key in PEM without a passphrase$/],
    [
      'the key of another certificate',
      { keyPem: pkcs8(keyOf('thief')) },
      /is not that of the certificate: if both are/,
    ],
    [
      'an expired certificate',
      { certificatePem: bundle(world.leaf({ notAfter: world.now - 1_000 })) },
      /expired at 2026/,
    ],
    [
      'a weak key',
      { certificatePem: bundle(world.leaf({ key: keyOf('machine', 'RSA-1024') })) },
      /has a key that is not/,
    ],
  ])('is not made with %s', async (_, change, message) => {
    const made = x509Provider(() => ({ ...good, ...change })).makeEvidence(question);
    await expect(made).rejects.toThrow(message);
    await expect(made).rejects.not.toThrow(/secret/);
  });
});

describe('the providerID', () => {
  const certificatePem = bundle(world.leaf({ subject: name('worker-1') }));
  const describeBy = (kind?: 'uri' | 'cn' | 'dns') =>
    x509Provider(() => ({ ...good, certificatePem }), kind).describe();

  test('is the first name of the certificate, or the kind that the operator chose', async () => {
    expect(await describeBy()).toEqual({ providerId: `x509:///${world.spiffeId}`, names: [] });
    expect(await describeBy('cn')).toEqual({ providerId: 'x509:///worker-1', names: [] });
    await expect(describeBy('dns')).rejects.toThrow('the certificate of this machine has no dns');
  });

  test('stays the same with a new certificate', async () => {
    const renewed = world.leaf({ key: keyOf('new key'), serial: 99n });
    expect(new X509Certificate(renewed).serialNumber).toBe('63');
    const described = await x509Provider(() => ({ ...good, certificatePem: bundle(renewed) })).describe();
    expect(described.providerId).toBe(`x509:///${world.spiffeId}`);
  });
});
