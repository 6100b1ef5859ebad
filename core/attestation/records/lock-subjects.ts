/** The keys under which a lock is stored. */
import type { Lock, LockSubject } from '../../ports/locks.ts';

export function lockOfNode(nodeName: string): LockSubject {
  return `node#${nodeName}`;
}

export function lockOfMachine(identity: string): LockSubject {
  return `id#${identity}`;
}

export function lockOfKey(spkiSha256: string): LockSubject {
  return `key#${spkiSha256}`;
}

/** What a lock covers. */
export type Locked = Pick<Lock, 'nodeName' | 'identity' | 'spkiSha256'>;

/** The subjects of a lock: its node name, its machine, or both; or its key. */
export function subjectsOf({ nodeName, identity, spkiSha256 }: Locked): readonly LockSubject[] {
  if (nodeName === undefined && identity === undefined && spkiSha256 === undefined)
    throw new TypeError('a lock needs a node name, a machine or a key');
  return [
    ...(nodeName === undefined ? [] : [lockOfNode(nodeName)]),
    ...(identity === undefined ? [] : [lockOfMachine(identity)]),
    ...(spkiSha256 === undefined ? [] : [lockOfKey(spkiSha256)]),
  ];
}

/** Each lock once: a lock of a machine and its node name is stored under two keys. */
export function oldestFirst(locks: readonly Lock[]): readonly Lock[] {
  const byId = new Map(locks.map((lock) => [lock.id, lock]));
  return [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
