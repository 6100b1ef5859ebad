/** The keys under which a lock is stored. */
import type { Lock, LockSubject } from '../../ports/locks.ts';

export function lockOfNode(nodeName: string): LockSubject {
  return `node#${nodeName}`;
}

export function lockOfMachine(identity: string): LockSubject {
  return `id#${identity}`;
}

/** The subjects of a lock: its node name, its machine, or both. */
export function subjectsOf({ nodeName, identity }: Pick<Lock, 'nodeName' | 'identity'>): readonly LockSubject[] {
  if (nodeName === undefined && identity === undefined) throw new TypeError('a lock needs a node name or a machine');
  return [
    ...(nodeName === undefined ? [] : [lockOfNode(nodeName)]),
    ...(identity === undefined ? [] : [lockOfMachine(identity)]),
  ];
}

/** Each lock once: a lock of a machine and its node name is stored under two keys. */
export function oldestFirst(locks: readonly Lock[]): readonly Lock[] {
  const byId = new Map(locks.map((lock) => [lock.id, lock]));
  return [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
