import { randomBytes, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { generateKey, embeddedSigner, publicKeyInfo } from '../../../../adapters/embedded/signer.ts';
import { makeCaCertificate } from '../../../../core/ca/make-ca-certificate.ts';
import { caConfiguration } from '../../../../core/configuration/parse.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { trustOf } from '../../../../core/rotation/anchors.ts';
import { now } from './world.ts';

const key = await generateKey('P-256');

/** Certificates of one key. */
async function certificate(commonName: string, at = now): Promise<Uint8Array> {
  const ca = caConfiguration('ca', { subject: { commonName } });
  if (!ca.ok || ca.value.kind === 'imported') throw new Error('wrong');
  return makeCaCertificate(ca.value, publicKeyInfo(key), { signer: embeddedSigner(key) }, { now: at, randomBytes });
}
const pem = (der: Uint8Array) => toPem('CERTIFICATE', der);

const issuer = { certificate: await certificate('A'), chain: [] };
const trusted = (bundle: string) => trustOf(bundle, issuer, []);

test('another certificate of the same name and key is trusted like the CA; of another name it is not', async () => {
  expect(trusted(pem(issuer.certificate))).toEqual({ trusted: true, own: true });
  expect(trusted(pem(await certificate('A', now - 1_000)))).toEqual({ trusted: true, own: true });
  expect(trusted(pem(await certificate('B')))).toEqual({ trusted: false, own: false });
  expect(trusted('')).toEqual({ trusted: false, own: false });
});

test('a certificate with its key that this reader refuses and another may take is not gone', () => {
  // An extension twice: the last one is repeated, so the lengths above it are one shorter than what follows.
  const trailing = Buffer.concat([issuer.certificate, Buffer.from([0])]);
  expect(() => new X509Certificate(issuer.certificate)).not.toThrow();
  expect(trusted(pem(trailing))).toEqual({ trusted: false, own: true });
});
