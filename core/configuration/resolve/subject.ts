/** Resolves the key `subject` of a profile: the names that its certificates may have. */
import type { Place } from '../fields/place.ts';
import type { ProfileInput } from '../schema/cluster.ts';
import { nodesGroup, nodeUserPrefix } from '../../policy/in-tree-rules.ts';
import type { Profile } from '../../policy/profile.ts';
import { isReservedName } from '../../policy/reserved-names.ts';
import type { Reserved } from '../../policy/reserved-names.ts';
import { lookalikeFault } from '../../x509/distinguished-name.ts';

const lists = ['commonNames', 'organizations'] as const;

/** `at`: the key `subject`. */
export function resolveSubject(
  kind: Profile['kind'],
  input: ProfileInput['subject'],
  reserved: Reserved,
  at: Place,
): Pick<Profile, 'allowReserved' | 'subject'> {
  const { allowReserved = [], commonNameRequired, ...limits } = input;
  allowReserved.forEach((name, index) => checkAllowed(name, reserved, at('allowReserved', index)));
  for (const list of [...lists, 'allowReserved'] as const)
    input[list]?.forEach((name, index) => {
      const fault = lookalikeFault(name);
      if (fault !== undefined) at(list, index).error(`has ${fault} it, and requests with such a name are refused`);
    });
  for (const list of lists)
    limits[list]?.forEach((pattern, index) => {
      // `*` is an ordinary character here, so the pattern is reserved only if every name that it matches is reserved.
      if (isReservedName(reserved, pattern))
        at(list, index).error(
          'names reserved names only, which patterns never permit; list exact ones under allowReserved',
        );
    });
  if (kind !== 'custom' && limits.commonNames?.length === 0 && allowReserved.length === 0)
    at('commonNames').error('permits no common name: list common names, or exact ones under allowReserved');
  return {
    allowReserved,
    subject: {
      // An operator's own signer permits only what is listed; a built-in one permits all that is not reserved.
      ...(kind === 'custom' ? { commonNames: [], organizations: [] } : {}),
      ...limits,
      ...(commonNameRequired === true ? { commonNameRequired } : {}),
    },
  };
}

/** Checks a reserved name that a signer may issue: it must be exact, and not the name of a node. */
function checkAllowed(name: string, reserved: Reserved, at: Place): void {
  if (name === nodesGroup || name.startsWith(nodeUserPrefix))
    at.error('names of nodes are given by the kubelet signers only');
  else if (name.includes('*')) at.error('must be an exact name; patterns never permit reserved names');
  else if (!isReservedName(reserved, name)) at.error('is not reserved; list it under commonNames or organizations');
  else if (name === 'system:masters') at.warning('a certificate with system:masters bypasses all authorization');
}

/** The lists that limit nothing: absent, or with a pattern that matches every name. */
export function unlimitedLists({ subject }: Pick<Profile, 'subject'>): readonly (typeof lists)[number][] {
  return lists.filter((list) => subject[list]?.some((pattern) => /^\*+$/.test(pattern)) ?? true);
}
