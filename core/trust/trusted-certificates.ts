/**
 * Which certificates a verifier must hold to accept the certificates of one signer, and no others (docs/ca/trust.md): during a
 * rotation those of the old and of the new CA.
 */
import type { CaRecord } from '../ca/authority.ts';
import type { CaConfiguration } from '../configuration/model/cluster.ts';
import { generationsOf } from '../configuration/model/generations.ts';
import type { Profile } from '../policy/profile.ts';
import { permitsClientCertificates } from '../policy/signer-names.ts';

export interface TrustedCertificate {
  /** The CA's name in countersign.yaml. */
  readonly ca: string;
  /** DER: the certificate of this CA, or of its root. */
  readonly certificate: Uint8Array;
}

/**
 * The oldest CA first. `records`: those of the CAs in force; the others have issued nothing and are left out. So the list is empty
 * if no CA of the signer is in force, and an empty list must not be distributed.
 */
export function trustedCertificates(
  profile: Pick<Profile, 'ca' | 'kind' | 'custom'>,
  cas: ReadonlyMap<string, Pick<CaConfiguration, 'name' | 'replaces'>>,
  records: ReadonlyMap<string, Pick<CaRecord, 'certificate' | 'chain'>>,
): readonly TrustedCertificate[] {
  // With its root as anchor, a client certificate of every other CA below the root would be a login.
  const issuingCa = permitsClientCertificates(profile);
  const trusted = new Map<string, TrustedCertificate>();
  for (const ca of generationsOf(profile.ca, cas)) {
    const record = records.get(ca);
    if (record === undefined) continue;
    const certificate = issuingCa ? record.certificate : (record.chain.at(-1) ?? record.certificate);
    // Old and new CA may have the same root.
    const text = Buffer.from(certificate).toString('base64');
    if (!trusted.has(text)) trusted.set(text, { ca, certificate });
  }
  return [...trusted.values()];
}
