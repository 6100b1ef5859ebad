/** What an operator may change about kubelet serving certificates: exact reserved names, and approval without a proof. */
import { isProven } from './attestation.ts';
import type { Path, Report } from '../model/report.ts';
import type { ProfileInput } from '../schema/cluster.ts';
import { parseAddress } from '../../policy/patterns.ts';
import type { Profile, ProfileKind } from '../../policy/profile.ts';
import type { Reserved } from '../../policy/reserved-names.ts';
import { isRefusedToKubelets } from '../../policy/serving-rules.ts';
import { ipText } from '../../x509/subject-alt-names.ts';

/** The reserved subjectAltNames that this signer gives all the same, as the rules compare them. `at`: the key `sans`. */
export function resolveAllowedSans(
  kind: ProfileKind,
  sans: ProfileInput['sans'],
  reserved: Reserved,
  at: Path,
  report: Report,
): readonly string[] {
  const place = [...at, 'allowReserved'];
  if (sans?.allowReserved === undefined) return [];
  if (kind !== 'kubelet-serving') report('error', place, 'is for the kubelet serving signers');
  else
    sans.allowReserved.forEach((name, index) => {
      if (!isRefusedToKubelets(reserved, name))
        report('error', [...place, index], 'is not reserved: kubelets get it without being listed');
      else report('warning', [...place, index], 'a kubelet that gets this name can stand in for what answers under it');
    });
  return sans.allowReserved.map(canonical);
}

/** Addresses as in a decoded request, DNS names in lower case. */
function canonical(name: string): string {
  const digits = parseAddress(name);
  return (digits === undefined ? undefined : ipText(Buffer.from(digits, 'hex'))) ?? name.toLowerCase();
}

/**
 * A serving request holds what its kubelet wrote into it. Where no proof of the machine is enforced, the relay has nothing to
 * compare that with, so its approval gives each node the names of all others.
 */
export function checkServingApproval(
  profiles: ReadonlyMap<string, Profile>,
  approval: ReadonlyMap<string, 'manual' | 'approve'>,
  withoutProof: boolean | undefined,
  report: Report,
): void {
  const unproven = [...profiles.values()].filter(
    ({ kind, signerName, attestation }) =>
      kind === 'kubelet-serving' && approval.get(signerName) === 'approve' && !isProven(attestation),
  );
  for (const { signerName } of unproven)
    if (withoutProof === true)
      report(
        'warning',
        ['approval', signerName],
        'without an enforced proof of the machine, each node gets certificates for the names and addresses of all others and can read what the API server sends them',
      );
    else
      report(
        'error',
        ['approval', signerName],
        'would give each node certificates for the names and addresses of all others: enforce attestation for this signer, leave approval to a person, or accept it with approveServingWithoutProof: true',
      );
  if (withoutProof === true && unproven.length === 0)
    report(
      'warning',
      ['approveServingWithoutProof'],
      'changes nothing here: no serving signer is approved without proof',
    );
}
