/** Lifetime and serial number of a certificate, by the in-tree signer's rules (docs/signers.md, Lifetime). */
import { CertificateDefectError } from '../ports/errors.ts';
import type { Instant } from '../ports/instant.ts';

/** notBefore is this long before issuance, for machines with slow clocks. */
export const backdatingSeconds = 5 * 60;
/** Backdating is added to a shorter lifetime. From this lifetime on it is included, and shortens the rest by at most about 1 %. */
const shortLifetimeSeconds = 8 * 60 * 60;
/** Shortest lifetime, unless the profile permits only less: twice the backdating. */
const minLifetimeSeconds = 10 * 60;

export interface ValidityInput {
  /** Of the profile; at least 60. */
  readonly maxTtlSeconds: number;
  /** spec.expirationSeconds. */
  readonly expirationSeconds: number | undefined;
  readonly caNotAfter: Instant;
  readonly now: Instant;
}

export interface Validity {
  readonly notBefore: Instant;
  readonly notAfter: Instant;
}

/** In whole seconds: milliseconds are cut off, as in Go. Throws if the CA has expired: only an operator can help. */
export function validity({ maxTtlSeconds, expirationSeconds, caNotAfter, now }: ValidityInput): Validity {
  if (now >= caNotAfter) throw new CertificateDefectError(`the CA expired at ${new Date(caNotAfter).toISOString()}`);
  const ttl = lifetimeSeconds(maxTtlSeconds, expirationSeconds);
  const seconds = Math.floor(now / 1000);
  const end = seconds + (ttl < shortLifetimeSeconds ? ttl : ttl - backdatingSeconds);
  return {
    notBefore: (seconds - backdatingSeconds) * 1000,
    // A chain is valid only while every certificate in it is valid, so a leaf must not outlive its CA.
    notAfter: Math.min(end * 1000, caNotAfter),
  };
}

/** The lifetime without backdating, and without the end of the CA. `expirationSeconds`: spec.expirationSeconds. */
export function lifetimeSeconds(maxTtlSeconds: number, expirationSeconds: number | undefined): number {
  return Math.min(maxTtlSeconds, Math.max(minLifetimeSeconds, expirationSeconds ?? maxTtlSeconds));
}

export const serialOctets = 16;

/**
 * A serial number (RFC 5280 §4.1.2.2) from sixteen strong random octets. The first two bits are set to 01, so that the number
 * is positive and always has the same length. 126 random bits remain; the CA/Browser Forum requires 64.
 */
export function serialFrom(randomBytes: Uint8Array): Uint8Array {
  if (randomBytes.length !== serialOctets) throw new RangeError(`a serial number is made of ${serialOctets} octets`);
  const serial = Uint8Array.from(randomBytes);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return serial;
}
