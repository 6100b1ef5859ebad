/** Whether an attestation certificate is under a root of the operator's, where the operator names roots. */
import type { Instant } from '../../ports/instant.ts';
import { decodeCertificate } from '../../x509/chain/chain-certificate.ts';
import { checkSigner, readAnchors, verifyChain } from '../../x509/chain/verify-chain.ts';

interface Trust {
  /** PEM, one certificate each. */
  readonly roots: readonly string[];
  readonly intermediates: readonly string[];
}

/** The problem is a whole clause; `undefined`: the certificate is under a root. */
export type ChainCheck = (der: Uint8Array, now: Instant) => Promise<string | undefined>;

/** Throws if a certificate of the configuration cannot be used. */
export function chainCheck({ roots, intermediates }: Trust): ChainCheck {
  const named = [{ name: 'roots', certificates: roots }];
  const anchors = readAnchors('attestation.gce-vtpm', { roots: named, intermediates });
  return async (der, now) => {
    const leaf = decodeCertificate(der);
    if (!leaf.ok) return `the attestation certificate ${leaf.problem}`;
    const unfit = checkSigner(leaf.value);
    if (unfit !== undefined) return `the attestation certificate ${unfit}`;
    // The dialect has no place for other certificates.
    const path = await verifyChain(leaf.value, [], anchors, now);
    return path.ok
      ? undefined
      : `the attestation certificate is not under a root (attestation.gce-vtpm.roots): ${path.problem}`;
  };
}
