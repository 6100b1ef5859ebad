import type { Instant } from './instant.ts';

/** `node#worker-3`, or `id#` and an identity: `id#aws#aws/123456789012/eu-central-1/i-0123456789abcdef0`. */
export type LockSubject = `node#${string}` | `id#${string}`;

/** An operator's decision to refuse every request of a node name, of a machine, or of a machine and its node name. */
export interface Lock {
  /** ULID; the audit item of the lock has the same id. */
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
