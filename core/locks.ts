/**
 * Locks: an operator bars a node name or a machine (`countersign lock`), and attest and sign refuse every request of
 * it until `countersign unlock`. Both read the locks again for each delivery, with a consistent read.
 */
import type { CertificateRequest } from './csr.ts';
import { nodeUserPrefix } from './in-tree-rules.ts';
import type { RequestObject } from './kubernetes.ts';
import { violation } from './outcome.ts';
import type { Violation } from './outcome.ts';
import type { Instant } from './ports.ts';
import { isSubdomain } from './patterns.ts';
import { quoted } from './quoted.ts';

/** `node#worker-3`, or `id#` and an identity: `id#aws#aws/123456789012/eu-central-1/i-0123456789abcdef0`. */
export type LockSubject = `node#${string}` | `id#${string}`;

/** One decision of an operator. It bars a node name, a machine, or a machine and the node name it has. */
export interface Lock {
  /** ULID, also of its audit item. */
  readonly id: string;
  readonly nodeName?: string;
  readonly identity?: string;
  readonly at: Instant;
  /** The caller's ARN or user name. */
  readonly by: string;
  /** For operators. It is not shown to requesters. */
  readonly reason: string;
}

export interface LockReader {
  /** One consistent read. */
  findLock(subject: LockSubject): Promise<Lock | undefined>;
}

export function lockOfNode(nodeName: string): LockSubject {
  return `node#${nodeName}`;
}

export function lockOfMachine(identity: string): LockSubject {
  return `id#${identity}`;
}

/** What a lock bars: its node name, its machine, or both. */
export function subjectsOf({ nodeName, identity }: Pick<Lock, 'nodeName' | 'identity'>): readonly LockSubject[] {
  if (nodeName === undefined && identity === undefined) throw new TypeError('a lock bars a node name or a machine');
  return [
    ...(nodeName === undefined ? [] : [lockOfNode(nodeName)]),
    ...(identity === undefined ? [] : [lockOfMachine(identity)]),
  ];
}

/**
 * The node names that a request concerns, whichever signer it is for: the requester is that node, or a pod on that node
 * (the API server writes the node of a service account token into spec.extra), or the certificate is for that node.
 */
export function nodesConcerned(
  { username, requesterNodes }: Pick<RequestObject, 'username' | 'requesterNodes'>,
  { subject }: Pick<CertificateRequest, 'subject'>,
): readonly string[] {
  const users = [username, subject.commonName].filter((name) => name.startsWith(nodeUserPrefix));
  const nodes = [...users.map((name) => name.slice(nodeUserPrefix.length)), ...requesterNodes];
  // No Node has another name, and none can be locked. A table's key is bounded, so a longer name could not even be read.
  return [...new Set(nodes)].filter(isSubdomain);
}

/** A token names one node. More could only come from an impersonator, and each costs a read. */
const mostNodes = 8;

/** `Locked` if one of these node names is. A request that concerns no node costs no read. */
export async function checkNodeLocks(nodes: readonly string[], locks: LockReader): Promise<Violation | undefined> {
  if (nodes.length > mostNodes)
    return violation('RequesterNotAllowed', `the request concerns more than ${mostNodes} nodes`);
  const found = await Promise.all(nodes.map((node) => locks.findLock(lockOfNode(node))));
  const at = found.findIndex((lock) => lock !== undefined);
  return at < 0 ? undefined : violation('Locked', `node ${quoted(nodes[at] ?? '')} is locked by an operator`);
}

/** Locks as they are listed: each once, although one that bars two subjects lies under two keys. */
export function oldestFirst(locks: readonly Lock[]): readonly Lock[] {
  const byId = new Map(locks.map((lock) => [lock.id, lock]));
  return [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** The message names no reason: requesters and everyone who may read events see it. */
export const machineLocked = violation('Locked', 'this machine is locked by an operator');
