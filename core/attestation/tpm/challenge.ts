/**
 * The challenge that proves that attestation key and endorsement key are in one TPM. No challenge is stored: its secret is a MAC
 * with a key that only attest may use.
 *
 *   challenge = version 01 | expiry (48-bit milliseconds) | 16 random bytes
 *   secret    = MAC( K, "csr-attest/challenge/v1" 00 | L(audience) | challenge | SHA-256(SPKI of the EK) | name of the AK )
 *   proof     = HMAC-SHA-256( secret, B )
 *
 * The secret leaves attest only encrypted (make-credential.ts), for the TPM that has both keys. So a right proof also proves that
 * we made the challenge, when we made it, and for which TPM. L is as in binding-digest.ts.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import type { EndorsementKey } from './endorsement-key.ts';

/** The node answers at once, with its next request. */
const lifetime = 120_000;
const version = 1;
const challengeBytes = 1 + 6 + 16;

export function newChallenge(now: Instant, randomBytes: (count: number) => Uint8Array): Uint8Array {
  const head = Buffer.alloc(7);
  head.writeUInt8(version);
  head.writeUIntBE(now + lifetime, 1, 6);
  return Buffer.concat([head, randomBytes(16)]);
}

/** The problem completes `the challenge …`. Whether we made it shows the proof. */
export function checkChallenge(challenge: Uint8Array, now: Instant): Result<{ readonly expiresAt: Instant }, string> {
  if (challenge.length !== challengeBytes || challenge[0] !== version) return failure('is not one of version 1');
  const expiresAt = Buffer.from(challenge).readUIntBE(1, 6);
  // From this instant on the store no longer knows that the challenge was answered.
  return now >= expiresAt ? failure('has expired: the machine must ask for another one') : success({ expiresAt });
}

export interface ChallengedTpm {
  readonly audience: string;
  readonly challenge: Uint8Array;
  readonly endorsementKey: Pick<EndorsementKey, 'hash'>;
  readonly attestationKeyName: Uint8Array;
}

/** The message whose MAC is the secret. The name comes last, because its length depends on its hash. */
export function secretMessage({ audience, challenge, endorsementKey, attestationKeyName }: ChallengedTpm): Uint8Array {
  const text = Buffer.from(audience, 'utf8');
  const length = Buffer.alloc(2);
  length.writeUInt16BE(text.length);
  return Buffer.concat([
    Buffer.from('csr-attest/challenge/v1\0', 'latin1'),
    length,
    text,
    challenge,
    Buffer.from(endorsementKey.hash, 'hex'),
    attestationKeyName,
  ]);
}

/** `binding`: the 32 bytes of B. */
export function isProof(proof: Uint8Array, secret: Uint8Array, binding: Uint8Array): boolean {
  const expected = createHmac('sha256', secret).update(binding).digest();
  return proof.length === expected.length && timingSafeEqual(proof, expected);
}
