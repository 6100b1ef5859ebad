/** The challenge key of attestation in KMS: an HMAC key, whose bytes never leave KMS. The MAC is a secret: it is in no message. */
import { GenerateMacCommand, KMSClient } from '@aws-sdk/client-kms';
import type { ChallengeKey } from '../../core/ports/challenge-key.ts';
import { MisconfigurationError } from '../../core/ports/errors.ts';
import { kmsClientConfig, mapKmsErrors } from './kms-client.ts';

/** `keyArn`: an ARN, not an alias or a key ID, which could come to mean another key. */
export function kmsChallengeKey(
  keyArn: string,
  client: Pick<KMSClient, 'send'> = new KMSClient(kmsClientConfig),
): ChallengeKey {
  return {
    async mac(message) {
      const command = new GenerateMacCommand({ KeyId: keyArn, Message: message, MacAlgorithm: 'HMAC_SHA_256' });
      const { Mac: mac, KeyId: usedKey } = await mapKmsErrors(() => client.send(command));
      if (mac?.length !== 32) throw new Error('KMS returned no MAC of 32 bytes');
      if (usedKey !== keyArn) throw new MisconfigurationError('KMS used another key than the requested one');
      return mac;
    },
  };
}
