import type { Instant } from './instant.ts';

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
