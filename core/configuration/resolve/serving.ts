/** What an operator may change about kubelet serving certificates: exact reserved names, and approval without a proof. */
import { isProven } from './attestation.ts';
import type { Place } from '../fields/place.ts';
import type { ProfileInput } from '../schema/cluster.ts';
import type { Profile, ProfileKind } from '../../policy/profile.ts';
import type { Reserved } from '../../policy/reserved-names.ts';
import { isRefusedToKubelets } from '../../policy/serving-rules.ts';
import { canonicalAddress } from '../../policy/patterns.ts';

/** The reserved subjectAltNames that this signer may issue, in the form that the rules compare. `at`: their key. */
export function resolveAllowedSans(
  kind: ProfileKind,
  allowed: ProfileInput['sans']['allowReserved'],
  reserved: Reserved,
  at: Place,
): readonly string[] {
  if (allowed === undefined) return [];
  if (kind !== 'kubelet-serving') at.error('is for the kubelet serving signers');
  else
    allowed.forEach((name, index) => {
      if (!isRefusedToKubelets(reserved, name))
        at(index).error('is not reserved: kubelets get it without being listed');
      else at(index).warning('a kubelet that gets this name can stand in for what answers under it');
    });
  return allowed.map(canonical);
}

/** Addresses as in a decoded request, DNS names in lower case. */
function canonical(name: string): string {
  return canonicalAddress(name) ?? name.toLowerCase();
}

/**
 * A serving request holds the names that its kubelet chose. Without an enforced proof of the machine the relay has nothing to
 * compare them with, so its approval would give each node the names of all others. `at`: the cluster.
 */
export function checkServingApproval(
  profiles: ReadonlyMap<string, Profile>,
  approval: ReadonlyMap<string, 'manual' | 'approve'>,
  withoutProof: boolean,
  at: Place,
): void {
  const unproven = [...profiles.values()].filter(
    ({ kind, signerName, attestation }) =>
      kind === 'kubelet-serving' && approval.get(signerName) === 'approve' && !isProven(attestation),
  );
  for (const { signerName } of unproven)
    if (withoutProof)
      at('approval', signerName).warning(
        'without an enforced proof of the machine, each node gets certificates for the names and addresses of all others and can read what the API server sends them',
      );
    else
      at('approval', signerName).error(
        'would give each node certificates for the names and addresses of all others: enforce attestation for this signer, leave approval to a person, or accept it with approveServingWithoutProof: true',
      );
  if (withoutProof && unproven.length === 0)
    at('approveServingWithoutProof').warning('changes nothing here: no serving signer is approved without proof');
}
