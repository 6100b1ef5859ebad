/**
 * What every Signer must do, wherever its key lies: core/ports/ as tests. The embedded key and the one in KMS run the
 * same suite.
 */
import { constants, createPublicKey, randomBytes, verify } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SignatureAlgorithm, Signer } from '../../core/ports/signer.ts';

export interface SignerUnderTest {
  readonly signer: Signer;
  /** DER SubjectPublicKeyInfo of its key, learnt by another way than through the signer. */
  readonly publicKey: Uint8Array;
  /** The same kind of signer, whose far side says no: key disabled, connection refused … */
  readonly broken: Signer;
  /** Is there a log of the far side in which each signature has a name? */
  readonly logged: boolean;
  readonly close: () => Promise<void>;
}

/** Written out from RFC 5758 and RFC 8017 again: the expected values must not come from the code under test. */
const expected: Readonly<
  Record<SignatureAlgorithm, { hash: string; keyType: 'ec' | 'rsa'; padding?: number; salt?: number }>
> = {
  ECDSA_SHA_256: { hash: 'sha256', keyType: 'ec' },
  ECDSA_SHA_384: { hash: 'sha384', keyType: 'ec' },
  ECDSA_SHA_512: { hash: 'sha512', keyType: 'ec' },
  RSASSA_PKCS1_V1_5_SHA_256: { hash: 'sha256', keyType: 'rsa', padding: constants.RSA_PKCS1_PADDING },
  RSASSA_PKCS1_V1_5_SHA_384: { hash: 'sha384', keyType: 'rsa', padding: constants.RSA_PKCS1_PADDING },
  RSASSA_PKCS1_V1_5_SHA_512: { hash: 'sha512', keyType: 'rsa', padding: constants.RSA_PKCS1_PADDING },
  RSASSA_PSS_SHA_256: { hash: 'sha256', keyType: 'rsa', padding: constants.RSA_PKCS1_PSS_PADDING, salt: 32 },
  RSASSA_PSS_SHA_384: { hash: 'sha384', keyType: 'rsa', padding: constants.RSA_PKCS1_PSS_PADDING, salt: 48 },
  RSASSA_PSS_SHA_512: { hash: 'sha512', keyType: 'rsa', padding: constants.RSA_PKCS1_PSS_PADDING, salt: 64 },
};

export const signatureAlgorithms = Object.keys(expected) as SignatureAlgorithm[];

/** Does this signature hold, by node:crypto and the exact parameters of the algorithm? */
export function signatureVerifies(
  algorithm: SignatureAlgorithm,
  spki: Uint8Array,
  tbs: Uint8Array,
  signature: Uint8Array,
): boolean {
  const { hash, keyType, padding, salt } = expected[algorithm];
  const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  if (key.asymmetricKeyType !== keyType) return false;
  return verify(
    hash,
    tbs,
    {
      key,
      ...(keyType === 'ec' ? { dsaEncoding: 'der' as const } : {}),
      ...(padding === undefined ? {} : { padding }),
      ...(salt === undefined ? {} : { saltLength: salt }),
    },
    signature,
  );
}

export function signerContract(
  name: string,
  algorithm: SignatureAlgorithm,
  make: () => Promise<SignerUnderTest>,
): void {
  describe(`Signer contract: ${name}, ${algorithm}`, () => {
    let made: SignerUnderTest;
    beforeAll(async () => {
      made = await make();
    }, 60_000);
    afterAll(() => made.close());

    test('says which algorithm and key it is', () => {
      expect(made.signer.algorithm).toBe(algorithm);
      expect(made.signer.keyId).toMatch(/^(embedded:[0-9a-f]{64}|arn:aws[a-z-]*:kms:.+)$/);
    });

    // 4 097: one more than KMS takes as a message, so a signer that does not send a digest fails here.
    test.each([1, 300, 4_097, 100_000])('%d bytes: the signature verifies, and over no other bytes', async (size) => {
      const tbs = new Uint8Array(randomBytes(size));
      const { bytes: signature } = await made.signer.sign(tbs);
      expect(signatureVerifies(algorithm, made.publicKey, tbs, signature)).toBe(true);
      const other = Uint8Array.from(tbs);
      other[size - 1] = (other[size - 1] ?? 0) ^ 1;
      expect(signatureVerifies(algorithm, made.publicKey, other, signature)).toBe(false);
    });

    test('many at once: each signature belongs to its own bytes', async () => {
      const messages = Array.from({ length: 20 }, () => new Uint8Array(randomBytes(200)));
      const signatures = await Promise.all(messages.map((tbs) => made.signer.sign(tbs)));
      const verified = signatures.map(({ bytes }, i) =>
        signatureVerifies(algorithm, made.publicKey, messages[i] ?? new Uint8Array(), bytes),
      );
      expect(verified).toEqual(messages.map(() => true));
    });

    test('each signature has its own name in the log of the far side, if there is one', async () => {
      const tbs = new Uint8Array(randomBytes(200));
      const names = [(await made.signer.sign(tbs)).requestId, (await made.signer.sign(tbs)).requestId];
      if (!made.logged) expect(names).toEqual([undefined, undefined]);
      else {
        for (const each of names) expect(each).toMatch(/^[0-9A-Za-z-]{16,64}$/);
        expect(names[0]).not.toBe(names[1]);
      }
    });

    test('what the caller does to the bytes after the call is not signed', async () => {
      const tbs = new Uint8Array(randomBytes(200));
      const asked = Uint8Array.from(tbs);
      const pending = made.signer.sign(asked);
      asked.fill(0);
      expect(signatureVerifies(algorithm, made.publicKey, tbs, (await pending).bytes)).toBe(true);
    });

    test('a key that cannot be used rejects; it gives nothing', async () => {
      await expect(made.broken.sign(new Uint8Array(randomBytes(200)))).rejects.toThrow();
    });
  });
}
