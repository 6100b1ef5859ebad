/**
 * Is a certificate of an endorsement key under a root that the operator pinned? TCG's EK Credential Profile says what such a
 * certificate holds. Certificates beside it come from the configuration only.
 */
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import { decodeCertificate } from '../../x509/chain/chain-certificate.ts';
import type { ChainCertificate } from '../../x509/chain/chain-certificate.ts';
import { checkIssuerPurposes, limitsNames, verifyChain } from '../../x509/chain/verify-chain.ts';
import type { Anchors } from '../../x509/chain/verify-chain.ts';
import { extensionType } from '../../x509/model.ts';
import type { EndorsementKey, EndorsementKeyKind } from './endorsement-key.ts';

/** tcg-kp-EKCertificate. */
const endorsementKeyPurpose = '2.23.133.8.1';

/** The problem completes `the certificate of the endorsement key …`. Never throws. */
export async function verifyEkCertificate(
  { kind, certificate }: EndorsementKey,
  anchors: Anchors,
  now: Instant,
): Promise<Result<undefined, string>> {
  if (certificate === undefined) return failure('is missing: the evidence holds the key alone');
  const leaf = decodeCertificate(certificate.der);
  if (!leaf.ok) return leaf;
  const unfit = checkLeaf(leaf.value, kind);
  if (unfit !== undefined) return failure(unfit);
  const path = await verifyChain(leaf.value, [], anchors, now);
  if (!path.ok) return failure(`is not under a root that attestation.tpm names: ${path.problem}`);
  const { certificates } = path.value;
  // Such a certificate names only its manufacturer and its model, and constraints on these names are not judged.
  if (limitsNames(certificates)) return failure('is under a CA that has name constraints');
  const narrow = checkIssuerPurposes(certificates, endorsementKeyPurpose);
  return narrow === undefined ? success(undefined) : failure(`has the wrong issuer: ${narrow}`);
}

function checkLeaf(
  { basicConstraints, extKeyUsage, facts, permits }: ChainCertificate,
  kind: EndorsementKeyKind,
): string | undefined {
  if (basicConstraints?.isCa === true) return 'is the certificate of a CA';
  if (extKeyUsage?.includes(endorsementKeyPurpose) !== true)
    return `is not for endorsement keys (extended key usage ${endorsementKeyPurpose})`;
  // Without keyUsage RFC 5280 permits every use, also that of a key that signs.
  const hasUse = facts.extensions.has(extensionType.keyUsage);
  return hasUse && permits(kind === 'RSA-2048' ? 'keyEncipherment' : 'keyAgreement')
    ? undefined
    : 'does not permit the use of an endorsement key (keyUsage)';
}
