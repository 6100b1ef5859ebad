/**
 * Wraps a private key for KMS: RSA_AES_KEY_WRAP_SHA_256, the one algorithm that takes RSA keys as well as EC keys.
 * https://docs.aws.amazon.com/kms/latest/developerguide/importing-keys-encrypt-key-material.html
 */
import { constants, createCipheriv, createPublicKey, publicEncrypt } from 'node:crypto';

/** RFC 5649 §3: the initial value of AES key wrap with padding. */
const initialValue = Buffer.from('A65959A6', 'hex');

/**
 * `privateKey`: DER PKCS #8. `wrappingKey`: DER SubjectPublicKeyInfo of KMS. `aesKey`: 32 strong random bytes, for this call only;
 * they are overwritten. The result is the AES key under RSA-OAEP with SHA-256, then the private key under the AES key.
 */
export function wrapPrivateKey(privateKey: Uint8Array, wrappingKey: Uint8Array, aesKey: Uint8Array): Uint8Array {
  if (aesKey.length !== 32) throw new RangeError('the AES key has 32 bytes');
  const key = createPublicKey({ key: Buffer.from(wrappingKey), format: 'der', type: 'spki' });
  const cipher = createCipheriv('id-aes256-wrap-pad', aesKey, initialValue);
  const wrapped = Buffer.concat([cipher.update(privateKey), cipher.final()]);
  const padding = constants.RSA_PKCS1_OAEP_PADDING;
  const head = publicEncrypt({ key, padding, oaepHash: 'sha256' }, aesKey);
  aesKey.fill(0);
  return Buffer.concat([head, wrapped]);
}
