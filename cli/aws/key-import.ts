/** A CA key in KMS that has its material from outside, with the operator's AWS login. */
import {
  DescribeKeyCommand,
  GetParametersForImportCommand,
  GetPublicKeyCommand,
  ImportKeyMaterialCommand,
  KMSClient,
} from '@aws-sdk/client-kms';
import { wrapPrivateKey } from '../../adapters/aws/wrapped-key.ts';
import { awsFailure } from './aws-failure.ts';
import { clientOptions } from './client-options.ts';
import type { ImportableKey } from '../runtime/io.ts';

/** `keyArn` names its Region. */
export function connectKey(keyArn: string, login: object = {}): ImportableKey {
  const client = new KMSClient({ region: keyArn.split(':')[3] ?? '', ...clientOptions(), ...login });
  const KeyId = keyArn;
  async function call<T>(permission: string, send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (error) {
      throw awsFailure('KMS', error, `${permission} on the key: keys.importers of countersign.yaml gives it`);
    }
  }
  return {
    async describe() {
      const { KeyMetadata: about } = await call('kms:DescribeKey', () =>
        client.send(new DescribeKeyCommand({ KeyId })),
      );
      return { origin: about?.Origin ?? '', state: about?.KeyState ?? '', keySpec: about?.KeySpec ?? '' };
    },
    async publicKey() {
      const { PublicKey } = await call('kms:GetPublicKey', () => client.send(new GetPublicKeyCommand({ KeyId })));
      return PublicKey ?? new Uint8Array();
    },
    async importMaterial(privateKey, randomBytes) {
      const parameters = await call('kms:GetParametersForImport', () =>
        client.send(
          new GetParametersForImportCommand({
            KeyId,
            WrappingAlgorithm: 'RSA_AES_KEY_WRAP_SHA_256',
            WrappingKeySpec: 'RSA_4096',
          }),
        ),
      );
      const wrapped = wrapPrivateKey(privateKey, parameters.PublicKey ?? new Uint8Array(), randomBytes(32));
      await call('kms:ImportKeyMaterial', () =>
        client.send(
          new ImportKeyMaterialCommand({
            KeyId,
            ImportToken: parameters.ImportToken,
            EncryptedKeyMaterial: wrapped,
            ExpirationModel: 'KEY_MATERIAL_DOES_NOT_EXPIRE',
          }),
        ),
      );
    },
    close: () => client.destroy(),
  };
}
