import type { Instant } from './instant.ts';

/**
 * `node#worker-3`; `id#` and an identity: `id#aws#aws/123456789012/eu-central-1/i-0123456789abcdef0`; or `key#` and the SHA-256 of a
 * SubjectPublicKeyInfo (DER) in lower-case hex.
 */
export type LockSubject = `node#${string}` | `id#${string}` | `key#${string}`;

/** An operator's decision to refuse every request of a node name, of a machine, of both, or for a key. */
export interface Lock {
  /** ULID; the audit item of the lock has the same id. */
  readonly id: string;
  readonly nodeName?: string;
  readonly identity?: string;
  /** SHA-256 of the SubjectPublicKeyInfo, lower-case hex. A lock of a key covers nothing else. */
  readonly spkiSha256?: string;
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
