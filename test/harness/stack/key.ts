import { X509Certificate } from 'node:crypto';
import type { Authority } from '../../../core/x509/leaf-certificate.ts';
import type { Signer } from '../../../core/ports/signer.ts';
import { embeddedSigner } from '../../../adapters/embedded/signer.ts';
import { createTestAuthority } from '../x509/test-certificates.ts';

/** A CA whose key counts: what was signed is known at the key itself, whatever the handler believes. */
export interface CountingAuthority {
  readonly authority: Authority;
  readonly certificatePem: string;
  /** Each TBS in the order it was signed; the same again when it was signed again. */
  readonly signed: readonly Uint8Array[];
  reset(): void;
}

export async function createCountingAuthority(commonName = 'the CA under test'): Promise<CountingAuthority> {
  const { certificatePem, keyPem } = await createTestAuthority(commonName);
  const key = embeddedSigner(keyPem);
  const signed: Uint8Array[] = [];
  const signer: Signer = {
    keyId: key.keyId,
    algorithm: key.algorithm,
    async sign(tbs) {
      signed.push(Uint8Array.from(tbs));
      return key.sign(tbs);
    },
  };
  return {
    authority: {
      name: 'ca',
      certificate: new Uint8Array(new X509Certificate(certificatePem).raw),
      intermediates: [],
      signer,
    },
    certificatePem,
    signed,
    reset: () => void signed.splice(0),
  };
}

/** Which contents were signed, each once. */
export function contents(signed: readonly Uint8Array[]): string[] {
  return [...new Set(signed.map((tbs) => Buffer.from(tbs).toString('hex')))];
}

/** The TBSCertificate inside a certificate: the first element of the outer SEQUENCE, as it stands. RFC 5280 §4.1 */
export function tbsOf(certificateDer: Uint8Array): string {
  const der = Buffer.from(certificateDer);
  const start = headerLength(der, 0);
  const end = start + headerLength(der, start) + contentLength(der, start);
  return der.subarray(start, end).toString('hex');
}

function headerLength(der: Buffer, at: number): number {
  const first = der[at + 1] ?? 0;
  return first < 0x80 ? 2 : 2 + (first & 0x7f);
}

function contentLength(der: Buffer, at: number): number {
  const first = der[at + 1] ?? 0;
  return first < 0x80 ? first : der.readUIntBE(at + 2, first & 0x7f);
}
