/** Whom a profile may name: what stands under `subject` in countersign.yaml, checked once, here. */
import type { Path, Report } from '../model/report.ts';
import type { ProfileInput } from '../schema/cluster.ts';
import { nodesGroup, nodeUserPrefix } from '../../policy/in-tree-rules.ts';
import type { Profile } from '../../policy/profile.ts';
import { isReservedName } from '../../policy/reserved-names.ts';
import type { Reserved } from '../../policy/reserved-names.ts';
import { lookalike } from '../../x509/distinguished-name.ts';

const lists = ['commonNames', 'organizations'] as const;

export function resolveSubject(
  kind: Profile['kind'],
  input: ProfileInput['subject'],
  reserved: Reserved,
  at: Path,
  report: Report,
): Pick<Profile, 'allowReserved' | 'subject'> {
  const allowReserved = input?.allowReserved ?? [];
  allowReserved.forEach((name, index) => checkAllowed(name, reserved, [...at, 'allowReserved', index], report));
  for (const list of [...lists, 'allowReserved'] as const)
    input?.[list]?.forEach((name, index) => {
      const fault = lookalike(name);
      if (fault !== undefined)
        report('error', [...at, list, index], `has ${fault} it, and requests with such a name are refused`);
    });
  for (const list of lists)
    input?.[list]?.forEach((pattern, index) => {
      // Every name that such a pattern matches is reserved, since `*` stands for itself here.
      if (isReservedName(reserved, pattern))
        report(
          'error',
          [...at, list, index],
          'names reserved names only, which patterns never permit; list exact ones under allowReserved',
        );
    });
  // A signer of one's own permits what is named and nothing else; the built-in ones what is not reserved.
  const unnamed = kind === 'custom' ? [] : undefined;
  const commonNames = input?.commonNames ?? unnamed;
  const organizations = input?.organizations ?? unnamed;
  if (kind !== 'custom' && commonNames?.length === 0 && allowReserved.length === 0)
    report(
      'error',
      [...at, 'commonNames'],
      'permits no common name: list common names, or exact ones under allowReserved',
    );
  return {
    allowReserved,
    subject: {
      ...(commonNames === undefined ? {} : { commonNames }),
      ...(organizations === undefined ? {} : { organizations }),
      ...(input?.commonNameRequired === true ? { commonNameRequired: true } : {}),
    },
  };
}

/** A reserved name that a signer may give all the same: exact, and never a node's. */
function checkAllowed(name: string, reserved: Reserved, at: Path, report: Report): void {
  if (name === nodesGroup || name.startsWith(nodeUserPrefix))
    report('error', at, 'names of nodes are given by the kubelet signers only');
  else if (name.includes('*')) report('error', at, 'must be an exact name; patterns never permit reserved names');
  else if (!isReservedName(reserved, name))
    report('error', at, 'is not reserved; list it under commonNames or organizations');
  else if (name === 'system:masters')
    report('warning', at, 'a certificate with system:masters bypasses all authorization');
}

/** The lists that limit nothing: absent, or with a pattern that matches every name. */
export function unlimitedLists({ subject }: Pick<Profile, 'subject'>): readonly (typeof lists)[number][] {
  return lists.filter((list) => subject[list]?.some((pattern) => /^\*+$/.test(pattern)) ?? true);
}
