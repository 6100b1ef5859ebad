/**
 * The digest that ties evidence to a request (docs/attestation.md). An attacker can use copied evidence only for the same key,
 * node, signer and deployment.
 *
 *   B = SHA-256( "csr-attest/v1" 00 L(audience) L(signerName) L(nodeName) L(nonce) SHA-256(SPKI) )
 *
 * L(x) is the length of x in bytes (16-bit big-endian), then the UTF-8 bytes of x. We compute B from the request and our own
 * configuration; evidence does not contain it.
 */
import { createHash } from 'node:crypto';
import { sha256 } from '../../encoding/digest.ts';

export interface Bound {
  readonly audience: string;
  readonly signerName: string;
  readonly nodeName: string;
  /** Empty if the provider uses no nonce. */
  readonly nonce: string;
  /** DER SubjectPublicKeyInfo as in the request. */
  readonly spki: Uint8Array;
}

/** Lower-case hex. */
export function bindingDigest({ audience, signerName, nodeName, nonce, spki }: Bound): string {
  const hash = createHash('sha256').update('csr-attest/v1\0', 'latin1');
  for (const text of [audience, signerName, nodeName, nonce]) hash.update(lengthPrefixed(text));
  return hash.update(sha256(spki)).digest('hex');
}

function lengthPrefixed(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'utf8');
  // If the length overflowed, two different sets of fields could have the same bytes.
  if (bytes.length > 0xffff) throw new RangeError('a bound field is longer than 65535 bytes');
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
