import type { LockReader } from '../../../core/ports/locks.ts';

/** A cluster in which nothing is locked, for tests of other things. */
export const noLocks: LockReader = { findLock: async () => undefined };
