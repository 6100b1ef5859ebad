import { X509Certificate, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { issueCaCertificate } from '../../../../core/ca/issue-ca-certificate.ts';
import { buildCaTbs, caValidity, checkCaCertificate } from '../../../../core/x509/ca-certificate.ts';
import type { CaTemplate } from '../../../../core/x509/ca-certificate.ts';
import { certificateFacts } from '../../../../core/x509/read-certificate.ts';
import { assembleCertificate } from '../../../../core/x509/leaf-certificate.ts';
import { serialFrom } from '../../../../core/x509/validity.ts';
import type { SignatureAlgorithm, Signer } from '../../../../core/ports/signer.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { encodeSubject, newKey, sharedKey } from '../../../harness/x509/requests.ts';
import type { TestKey } from '../../../harness/x509/requests.ts';

const now = Date.UTC(2026, 10, 21, 10, 0, 0, 999);
const key = sharedKey('P-256');
const template: Omit<CaTemplate, 'algorithm'> = {
  subject: { commonName: 'Test CA' },
  spki: key.spki,
  serial: serialFrom(new Uint8Array(16)),
  ...caValidity(now, 86_400),
  pathLength: 0,
};

function signerOf({ privateKey }: TestKey, algorithm: SignatureAlgorithm = 'ECDSA_SHA_256'): Signer {
  return {
    keyId: 'test',
    algorithm,
    sign: (tbs) => Promise.resolve({ bytes: sign(`sha${algorithm.slice(-3)}`, tbs, privateKey) }),
  };
}

/** `openssl x509 -text` names of the extensions, as hex of their values by OID. */
function extensionsOf(certificate: Uint8Array): [string, boolean, string][] {
  const { extensions } = certificateFacts(certificate);
  return [...extensions].map(([oid, { critical, value }]) => [oid, critical, Buffer.from(value).toString('hex')]);
}

describe('a new CA', () => {
  test('says what a CA must say, and nothing else', async () => {
    const certificate = await issueCaCertificate(template, signerOf(key));
    const { subjectKeyIdentifier = Buffer.alloc(0) } = certificateFacts(certificate);
    expect(subjectKeyIdentifier).toHaveLength(20);
    expect(extensionsOf(certificate)).toEqual([
      ['2.5.29.15', true, '03020106'], // keyCertSign, cRLSign
      ['2.5.29.19', true, '30060101ff020100'], // cA TRUE, pathLenConstraint 0
      ['2.5.29.14', false, `0414${Buffer.from(subjectKeyIdentifier).toString('hex')}`],
    ]);
    expect(checkCaCertificate(certificate, key.spki)).toEqual([]);
  });

  test('as OpenSSL reads it', async () => {
    const subject = { commonName: 'Prüf-CA', organization: 'Example', organizationalUnit: 'PKI', country: 'DE' };
    const seen = new X509Certificate(await issueCaCertificate({ ...template, subject }, signerOf(key)));
    expect(seen.ca).toBe(true);
    expect(seen.subject).toBe('C=DE\nO=Example\nOU=PKI\nCN=Prüf-CA');
    expect(seen.issuer).toBe(seen.subject);
    expect(seen.verify(seen.publicKey)).toBe(true);
    expect(seen.checkIssued(seen)).toBe(true);
    expect(seen.validFromDate.toISOString()).toBe('2026-11-21T09:55:00.000Z');
    expect(seen.validToDate.toISOString()).toBe('2026-11-22T10:00:00.000Z');
  });

  test.each<[number | undefined, string]>([
    [undefined, '30030101ff'],
    [1, '30060101ff020101'],
  ])('path length %s', async (pathLength, constraints) => {
    const certificate = await issueCaCertificate({ ...template, pathLength }, signerOf(key));
    expect(extensionsOf(certificate)[1]).toEqual(['2.5.29.19', true, constraints]);
  });

  test.each<[TestKey['kind'], SignatureAlgorithm]>([
    ['P-384', 'ECDSA_SHA_384'],
    ['P-521', 'ECDSA_SHA_512'],
    ['RSA-2048', 'RSASSA_PKCS1_V1_5_SHA_256'],
  ])('with %s', async (kind, algorithm) => {
    const other = sharedKey(kind);
    const certificate = await issueCaCertificate({ ...template, spki: other.spki }, signerOf(other, algorithm));
    expect(checkCaCertificate(certificate, other.spki)).toEqual([]);
  });

  test('is not made with a signer of another key', async () => {
    await expect(issueCaCertificate(template, signerOf(newKey('P-256')))).rejects.toThrow(
      'the new CA certificate is not usable: its own signature does not verify',
    );
  });

  test('lives beyond 2049', async () => {
    const long = caValidity(now, 50 * 365 * 86_400);
    expect(certificateFacts(await issueCaCertificate({ ...template, ...long }, signerOf(key)))).toMatchObject(long);
  });
});

describe('a CA certificate that must not issue', () => {
  const extension = (oid: string, critical: boolean, value: Uint8Array): Buffer =>
    der.sequence(der.oid(oid), ...(critical ? [der.boolean(true)] : []), der.octets(value));
  const utc = (text: string): Buffer => der.tlv(0x17, Buffer.from(text));
  const made = (extensions: readonly Uint8Array[], name = encodeSubject({ CN: 'made' })): Uint8Array => {
    const algorithm = der.sequence(der.oid('1.2.840.10045.4.3.2'));
    const tbs = der.sequence(
      der.constructed(0, der.integer(2)),
      der.integer(5),
      algorithm,
      name,
      der.sequence(utc('260101000000Z'), utc('270101000000Z')),
      name,
      key.spki,
      der.constructed(3, der.sequence(...extensions)),
    );
    return assembleCertificate(tbs, sign('sha256', tbs, key.privateKey), 'ECDSA_SHA_256');
  };
  const isCa = extension('2.5.29.19', true, der.sequence(der.boolean(true)));
  const signs = extension('2.5.29.15', true, der.bits(Buffer.from([0x04]), 2));

  test('the pieces together may issue, and so may a CA without key usage', () => {
    expect(checkCaCertificate(made([isCa, signs]), key.spki)).toEqual([]);
    expect(checkCaCertificate(made([isCa]), key.spki)).toEqual([]);
  });

  test.each<[string, Uint8Array, string]>([
    ['a leaf', made([extension('2.5.29.19', true, der.sequence()), signs]), 'it is not a CA'],
    ['no basic constraints', made([signs]), 'it is not a CA'],
    ['no keyCertSign', made([isCa, extension('2.5.29.15', true, der.bits(Buffer.from([0x82]), 1))]), 'may not sign'],
    ['no subject', made([isCa, signs], der.sequence()), 'it has no subject'],
  ])('%s', (_, certificate, fault) => {
    expect(checkCaCertificate(certificate, key.spki).join()).toContain(fault);
  });

  test("another key than the signer's", () => {
    expect(checkCaCertificate(made([isCa, signs]), newKey('P-256').spki)).toEqual(['its key is not the CA key']);
  });

  test('a broken signature', () => {
    const tbs = buildCaTbs({ ...template, algorithm: 'ECDSA_SHA_256' });
    const certificate = assembleCertificate(tbs, sign('sha256', Buffer.from('other'), key.privateKey), 'ECDSA_SHA_256');
    expect(checkCaCertificate(certificate, key.spki)).toEqual(['its own signature does not verify']);
  });
});
