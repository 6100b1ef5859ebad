/** Signs with a CA key in AWS KMS. It sends KMS a digest, since KMS accepts messages of at most 4 096 bytes. */
import { createHash } from 'node:crypto';
import { GetPublicKeyCommand, SignCommand } from '@aws-sdk/client-kms';
import type { KMSClient } from '@aws-sdk/client-kms';
import type { CaKey, CaPublicKey } from '../../core/ca/authority.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import { signatureDigests } from '../../core/ports/signer.ts';
import type { SignatureAlgorithm, Signer } from '../../core/ports/signer.ts';
import { mapKmsErrors } from './kms-client.ts';

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
