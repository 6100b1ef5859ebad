/** Lifetime and serial number of a certificate, by the in-tree signer's rules (docs/signers.md, Lifetime). */
import { CertificateDefectError } from '../ports/errors.ts';
import type { Instant } from '../ports/instant.ts';

/** Certificates begin in the past, for machines whose clocks are slow. Seconds. */
export const backdate = 5 * 60;
/** From this lifetime on, backdating shortens the remaining time (by at most 1 %); below it, it is added. Seconds. */
const short = 8 * 60 * 60;
/** Shortest lifetime, unless the profile permits less: twice the backdating. Seconds. */
const minimum = 10 * 60;

export interface LifetimeQuestion {
  /** The profile's, at least 60. */
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

/** In whole seconds: fractions are cut off, as in Go. Throws if the CA has expired: only an operator can help. */
export function validity({ maxTtlSeconds, expirationSeconds, caNotAfter, now }: LifetimeQuestion): Validity {
  if (now >= caNotAfter) throw new CertificateDefectError(`the CA expired at ${new Date(caNotAfter).toISOString()}`);
  const ttl = Math.min(maxTtlSeconds, Math.max(minimum, expirationSeconds ?? maxTtlSeconds));
  const seconds = Math.floor(now / 1000);
  const end = seconds + (ttl < short ? ttl : ttl - backdate);
  return {
    notBefore: (seconds - backdate) * 1000,
    // A chain is valid only while every certificate in it is valid, so a leaf must not outlive its CA.
    notAfter: Math.min(end * 1000, caNotAfter),
  };
}

export const serialOctets = 16;

/**
 * A serial number (RFC 5280 §4.1.2.2) from sixteen strong random octets. The first two bits are set to 01, so that it is
 * positive and always has the same length. 126 random bits remain; the CA/Browser Forum demands 64.
 */
export function serialFrom(randomBytes: Uint8Array): Uint8Array {
  if (randomBytes.length !== serialOctets) throw new RangeError(`a serial number is made of ${serialOctets} octets`);
  const serial = Uint8Array.from(randomBytes);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return serial;
}
