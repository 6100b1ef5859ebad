/** A CA key in AWS KMS. It never leaves; what is sent there is a digest, since a message may have 4 096 bytes at most. */
import { createHash } from 'node:crypto';
import { GetPublicKeyCommand, SignCommand } from '@aws-sdk/client-kms';
import type { KMSClient, KMSClientConfig } from '@aws-sdk/client-kms';
import type { CaKey, CaPublicKey } from '../../core/ca/authority.ts';
import { MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';
import type { SignatureAlgorithm, Signer } from '../../core/ports/signer.ts';

/**
 * For the client that is given to the signer. One call of ours is one call of KMS: a signature whose answer was lost is
 * one that nobody counted, and whether to ask for another is decided where the intent is recorded.
 */
export const kmsClientConfig = {
  maxAttempts: 1,
  requestHandler: { connectionTimeout: 1_000, requestTimeout: 4_000, throwOnRequestTimeout: true },
} as const satisfies KMSClientConfig;

/** The algorithms have KMS's own names. A curve goes with one digest there. */
const hashes: Readonly<Record<SignatureAlgorithm, 'sha256' | 'sha384' | 'sha512'>> = {
  ECDSA_SHA_256: 'sha256',
  ECDSA_SHA_384: 'sha384',
  ECDSA_SHA_512: 'sha512',
  RSASSA_PKCS1_V1_5_SHA_256: 'sha256',
  RSASSA_PKCS1_V1_5_SHA_384: 'sha384',
  RSASSA_PKCS1_V1_5_SHA_512: 'sha512',
  RSASSA_PSS_SHA_256: 'sha256',
  RSASSA_PSS_SHA_384: 'sha384',
  RSASSA_PSS_SHA_512: 'sha512',
};

/** `keyArn`: never an alias or a bare id. It is recorded with each certificate, and must name the same key for good. */
export function kmsKey(client: KMSClient, keyArn: string): CaKey {
  return {
    keyId: keyArn,
    publicKey: () => kmsPublicKey(client, keyArn),
    signer: (algorithm) => kmsSigner(client, keyArn, algorithm),
  };
}

export function kmsSigner(client: KMSClient, keyArn: string, algorithm: SignatureAlgorithm): Signer {
  return {
    keyId: keyArn,
    algorithm,
    async sign(tbs) {
      const command = new SignCommand({
        KeyId: keyArn,
        Message: createHash(hashes[algorithm]).update(tbs).digest(),
        MessageType: 'DIGEST',
        SigningAlgorithm: algorithm,
      });
      const { Signature: bytes, KeyId: usedKey, $metadata: metadata } = await told(() => client.send(command));
      if (bytes === undefined) throw new Error('KMS gave no signature');
      // Of what another key signed, nothing may be used, whatever made KMS take it.
      if (usedKey !== keyArn) throw new MisconfigurationError('KMS signed with another key than the one asked for');
      return metadata.requestId === undefined ? { bytes } : { bytes, requestId: metadata.requestId };
    },
  };
}

/** What KMS says of the key itself. */
export async function kmsPublicKey(client: KMSClient, keyArn: string): Promise<CaPublicKey> {
  const key = await told(() => client.send(new GetPublicKeyCommand({ KeyId: keyArn })));
  if (key.PublicKey === undefined) throw new Error('KMS gave no public key');
  if (key.KeyId !== keyArn) throw new MisconfigurationError('KMS gave another key than the one asked for');
  return { spki: key.PublicKey, algorithms: key.KeyUsage === 'SIGN_VERIFY' ? (key.SigningAlgorithms ?? []) : [] };
}

/** In our words: slow down, an operator is needed, or neither and passed on (a fault of KMS, a lost connection). */
async function told<T>(send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
    const status = $metadata?.httpStatusCode ?? 0;
    if (error.name === 'ThrottlingException' || status === 429)
      throw new ThrottledError('KMS is busy', { cause: error });
    if (status >= 400 && status <= 499)
      throw new MisconfigurationError(`the key cannot be used (${error.name})`, { cause: error });
    throw error;
  }
}
