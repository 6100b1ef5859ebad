/**
 * ULID (github.com/ulid/spec): 48 bits of time in milliseconds, 80 random bits, in 26 characters of Crockford's base 32.
 * ULIDs sort by time as text; within one millisecond the order is random.
 */
import type { Instant } from '../../ports/instant.ts';

/** Without I, L, O and U, which look like digits or other letters. */
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const randomOctets = 10;

/** `random`: 10 bytes, cryptographically strong. */
export function ulid(now: Instant, random: Uint8Array): string {
  if (!Number.isSafeInteger(now) || now < 0 || now >= 2 ** 48) throw new RangeError('a ULID has 48 bits of time');
  if (random.length !== randomOctets) throw new RangeError(`a ULID takes ${randomOctets} random bytes`);
  const randomBits = random.reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n);
  return base32(BigInt(now), 10) + base32(randomBits, 16);
}

function base32(value: bigint, characters: number): string {
  let text = '';
  for (let rest = value; text.length < characters; rest >>= 5n) text = alphabet.charAt(Number(rest & 31n)) + text;
  return text;
}
