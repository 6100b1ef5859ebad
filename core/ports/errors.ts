/** Thrown by adapters when the called service throttles. An error that is not in this file means that the service is unavailable. */
export class ThrottledError extends Error {
  override readonly name = 'ThrottledError';
}

/** This machine or requester must wait: for the second look at a machine, or because it sends too many requests. */
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
 * Thrown when only an operator can help: a disabled key, a missing permission, a deleted table. The client gets `busy` and
 * tries again.
 */
export class MisconfigurationError extends Error {
  override readonly name = 'MisconfigurationError';
}

/** The state of the key forbids its use: it awaits its material, is disabled, or waits for its deletion. */
export class KeyStateError extends MisconfigurationError {}

/** The CA has no certificate yet, so it has issued nothing. */
export class CaNotInForceError extends MisconfigurationError {}

/** A new certificate or its CA is defective. No certificate is returned, an alarm is raised, and the client gets `busy`. */
export class CertificateDefectError extends Error {
  override readonly name = 'CertificateDefectError';
}
