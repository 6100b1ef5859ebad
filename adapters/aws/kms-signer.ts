/** Signs with a CA key in AWS KMS. It sends KMS a digest, since KMS accepts messages of at most 4 096 bytes. */
import { createHash } from 'node:crypto';
import { GetPublicKeyCommand, SignCommand } from '@aws-sdk/client-kms';
import type { KMSClient, KMSClientConfig } from '@aws-sdk/client-kms';
import type { CaKey, CaPublicKey } from '../../core/ca/authority.ts';
import { MisconfigurationError, ThrottledError } from '../../core/ports/errors.ts';
import { signatureDigests } from '../../core/ports/signer.ts';
import type { SignatureAlgorithm, Signer } from '../../core/ports/signer.ts';
import { idleConnections, isReset, retryOnce } from '../http/stale-connections.ts';

/**
 * Settings of the signer's client. It repeats a call only if the connection was reset. Both signatures are then over the bytes
 * of one recorded intent. After any other failure only the code that records attempts (core/issue.ts) requests another signature.
 */
export const kmsClientConfig = {
  maxAttempts: 2,
  retryStrategy: retryOnce(isReset),
  requestHandler: {
    connectionTimeout: 1_000,
    requestTimeout: 4_000,
    throwOnRequestTimeout: true,
    ...idleConnections(1),
  },
} as const satisfies KMSClientConfig;

/** `keyArn`: an ARN, not an alias or a key ID. It is recorded with each certificate, and must always name the same key. */
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
        Message: createHash(signatureDigests[algorithm]).update(tbs).digest(),
        MessageType: 'DIGEST',
        SigningAlgorithm: algorithm,
      });
      const { Signature: bytes, KeyId: usedKey, $metadata: metadata } = await mapKmsErrors(() => client.send(command));
      if (bytes === undefined) throw new Error('KMS returned no signature');
      // A signature of another key must not be used: it would not match the CA certificate.
      if (usedKey !== keyArn) throw new MisconfigurationError('KMS signed with another key than the requested one');
      return metadata.requestId === undefined ? { bytes } : { bytes, requestId: metadata.requestId };
    },
  };
}

export async function kmsPublicKey(client: KMSClient, keyArn: string): Promise<CaPublicKey> {
  const key = await mapKmsErrors(() => client.send(new GetPublicKeyCommand({ KeyId: keyArn })));
  if (key.PublicKey === undefined) throw new Error('KMS returned no public key');
  if (key.KeyId !== keyArn) throw new MisconfigurationError('KMS returned another key than the requested one');
  return { spki: key.PublicKey, algorithms: key.KeyUsage === 'SIGN_VERIFY' ? (key.SigningAlgorithms ?? []) : [] };
}

/** Throttling → ThrottledError; other 4xx, which an operator must correct → MisconfigurationError; the rest unchanged. */
async function mapKmsErrors<T>(send: () => Promise<T>): Promise<T> {
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
