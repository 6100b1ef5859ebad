/** `countersign machines ek`, with keys of a real TPM implementation (test/corpus/attestation/tpm/vectors.ts). */
import 'reflect-metadata';
import { createHash, webcrypto } from 'node:crypto';
import { BasicConstraintsExtension, PublicKey, X509CertificateGenerator } from '@peculiar/x509';
import { describe, expect, test } from 'vitest';
import { bytesOf, vectors } from '../../../corpus/attestation/tpm/vectors.ts';
import { newKey, pemBlock } from '../../../harness/x509/requests.ts';
import { run } from '../run.ts';

const { keys, quotes } = vectors;
const kinds = [
  ['RSA-2048', keys['ek-rsa']],
  ['P-256', keys['ek-p256']],
  ['P-384', keys['ek-p384']],
] as const;

function ek(bytes: Uint8Array | string, ...argv: readonly string[]) {
  return run(['machines', 'ek', 'ek.file', ...argv], { files: { 'ek.file': bytes } });
}

function sized(bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

/** Who signed it does not matter here. */
async function certificateFor(spki: Uint8Array, { isCa = false } = {}): Promise<Buffer> {
  const signer = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const { privateKey } = await webcrypto.subtle.generateKey(signer, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create({
    subject: 'CN=an endorsement key',
    issuer: 'CN=a manufacturer',
    serialNumber: '01',
    notBefore: new Date('2026-01-01T00:00:00Z'),
    notAfter: new Date('9999-12-31T23:59:59Z'),
    signingAlgorithm: signer,
    publicKey: new PublicKey(new Uint8Array(spki)),
    signingKey: privateKey,
    extensions: [new BasicConstraintsExtension(isCa, undefined, true)],
  });
  return Buffer.from(certificate.rawData);
}

describe.each(kinds)('an endorsement key %s has one name', async (kind, vector) => {
  const spki = bytesOf(vector.spki);
  const name = `tpm#${createHash('sha256').update(spki).digest('hex')}`;
  const certificate = await certificateFor(spki);
  test.each<readonly [string, Uint8Array | string, string]>([
    ['public key, DER', spki, 'public key'],
    ['public key, PEM', pemBlock('PUBLIC KEY', spki), 'public key'],
    ['certificate, DER', certificate, 'certificate'],
    ['certificate, as in NV', Buffer.concat([certificate, Buffer.alloc(100, 0xff)]), 'certificate'],
    ['certificate, PEM with text', `Certificate:\n  Data:\n${pemBlock('CERTIFICATE', certificate)}`, 'certificate'],
    ['TPMT_PUBLIC', bytesOf(vector.public), 'public area of a TPM'],
    ['TPM2B_PUBLIC', sized(bytesOf(vector.public)), 'public area of a TPM'],
  ])('as %s', async (_, bytes, form) => {
    expect(await ek(bytes)).toEqual({ code: 0, out: `${name}\n`, err: '' });
    expect(JSON.parse((await ek(bytes, '-o', 'json')).out)).toEqual({ name, key: kind, form });
    const listed = await run(['machines', 'allow', name, '--reason', 'x', '--data', '/nonexistent/folder']);
    // The name is one that `allow` accepts: only the folder is missing.
    expect(listed.code).toBe(4);
  });
});

const anyCertificate = await certificateFor(bytesOf(keys['ek-rsa'].spki));
const area = bytesOf(keys['ek-rsa'].public);
const spkiPem = pemBlock('PUBLIC KEY', bytesOf(keys['ek-rsa'].spki));
const otherPem = pemBlock('PUBLIC KEY', bytesOf(keys['ek-p256'].spki));

test.each<readonly [string, Uint8Array | string, RegExp]>([
  ['an attestation key', bytesOf(quotes.p256.public), /not its endorsement key/],
  ['a storage key', bytesOf(keys.storage.public), /not its endorsement key/],
  ['a key that signs anything', bytesOf(keys.unrestricted.public), /not its endorsement key/],
  ['an area with bytes behind it', Buffer.concat([area, Buffer.of(0)]), /no form of a public key/],
  ['a certificate and more', Buffer.concat([anyCertificate, Buffer.of(0xff, 0)]), /no form of a public key/],
  ['half a certificate', anyCertificate.subarray(0, 200), /no form of a public key/],
  ['half an area', area.subarray(0, 100), /no form of a public key/],
  [
    'a key of a kind that no endorsement key has',
    newKey('P-521').spki,
    /not an RSA key of 2048 bits or on P-256 or P-384/,
  ],
  ['two keys', spkiPem + otherPem, /has 2 certificates or public keys/],
  ['a private key', pemBlock('PRIVATE KEY', area), /has no certificate and no public key/],
  ['PEM that is not base64', spkiPem.replace(/\n[A-Za-z0-9]/, '\n*'), /not base64/],
  [
    'the certificate of a CA',
    await certificateFor(bytesOf(keys['ek-rsa'].spki), { isCa: true }),
    /certificate of a CA/,
  ],
  ['a text', 'worker-3', /no form of a public key/],
  ['nothing', '', /no form of a public key/],
])('%s is refused', async (_, bytes, problem) => {
  const ran = await ek(bytes);
  expect([ran.code, ran.out]).toEqual([1, '']);
  expect(ran.err).toMatch(problem);
  expect(ran.err).toContain('ek.file');
});

test('a file that does not exist', async () => {
  expect(await run(['machines', 'ek', '/nonexistent/ek.pub'])).toMatchObject({ code: 4, out: '' });
});
