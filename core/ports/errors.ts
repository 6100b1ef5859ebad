/** Thrown by adapters when the called service throttles. Any other error counts as unavailable. */
export class ThrottledError extends Error {
  override readonly name = 'ThrottledError';
}

/** Nothing is wrong, but this machine or requester must wait: for the second look, or because of too many requests. */
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
 * Thrown by adapters when a service refuses until an operator changes something: a disabled key, a missing permission, a
 * deleted table. To a client it is temporary like the others.
 */
export class MisconfigurationError extends Error {
  override readonly name = 'MisconfigurationError';
}

/** A new certificate or its CA is defective: nothing is returned, an alarm is raised, the request can be repeated. */
export class CertificateDefectError extends Error {
  override readonly name = 'CertificateDefectError';
}
