/** One short value for all rules of a cluster, so that an operator sees whether an endpoint applies the rules of a file. */
import { sha256 } from '../encoding/digest.ts';
import type { ClusterConfiguration } from './model/cluster.ts';

/**
 * SHA-256, in lower-case hex, of the resolved rules of one cluster: its name, CAs, profiles, approval, attestation and kubeadm. The
 * order of keys in the file and comments do not change it, and neither does what another cluster of the file has. A release that
 * adds a rule or changes a default changes it: compare only values of the same version.
 *
 * `cluster`: as it was read from a file. The bundle of a function has only a part of the rules, so it holds this value too.
 */
export function rulesFingerprint({
  name,
  cas,
  profiles,
  approval,
  attestation,
  kubeadm,
}: ClusterConfiguration): string {
  const rules = { name, cas, profiles, approval, attestation, kubeadm };
  return sha256(Buffer.from(JSON.stringify(canonical(rules)), 'utf8')).toString('hex');
}

/** For people: enough to tell two versions of a file apart, not against an attacker who seeks a collision. */
export function shortFingerprint(fingerprint: string): string {
  return fingerprint.slice(0, 16);
}

/** Entries of maps and objects in the order of their keys. Lists keep theirs: in some of them the first match decides. */
function canonical(value: unknown): unknown {
  if (value instanceof Map) return sortedEntries([...(value as ReadonlyMap<unknown, unknown>)]);
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(sortedEntries(Object.entries(value)));
}

function sortedEntries(entries: readonly (readonly [unknown, unknown])[]): [string, unknown][] {
  const texts = entries.map(([key, value]): [string, unknown] => [String(key), canonical(value)]);
  return texts.toSorted(([a], [b]) => (a < b ? -1 : 1));
}
