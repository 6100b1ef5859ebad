/** What `countersign lock`, `unlock` and `locks` print. Names and reasons are untrusted text. */
import type { Lock, LockSubject } from '../../core/ports/locks.ts';
import { printable } from '../../core/outcome/printable-text.ts';
import { table } from './output.ts';
import { instantText, longText } from './tofu-text.ts';

export function subjectText(subject: LockSubject): string {
  return subject.startsWith('node#')
    ? `node ${longText(subject.slice('node#'.length))}`
    : `machine ${longText(subject.slice('id#'.length))}`;
}

export function shownLock({ id, nodeName, identity, at, by, reason }: Lock): object {
  return { id, node: nodeName, identity, at: instantText(at), by, reason };
}

export function locksTable(locks: readonly Lock[]): string {
  return table([
    ['NODE', 'MACHINE', 'SINCE', 'BY', 'REASON'],
    ...locks.map(({ nodeName, identity, at, by, reason }) => [
      nodeName === undefined ? '-' : printable(nodeName),
      identity === undefined ? '-' : longText(identity),
      instantText(at),
      longText(by),
      longText(reason),
    ]),
  ]);
}

/** A lock does not revoke certificates that were issued, so the operator reads here what to do about those. */
export function afterLockText({ nodeName }: Lock): string {
  const node = nodeName === undefined ? '<its node name>' : longText(nodeName);
  return `No new certificate: attest and sign refuse its requests. A signature under way may still end, within 25 seconds.

Certificates that it has stay valid until they expire, since the API server reads no revocation lists. With them it can
read the Secrets and ConfigMaps of the pods bound to it, get tokens for their service accounts, write its own Node and
their status, and serve logs and exec. To end that:
  1. stop the machine, or cut its network to the API servers
  2. kubectl delete node ${node}     (its pods move; a kubelet that still runs registers again)
  3. kubectl get csr | grep ${node}  (approve none of these; delete them)
  4. deny its certificate: an AuthorizationConfiguration can, without a restart of the API server
  5. replace the Secrets that its pods could read
Each step with its commands: docs/lock.md
`;
}
