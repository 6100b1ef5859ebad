import { execFileSync, type ExecFileSyncOptions } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { pinCertificate, verifySignedData } from '../../../../core/attestation/aws/cms.ts';
import { signAsAws } from '../../../harness/fake-aws/machine/cms-writer.ts';
import {
  createRegionCa,
  regionCa,
  signCms,
  signIdentityDocument,
} from '../../../harness/fake-aws/machine/region-ca.ts';
import type { CmsOptions } from '../../../harness/fake-aws/machine/region-ca.ts';

const document = JSON.stringify({ accountId: '111122223333', instanceId: 'i-0123456789abcdef0' }, null, 2);
const folder = mkdtempSync(join(tmpdir(), 'countersign-region-ca-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const quiet: ExecFileSyncOptions = { stdio: ['ignore', 'pipe', 'ignore'] };

/** What OpenSSL finds inside a CMS whose one signer must be the certificate given. */
function openssl(cms: Uint8Array, certificatePem: string, ...more: string[]): string {
  const [input, certificate] = [join(folder, 'cms'), join(folder, 'certificate.pem')];
  writeFileSync(input, cms);
  writeFileSync(certificate, certificatePem);
  const args = ['cms', '-verify', '-binary', '-inform', 'DER', '-in', input, '-certfile', certificate];
  // Pinned keys, no chain: the usual way to verify these documents.
  return String(execFileSync('openssl', [...args, '-nointern', '-noverify', ...more], quiet));
}

function structure(cms: Uint8Array): string {
  const input = join(folder, 'structure');
  writeFileSync(input, cms);
  return String(execFileSync('openssl', ['asn1parse', '-inform', 'DER', '-in', input], quiet));
}

describe('a region of the fake AWS', () => {
  test('has a key and serial number of its own, under the name that all regions share', () => {
    const [here, there] = [regionCa('eu-central-1'), regionCa('us-east-1')];
    const certificates = [here, there].map((ca) => new X509Certificate(ca.certificatePem));
    expect(new Set(certificates.map(({ subject }) => subject)).size).toBe(1);
    expect(new Set(certificates.map(({ serialNumber }) => serialNumber)).size).toBe(2);
    expect(certificates.map(({ publicKey }) => publicKey.asymmetricKeyDetails?.modulusLength)).toEqual([2048, 2048]);
    expect(regionCa('eu-central-1')).toBe(here);
    expect(createRegionCa('eu-central-1').serialNumber).not.toBe(here.serialNumber);
  });

  test('signs documents as AWS encodes them, which OpenSSL verifies with that region’s certificate only', () => {
    const text = signIdentityDocument(document, 'eu-central-1');
    expect(text.split('\n').every((line) => /^[A-Za-z0-9+/=]{1,64}$/.test(line))).toBe(true);
    const cms = Buffer.from(text, 'base64');
    // SEQUENCE of indefinite length, and the content in a constructed OCTET STRING.
    expect(cms.subarray(0, 2)).toEqual(Buffer.of(0x30, 0x80));
    expect(structure(cms)).toMatch(/l=inf {2}cons: OCTET STRING/);
    expect(openssl(cms, regionCa('eu-central-1').certificatePem)).toBe(document);
    expect(() => openssl(cms, regionCa('us-east-1').certificatePem)).toThrow();
  });

  test.each<[string, CmsOptions, RegExp | undefined, RegExp | undefined]>([
    ['in DER', { encoding: 'der' }, undefined, /l=inf/],
    ['without signed attributes', { signedAttributes: false }, undefined, /messageDigest/],
    ['with SHA-1', { digest: 'sha1' }, /:sha1\b/, /:sha256\b/],
    ['without its content', { detached: true }, undefined, /accountId/],
    ['with certificates inside', { embedCertificates: true }, /:X509v3 /, undefined],
    ['by two', { alsoSignedBy: [regionCa('us-east-1')] }, /messageDigest[^]*messageDigest/, undefined],
    ['by key identifier', { keyIdentifier: true }, undefined, /Amazon Web Services/],
    ['as another type of content', { contentType: '1.2.840.113549.1.9.16.1.4' }, /id-smime-ct-TSTInfo/, /pkcs7-data/],
    ['with PSS', { pss: true }, /:rsassaPss/, undefined],
  ])('makes fixtures that AWS would not: %s', (_, options, present, absent) => {
    // The content is looked for in the bytes: asn1parse prints text of several lines in hex.
    const look = options.detached === true ? (cms: Buffer) => cms.toString('latin1') : structure;
    const usual = look(signCms(document, 'eu-central-1'));
    const unusual = look(signCms(document, 'eu-central-1', options));
    if (present !== undefined) {
      expect(unusual).toMatch(present);
      expect(usual).not.toMatch(present);
    }
    if (absent !== undefined) {
      expect(unusual).not.toMatch(absent);
      expect(usual).toMatch(absent);
    }
  });

  test('can be written as AWS does to the letter, and OpenSSL takes it for the same', () => {
    const cms = signAsAws(document, 'eu-central-1', { pieces: 3 });
    expect(openssl(cms, regionCa('eu-central-1').certificatePem)).toBe(document);
    expect(() => openssl(cms, regionCa('us-east-1').certificatePem)).toThrow();
    // The objects in the order in which the genuine ones have them.
    const objects = [...structure(cms).matchAll(/OBJECT +:(\S+)/g)].map(([, name]) => name);
    expect(objects.filter((name) => name?.endsWith('Name') === false).join(' ')).toBe(
      'pkcs7-signedData sha256 pkcs7-data sha256 contentType pkcs7-data signingTime ' +
        '1.2.840.113549.1.9.52 sha256 sha256WithRSAEncryption messageDigest sha256WithRSAEncryption',
    );
    const pinned = ['eu-central-1', 'us-east-1'].map((region) =>
      pinCertificate(region, regionCa(region).certificateDer),
    );
    expect(verifySignedData(cms, pinned, Date.now())).toMatchObject({ value: { signer: { region: 'eu-central-1' } } });
    const text = Buffer.from(signIdentityDocument(document, 'us-east-1'), 'base64');
    expect(verifySignedData(text, pinned, Date.now())).toMatchObject({ value: { signer: { region: 'us-east-1' } } });
  });
});
