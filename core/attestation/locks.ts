/**
 * Locks: after `countersign lock`, attest and sign refuse every request of a node name, of a machine or for a key until `countersign unlock`.
 * Both read the locks again for each delivery, with a consistent read.
 */
import { lockOfKey, lockOfNode } from './records/lock-subjects.ts';
import type { LockReader } from '../ports/locks.ts';
import type { CertificateRequest } from '../x509/model.ts';
import { sha256 } from '../encoding/digest.ts';
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
function nodesConcerned(
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

/** `Locked` if an operator locked the requested key or a node that the request concerns. One read for the key, and one for each node. */
export async function checkLocks(
  object: Pick<RequestObject, 'username' | 'requesterNodes'>,
  request: Pick<CertificateRequest, 'subject' | 'publicKey'>,
  locks: LockReader,
): Promise<Violation | undefined> {
  const nodes = nodesConcerned(object, request);
  if (nodes.length > mostNodes)
    return violation('RequesterNotAllowed', `the request concerns more than ${mostNodes} nodes`);
  const key = sha256(request.publicKey.spki).toString('hex');
  const [keyLock, ...nodeLocks] = await Promise.all(
    [lockOfKey(key), ...nodes.map(lockOfNode)].map((subject) => locks.findLock(subject)),
  );
  const at = nodeLocks.findIndex((lock) => lock !== undefined);
  if (at >= 0) return violation('Locked', `node ${quoted(nodes[at] ?? '')} is locked by an operator`);
  return keyLock === undefined ? undefined : keyLocked;
}

/** The messages give no reason: requesters, and users who may read events, see them. */
const keyLocked = violation('Locked', 'this key is locked by an operator; create a new key and a new request');
export const machineLocked = violation('Locked', 'this machine is locked by an operator');
