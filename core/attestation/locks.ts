/**
 * Locks: after `countersign lock`, attest and sign refuse every request of a node name or machine until `countersign unlock`.
 * Both read the locks again for each delivery, with a consistent read.
 */
import { lockOfNode } from './records/lock-subjects.ts';
import type { LockReader } from '../ports/locks.ts';
import type { CertificateRequest } from '../x509/model.ts';
import { nodeUserPrefix } from '../policy/in-tree-rules.ts';
import type { RequestObject } from '../kubernetes/certificate-signing-request.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation } from '../outcome/outcome.ts';
import { isSubdomain } from '../policy/patterns.ts';
import { quoted } from '../outcome/printable-text.ts';

/**
 * The nodes that a request concerns, with any signer: the requester is the node, or a pod on it (the API server writes the
 * node of a service account token into spec.extra), or the certificate is for the node.
 */
export function nodesConcerned(
  { username, requesterNodes }: Pick<RequestObject, 'username' | 'requesterNodes'>,
  { subject }: Pick<CertificateRequest, 'subject'>,
): readonly string[] {
  const users = [username, subject.commonName].filter((name) => name.startsWith(nodeUserPrefix));
  const nodes = [...users.map((name) => name.slice(nodeUserPrefix.length)), ...requesterNodes];
  // No other name can be that of a Node or be locked. A longer name would not fit into a key of the table.
  return [...new Set(nodes)].filter(isSubdomain);
}

/** A token names one node. Only an impersonated requester can have more nodes, and each costs a read. */
const mostNodes = 8;

/** `Locked` if an operator locked one of these node names. A request that concerns no node costs no read. */
export async function checkNodeLocks(nodes: readonly string[], locks: LockReader): Promise<Violation | undefined> {
  if (nodes.length > mostNodes)
    return violation('RequesterNotAllowed', `the request concerns more than ${mostNodes} nodes`);
  const found = await Promise.all(nodes.map((node) => locks.findLock(lockOfNode(node))));
  const at = found.findIndex((lock) => lock !== undefined);
  return at < 0 ? undefined : violation('Locked', `node ${quoted(nodes[at] ?? '')} is locked by an operator`);
}

/** The message gives no reason: requesters, and users who may read events, see it. */
export const machineLocked = violation('Locked', 'this machine is locked by an operator');
