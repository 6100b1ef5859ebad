/**
 * The verifier and OpenSSL, which knows nothing of ours: what one of them signs the other reads. The messages of
 * test/corpus/attestation/cms-writer.ts, on which the hostile cases rest, are read by both.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { pinCertificate, verifySignedData } from '../../../../core/attestation/aws/cms.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { document, keys, now } from '../../../corpus/attestation/aws-machine.ts';
import { message, signedMessage, signerInfo } from '../../../corpus/attestation/cms-writer.ts';
import { createRegionCa, signCms, signIdentityDocument } from '../../../harness/fake-aws/machine/region-ca.ts';
import type { CmsOptions } from '../../../harness/fake-aws/machine/region-ca.ts';

const content = Buffer.from(JSON.stringify(document, undefined, 2));
const folder = mkdtempSync(join(tmpdir(), 'countersign-openssl-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('what OpenSSL signs', () => {
  const authority = createRegionCa('eu-central-1');
  const other = createRegionCa('us-east-1');
  const pins = [authority, other].map(({ region, certificateDer }) => pinCertificate(region, certificateDer));
  const verify = (options: CmsOptions) => verifySignedData(signCms(content, authority, options), pins, now);

  test.for<[string, CmsOptions]>([
    ['as AWS writes it', {}],
    ['in DER', { encoding: 'der' }],
    ['with a certificate inside', { embedCertificates: true }],
  ])('%s is taken', ([, options]) => {
    const verified = verify(options);
    expect(verified).toMatchObject({ value: { signer: { region: 'eu-central-1' } } });
    expect(verified.ok && content.equals(verified.value.content)).toBe(true);
  });

  test.for<[string, CmsOptions, string]>([
    ['without signed attributes', { signedAttributes: false }, 'has no signed attributes'],
    ['detached', { detached: true }, 'does not hold its content inside'],
    ['with two signers, both pinned', { alsoSignedBy: [other] }, 'does not have exactly one signer'],
    ['with SHA-1', { digest: 'sha1' }, 'is not digested with SHA-256'],
    ['with SHA-384', { digest: 'sha384' }, 'is not digested with SHA-256'],
    ['with SHA-512', { digest: 'sha512' }, 'is not digested with SHA-256'],
    ['with MD5', { digest: 'md5' }, 'is not digested with SHA-256'],
    ['under a key identifier', { keyIdentifier: true }, 'does not name its signer by serial number'],
    ['as a time stamp', { contentType: 'id-smime-ct-TSTInfo' }, 'does not hold data'],
    ['with RSA-PSS', { pss: true }, 'is not signed with RSA (PKCS #1 v1.5)'],
  ])('%s is refused: it %s', ([, options, problem]) => {
    expect(verify(options)).toEqual({ ok: false, problem });
  });

  test('in lines, as the metadata service gives it, is canonical base64', () => {
    const text = signIdentityDocument(content, authority);
    expect(Buffer.from(text, 'base64').toString('base64')).toBe(text.replaceAll('\n', ''));
  });
});

describe('what the cases are made of', () => {
  const key = keys['eu-central-1'];
  const certificate = join(folder, 'certificate.pem');
  writeFileSync(certificate, toPem('CERTIFICATE', key.certificate));

  /** Content, or that it is not verified. */
  function opensslReads(signed: Uint8Array): Buffer | undefined {
    const [input, output] = [join(folder, 'message'), join(folder, 'content')];
    writeFileSync(input, signed);
    try {
      execFileSync(
        'openssl',
        // The certificate is pinned: no chain, and none of those inside.
        [
          'cms',
          '-verify',
          '-inform',
          'DER',
          '-in',
          input,
          '-certfile',
          certificate,
          '-nointern',
          '-noverify',
          '-binary',
          '-out',
          output,
        ],
        { stdio: 'ignore', timeout: 30_000 },
      );
      return readFileSync(output);
    } catch {
      return undefined;
    }
  }

  test('is read by OpenSSL', () => {
    expect(opensslReads(signedMessage(content, key))).toEqual(content);
  });

  test('is refused by OpenSSL with other content, and with the signature of another key', () => {
    const substituted = Buffer.from(content.toString().replace('x86_64', 'arm64_'));
    expect(opensslReads(message(substituted, { signers: [signerInfo(content, key)] }))).toBeUndefined();
    expect(opensslReads(signedMessage(content, key, { signedBy: keys['us-east-1'].key }))).toBeUndefined();
  });
});
