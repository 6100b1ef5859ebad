/** The oracle of locks: what was locked before a call began, and still is, that call may not sign, give out or approve. */
import { lockOfMachine, lockOfNode, subjectsOf } from '../../../core/attestation/records/lock-subjects.ts';
import type { Lock, LockSubject } from '../../../core/ports/locks.ts';
import { nodeUserPrefix } from '../../../core/policy/in-tree-rules.ts';
import type { Process, Runtime } from '../runtime.ts';
import type { GroundTruth } from '../ground-truth.ts';

export interface LockOracle {
  /** `register.lock` has returned. */
  locked(lock: Lock): void;
  /** `register.unlock` is about to be called. */
  unlocked(lock: Lock): void;
  /** What of this request was locked before that call began and is locked now. */
  against(process: Process, truth: GroundTruth, identity: string | undefined): LockSubject | undefined;
  /** Whether its node or machine was locked at any time. */
  ever(truth: GroundTruth): boolean;
}

export function createLockOracle({ timeline }: Runtime): LockOracle {
  const since = new Map<LockSubject, number>();
  const past = new Set<LockSubject>();

  function subjects({ byNode, username, node, machine }: GroundTruth, identity = machine): readonly LockSubject[] {
    return [
      ...(node === undefined ? [] : [lockOfNode(node)]),
      ...(byNode ? [lockOfNode(username.slice(nodeUserPrefix.length))] : []),
      ...(identity === undefined ? [] : [lockOfMachine(identity)]),
    ];
  }

  return {
    locked(lock) {
      for (const subject of subjectsOf(lock)) {
        since.set(subject, timeline.now());
        past.add(subject);
      }
    },
    unlocked(lock) {
      for (const subject of subjectsOf(lock)) since.delete(subject);
    },
    against: ({ startedAt }, truth, identity) =>
      subjects({ ...truth, ...(identity === undefined ? {} : { machine: identity }) }).find((subject) => {
        if (subject.startsWith('id#') && identity === undefined) return false;
        return (since.get(subject) ?? Infinity) < startedAt;
      }),
    ever: (truth) => subjects(truth).some((subject) => past.has(subject)),
  };
}
