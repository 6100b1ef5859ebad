import { constants, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { issueCaCertificate } from '../../../../core/ca/issue-ca-certificate.ts';
import { buildCaRequest } from '../../../../core/ca/ca-request.ts';
import { certificateDifferences, requestDifferences } from '../../../../core/ca/second-reader.ts';
import type { SignatureAlgorithm, Signer } from '../../../../core/ports/signer.ts';
import { buildCaTbs, caValidity } from '../../../../core/x509/ca-certificate.ts';
import type { CaTemplate } from '../../../../core/x509/ca-certificate.ts';
import { assembleCertificate } from '../../../../core/x509/leaf-certificate.ts';
import { serialFrom } from '../../../../core/x509/validity.ts';
import { newKey, sharedKey } from '../../../harness/x509/requests.ts';
import type { TestKey } from '../../../harness/x509/requests.ts';

const key = sharedKey('P-256');
const template: Omit<CaTemplate, 'algorithm'> = {
  subject: { commonName: 'Prüf-CA', organization: 'Example', organizationalUnit: 'PKI', country: 'DE' },
  spki: key.spki,
  serial: serialFrom(new Uint8Array(16)),
  ...caValidity(Date.UTC(2026, 10, 21, 10, 0, 0, 999), 86_400),
  pathLength: 0,
};

function signerOf({ privateKey }: TestKey, algorithm: SignatureAlgorithm = 'ECDSA_SHA_256'): Signer {
  const digest = `sha${algorithm.slice(-3)}`;
  const options = algorithm.startsWith('RSASSA_PSS')
    ? { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
    : privateKey;
  return { keyId: 'test', algorithm, sign: (tbs) => Promise.resolve({ bytes: sign(digest, tbs, options) }) };
}

test.each<[TestKey['kind'], SignatureAlgorithm]>([
  ['P-256', 'ECDSA_SHA_256'],
  ['P-384', 'ECDSA_SHA_384'],
  ['P-521', 'ECDSA_SHA_512'],
  ['RSA-2048', 'RSASSA_PKCS1_V1_5_SHA_256'],
  ['RSA-2048', 'RSASSA_PKCS1_V1_5_SHA_384'],
  ['RSA-2048', 'RSASSA_PKCS1_V1_5_SHA_512'],
  ['RSA-2048', 'RSASSA_PSS_SHA_256'],
  ['RSA-2048', 'RSASSA_PSS_SHA_384'],
  ['RSA-2048', 'RSASSA_PSS_SHA_512'],
])('a certificate with a %s key and %s is read as it was meant', async (kind, algorithm) => {
  const own = { ...template, spki: sharedKey(kind).spki };
  const certificate = await issueCaCertificate(own, signerOf(sharedKey(kind), algorithm));
  expect(await certificateDifferences(certificate, own)).toEqual([]);
});

test.each<[string, Partial<CaTemplate>]>([
  ['only a common name', { subject: { commonName: 'a, b=c + "d"' } }],
  ['any path length', { pathLength: undefined }],
  ['validity beyond 2049', caValidity(Date.UTC(2026, 0, 1), 50 * 365 * 86_400)],
])('%s', async (_, change) => {
  const own = { ...template, ...change };
  expect(await certificateDifferences(await issueCaCertificate(own, signerOf(key)), own)).toEqual([]);
});

describe('a certificate that is not what the template says', () => {
  test.each<[string, Partial<CaTemplate>, string[]]>([
    ['another common name', { subject: { ...template.subject, commonName: 'Prüf-CB' } }, ['subject', 'issuer']],
    ['a country less', { subject: { ...template.subject, country: 'FR' } }, ['subject', 'issuer']],
    ['another serial number', { serial: serialFrom(new Uint8Array(16).fill(1)) }, ['serial number']],
    ['an earlier start', { notBefore: template.notBefore - 1_000 }, ['validity']],
    ['a later end', { notAfter: template.notAfter + 1_000 }, ['validity']],
    ['another path length', { pathLength: 1 }, ['basicConstraints']],
    ['no path length', { pathLength: undefined }, ['basicConstraints']],
    ['another key', { spki: newKey('P-256').spki }, ['public key', 'subjectKeyIdentifier', 'signature']],
  ])('%s', async (_, change, fields) => {
    const tbs = buildCaTbs({ ...template, ...change, algorithm: 'ECDSA_SHA_256' });
    const certificate = assembleCertificate(tbs, sign('sha256', tbs, key.privateKey), 'ECDSA_SHA_256');
    const differences = fields.map((field) => `the second reader disagrees about its ${field}`);
    expect(await certificateDifferences(certificate, template)).toEqual(differences);
  });

  test('a signature over other bytes', async () => {
    const tbs = buildCaTbs({ ...template, algorithm: 'ECDSA_SHA_256' });
    const certificate = assembleCertificate(tbs, sign('sha256', Buffer.of(1), key.privateKey), 'ECDSA_SHA_256');
    expect(await certificateDifferences(certificate, template)).toEqual([
      'the second reader disagrees about its signature',
    ]);
  });

  test('no certificate at all', async () => {
    expect(await certificateDifferences(Uint8Array.of(0x30, 0x00), template)).toEqual([
      'the second reader cannot read it',
    ]);
  });

  /** Each value stands in the certificate once; the signature is over the changed bytes. */
  test.each<[string, string, string, string]>([
    ['keyUsage with digitalSignature', '03020106', '03020186', 'keyUsage'],
    ['keyUsage that is not critical', '0603551d0f0101ff', '0603551d0f010100', 'keyUsage'],
    ['basicConstraints that are not critical', '0603551d130101ff', '0603551d13010100', 'basicConstraints'],
    ['an extension of another type', '0603551d0e', '0603551d7e', 'subjectKeyIdentifier'],
  ])('%s', async (_, from, to, field) => {
    const tbs = Buffer.from(buildCaTbs({ ...template, algorithm: 'ECDSA_SHA_256' })).toString('hex');
    expect(tbs.split(from)).toHaveLength(2);
    const changed = Buffer.from(tbs.replace(from, to), 'hex');
    const certificate = assembleCertificate(changed, sign('sha256', changed, key.privateKey), 'ECDSA_SHA_256');
    expect(await certificateDifferences(certificate, template)).toEqual([
      `the second reader disagrees about its ${field}`,
    ]);
  });
});

describe('the request for a CA certificate: the second reader finds', () => {
  const { subject, spki, pathLength } = template;
  const asked = { subject, spki, pathLength: pathLength ?? 0 };
  const requestOver = (info: Uint8Array): Uint8Array =>
    assembleCertificate(info, sign('sha256', info, key.privateKey), 'ECDSA_SHA_256');
  const differences = (...fields: readonly string[]): string[] =>
    fields.map((field) => `the second reader disagrees about its ${field}`);

  test('no difference in what was asked for', async () => {
    expect(await requestDifferences(requestOver(buildCaRequest(asked)), asked)).toEqual([]);
  });

  test.each<[string, Partial<typeof asked>, string[]]>([
    ['another subject', { subject: { commonName: 'Prüf-CA' } }, ['subject']],
    ['another path length', { pathLength: 1 }, ['basicConstraints']],
    ['another key', { spki: newKey('P-256').spki }, ['public key', 'subjectKeyIdentifier', 'signature']],
  ])('%s', async (_, change, fields) => {
    const request = requestOver(buildCaRequest({ ...asked, ...change }));
    expect(await requestDifferences(request, asked)).toEqual(differences(...fields));
  });

  /** Each value stands in the request once; the signature is over the changed bytes. */
  test.each<[string, string, string, string]>([
    ['keyUsage with digitalSignature', '03020106', '03020186', 'keyUsage'],
    ['keyUsage that is not critical', '0603551d0f0101ff', '0603551d0f010100', 'keyUsage'],
    ['basicConstraints that are not critical', '0603551d130101ff', '0603551d13010100', 'basicConstraints'],
    ['basicConstraints of a leaf', '30060101ff020100', '3006010100020100', 'basicConstraints'],
    ['an extension of another type', '0603551d0e', '0603551d7e', 'subjectKeyIdentifier'],
  ])('%s', async (_, from, to, field) => {
    const info = Buffer.from(buildCaRequest(asked)).toString('hex');
    expect(info.split(from)).toHaveLength(2);
    const changed = Buffer.from(info.replace(from, to), 'hex');
    expect(await requestDifferences(requestOver(changed), asked)).toEqual(differences(field));
  });

  test('a signature over other bytes, and no request at all', async () => {
    const info = buildCaRequest(asked);
    const request = assembleCertificate(info, sign('sha256', Buffer.of(1), key.privateKey), 'ECDSA_SHA_256');
    expect(await requestDifferences(request, asked)).toEqual(differences('signature'));
    expect(await requestDifferences(Uint8Array.of(0x30, 0x00), asked)).toEqual(['the second reader cannot read it']);
  });
});
