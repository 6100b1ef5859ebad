/** Matches the patterns of a profile with the user and groups of the requester (spec.username, spec.groups). */
import { nameMatches } from './patterns.ts';
import type { Profile } from './profile.ts';

type Patterns = Pick<Profile['requester'], 'users' | 'groups'>;

/** One match among users or groups is enough. */
export function matchesRequester({ users, groups }: Patterns, username: string, memberOf: readonly string[]): boolean {
  return (
    users.some((pattern) => nameMatches(pattern, username)) ||
    groups.some((pattern) => memberOf.some((group) => nameMatches(pattern, group)))
  );
}

interface Probe {
  /** For the message: `would approve what … asks for`. */
  readonly who: string;
  readonly username: string;
  readonly groups: readonly string[];
}

const authenticated = 'system:authenticated';
/** A name that no operator would configure: `.invalid` is never registered (RFC 2606). */
const inventedName = 'probe-6f1c';

/**
 * One invented requester of each kind that the API server knows (k8s.io/apiserver/pkg/authentication/user, serviceaccount,
 * bootstrap tokens). A pattern that matches one of them permits every user, pod, node or token.
 */
const probes: readonly Probe[] = [
  { who: 'any user', username: inventedName, groups: [authenticated] },
  { who: 'any user', username: `${inventedName}@${inventedName}.invalid`, groups: [authenticated] },
  { who: 'an unauthenticated user', username: 'system:anonymous', groups: ['system:unauthenticated'] },
  ...[inventedName, 'default'].map((account) => ({
    who: 'any service account',
    username: `system:serviceaccount:${inventedName}:${account}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${inventedName}`, authenticated],
  })),
  { who: 'any node', username: `system:node:${inventedName}`, groups: ['system:nodes', authenticated] },
  {
    who: 'any bootstrap token',
    username: 'system:bootstrap:6f1c00',
    groups: ['system:bootstrappers', `system:bootstrappers:${inventedName}`, authenticated],
  },
];

/** The kind of requesters that the patterns permit without exception, or `undefined`. Two empty lists permit every user. */
export function letsInAll({ users, groups }: Patterns): string | undefined {
  if (users.length + groups.length === 0) return 'any user';
  return probes.find((probe) => matchesRequester({ users, groups }, probe.username, probe.groups))?.who;
}
