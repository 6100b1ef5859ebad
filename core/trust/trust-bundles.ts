/** What `…/trust-bundles` answers, and what a relay takes of it: PEM of CA certificates, by signer. */
import { isObject, parsedObject } from '../encoding/json-object.ts';
import { decodePem, toPem } from '../encoding/pem.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { readCertificate } from '../x509/read-certificate.ts';

export interface SignerBundle {
  readonly signerName: string;
  readonly pem: string;
}

/** A signer without certificates is left out. */
export function encodeTrustBundles(cluster: string, bundles: readonly SignerBundle[]): string {
  const signers = bundles.filter(({ pem }) => pem !== '').map(({ signerName, pem }) => [signerName, pem] as const);
  return JSON.stringify({ cluster, signers: Object.fromEntries(signers) });
}

/** More generations of one signer are never trusted at once. */
const maxCertificates = 16;

/**
 * By signer. One entry that is no bundle makes the whole answer a problem: what wrote it is not the sign function of this version,
 * and what the other entries say is then not known either.
 */
export function decodeTrustBundles(body: Uint8Array, cluster: string): Result<ReadonlyMap<string, string>, string> {
  const answer = parsedObject(Buffer.from(body).toString('utf8'));
  if (answer?.['cluster'] !== cluster) return failure('is not about this cluster');
  const { signers } = answer;
  if (!isObject(signers)) return failure('has no signers');
  const bundles = new Map<string, string>();
  for (const [signerName, pem] of Object.entries(signers)) {
    if (typeof pem !== 'string' || !isBundle(pem)) return failure('has a bundle that is not PEM of CA certificates');
    bundles.set(signerName, pem);
  }
  return success(bundles);
}

/** Exactly what `toPem` writes, at least one certificate and each once, because other readers take more than that. */
function isBundle(pem: string): boolean {
  const ders = pem.split(/(?<=-----END CERTIFICATE-----\n)/).map((block) => {
    const decoded = decodePem(Buffer.from(block), ['CERTIFICATE']);
    return decoded.ok ? decoded.value[0]?.content : undefined;
  });
  const certificates = ders.filter((der) => der !== undefined);
  return (
    certificates.length === ders.length &&
    ders.length <= maxCertificates &&
    new Set(pem.split(/(?<=-----END CERTIFICATE-----\n)/)).size === ders.length &&
    certificates.map((der) => toPem('CERTIFICATE', der)).join('') === pem &&
    certificates.every(isCaCertificate)
  );
}

function isCaCertificate(der: Uint8Array): boolean {
  const read = readCertificate(der);
  return read.ok && read.value.isCa;
}
