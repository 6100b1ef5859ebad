import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { toPem } from '../../../../core/encoding/pem.ts';
import { decodeTrustBundles, encodeTrustBundles } from '../../../../core/trust/trust-bundles.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { recordedCa } from '../recorded-ca.ts';

const first = toPem('CERTIFICATE', recordedCa);
const second = toPem('CERTIFICATE', new X509Certificate((await createTestAuthority('second')).certificatePem).raw);
const decode = (text: string) => decodeTrustBundles(Buffer.from(text), 'prod');

test('a relay reads what the sign function writes', () => {
  const written = encodeTrustBundles('prod', [
    { signerName: 'example.com/web', pem: first + second },
    { signerName: 'example.com/not-in-force', pem: '' },
  ]);
  expect(decode(written)).toEqual({ ok: true, value: new Map([['example.com/web', first + second]]) });
  expect(decode(encodeTrustBundles('prod', []))).toEqual({ ok: true, value: new Map() });
});

const bundle = (pem: unknown) => JSON.stringify({ cluster: 'prod', signers: { 'example.com/good': first, x: pem } });

test.each<[string, string]>([
  ['nothing', ''],
  ['no JSON', first],
  ['another cluster', JSON.stringify({ cluster: 'other', signers: { x: first } })],
  ['no signers', JSON.stringify({ cluster: 'prod' })],
  ['a list', JSON.stringify({ cluster: 'prod', signers: [first] })],
  ['an empty bundle', bundle('')],
  ['a number', bundle(1)],
  ['a page of a proxy', bundle('<html></html>')],
  ['half a certificate', bundle(first.slice(0, 300))],
  ['text around a certificate', bundle(`CA of prod\n${first}`)],
  ['text between certificates', bundle(`${first}\n${second}`)],
  ['a certificate twice', bundle(first + first)],
  ['other line lengths', bundle(first.replace(/\n(?=.*\n-----END)/, ''))],
  ['a key', bundle(toPem('PRIVATE KEY', recordedCa))],
  ['bytes that are no certificate', bundle(toPem('CERTIFICATE', new Uint8Array(40)))],
  ['a certificate with bytes after it', bundle(toPem('CERTIFICATE', Buffer.concat([recordedCa, Buffer.of(0)])))],
])('a relay takes nothing of an answer with %s', (_, text) => {
  expect(decode(text).ok).toBe(false);
});

test('a certificate that is no CA is no anchor, and more than 16 are no bundle', async () => {
  const leaf = (await createTestAuthority('x')).certificatePem;
  expect(decode(bundle(toPem('CERTIFICATE', new X509Certificate(leaf).raw))).ok).toBe(true);
  const many = await Promise.all(
    Array.from({ length: 17 }, async (_, index) =>
      toPem('CERTIFICATE', new X509Certificate((await createTestAuthority(`ca ${index}`)).certificatePem).raw),
    ),
  );
  expect(decode(bundle(many.slice(1).join(''))).ok).toBe(true);
  expect(decode(bundle(many.join(''))).ok).toBe(false);
});
