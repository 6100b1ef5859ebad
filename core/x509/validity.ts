/** How long a certificate lives, and what number it bears. The in-tree signer's rules; signers.md, Lifetime. */
import { certificateFacts } from './read-certificate.ts';
import type { Instant } from '../ports/instant.ts';

/** Certificates start in the past, for machines whose clocks run late. Seconds. */
export const backdate = 5 * 60;
/** From here on the time given away at the start is taken off the end: 1 % of the life. Below it is added. Seconds. */
const short = 8 * 60 * 60;
/** Nobody gets less, unless the profile itself gives less: twice the backdating. Seconds. */
const minimum = 10 * 60;

export interface LifetimeQuestion {
  /** The profile's, at least 60. */
  readonly maxTtlSeconds: number;
  /** spec.expirationSeconds. */
  readonly expirationSeconds: number | undefined;
  readonly caNotAfter: Instant;
  readonly now: Instant;
}

/** Whole seconds: fractions are cut off, as in Go. */
export type Validity =
  | { readonly ok: true; readonly notBefore: Instant; readonly notAfter: Instant }
  /** The CA's time is over: an operator must act, no requester can. */
  | { readonly ok: false; readonly why: string };

export function validity({ maxTtlSeconds, expirationSeconds, caNotAfter, now }: LifetimeQuestion): Validity {
  if (now >= caNotAfter) return { ok: false, why: `the CA expired at ${new Date(caNotAfter).toISOString()}` };
  const ttl = Math.min(maxTtlSeconds, Math.max(minimum, expirationSeconds ?? maxTtlSeconds));
  const seconds = Math.floor(now / 1000);
  const end = seconds + (ttl < short ? ttl : ttl - backdate);
  return {
    ok: true,
    notBefore: (seconds - backdate) * 1000,
    // A chain is valid while all of it is: a leaf that outlives its CA promises what nobody keeps.
    notAfter: Math.min(end * 1000, caNotAfter),
  };
}

/** Read once per CA certificate held in memory. */
const ends = new WeakMap<Uint8Array, Instant>();

export function notAfterOf(certificate: Uint8Array): Instant {
  const end = ends.get(certificate) ?? certificateFacts(certificate).notAfter;
  ends.set(certificate, end);
  return end;
}

export const serialOctets = 16;

/**
 * Sixteen octets of a strong random source → a serial number (RFC 5280 §4.1.2.2). The first two bits are set to 01, so
 * that it is positive, not zero, and always the same length; 126 random bits remain, far above the 64 asked by anyone.
 */
export function serialFrom(randomBytes: Uint8Array): Uint8Array {
  if (randomBytes.length !== serialOctets) throw new RangeError(`a serial number is made of ${serialOctets} octets`);
  const serial = Uint8Array.from(randomBytes);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return serial;
}
