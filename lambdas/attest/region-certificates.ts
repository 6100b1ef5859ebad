import type { RegionCertificates } from '../../core/attestation/aws/endpoints.ts';

/** JSON text of the certificates that AWS signs identity documents with, by region; inserted by the bundler. */
declare const __COUNTERSIGN_REGION_CERTIFICATES__: string | undefined;

/** DER, by region. The bundler compared each certificate with its pin. */
export function regionCertificates(): RegionCertificates {
  if (typeof __COUNTERSIGN_REGION_CERTIFICATES__ === 'undefined')
    throw new Error('this bundle was made without region certificates');
  const byRegion = JSON.parse(__COUNTERSIGN_REGION_CERTIFICATES__) as Readonly<Record<string, readonly string[]>>;
  return new Map(
    Object.entries(byRegion).map(([region, list]) => [region, list.map((der) => Buffer.from(der, 'base64'))]),
  );
}
