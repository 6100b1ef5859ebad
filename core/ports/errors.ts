/** Thrown by adapters when the far side asks to slow down; anything else thrown counts as unavailable. */
export class ThrottledError extends Error {
  override readonly name = 'ThrottledError';
}

/**
 * Thrown where nothing is wrong and it is only too early: for a second look, or for one more request of the same machine
 * or requester. It says nothing of what others may ask.
 */
export class LaterError extends Error {
  override readonly name = 'LaterError';
  readonly why: 'SecondLook' | 'Limited';
  readonly afterMilliseconds: number;
  constructor(why: LaterError['why'], message: string, afterMilliseconds: number) {
    super(message);
    this.why = why;
    this.afterMilliseconds = afterMilliseconds;
  }
}

/**
 * Thrown by adapters when the far side says no and will say so until an operator changes something: a key that is
 * disabled, a permission that is missing, a table that is gone. To a client it is temporary like the rest.
 */
export class MisconfigurationError extends Error {
  override readonly name = 'MisconfigurationError';
}

/** Something of ours or the CA's is broken: no certificate leaves, an alarm is raised, the request stays retryable. */
export class CertificateDefectError extends Error {
  override readonly name = 'CertificateDefectError';
}
