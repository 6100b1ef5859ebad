/** The key with which the vTPM of a Shielded VM signs, and its bare signatures. */
import { constants, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { decodePem } from '../../encoding/pem.ts';
import { decodeSpki } from '../../x509/public-key.ts';

const leastRsaBits = 2048;

/** `undefined` for anything but an RSA key of at least 2048 bits. `spki`: DER. */
export function signingKeyOf(spki: Uint8Array): KeyObject | undefined {
  const key = decodeSpki(spki);
  if (!key.ok || key.value.family !== 'RSA' || key.value.publicKey.bits < leastRsaBits) return undefined;
  return key.value.keyObject;
}

/** `pem`: one block PUBLIC KEY, as the Compute API returns it. */
export function signingKeyIn(pem: string): KeyObject | undefined {
  const blocks = decodePem(Buffer.from(pem, 'utf8'), ['PUBLIC KEY']);
  const [block] = blocks.ok ? blocks.value : [];
  return block === undefined ? undefined : signingKeyOf(block.content);
}

/** RSASSA-PKCS1-v1_5 with SHA-256: the plugin drops the header that a TPM puts before its signature. */
export function isSignedBy(key: KeyObject, signed: Uint8Array, signature: Uint8Array): boolean {
  return verify('sha256', signed, { key, padding: constants.RSA_PKCS1_PADDING }, signature);
}
