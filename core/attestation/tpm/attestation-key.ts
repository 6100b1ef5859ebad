/**
 * The attestation key (AK) of a TPM: it signs statements of the TPM about itself, and nothing else. These checks read what the
 * sender says about the key. They are true once the key is activated: the TPM activates a credential only for the key with
 * exactly this name, and the name covers the attributes (TPM 2.0 Part 1, §24 "Credential Protection").
 */
import type { KeyObject } from 'node:crypto';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { attribute, decodePublicArea, objectName } from './structures/public-area.ts';
import type { PublicArea, SignatureScheme } from './structures/public-area.ts';
import { publicKeyOf } from './structures/public-key.ts';

export interface AttestationKey {
  readonly area: PublicArea;
  readonly scheme: SignatureScheme;
  readonly key: KeyObject;
  /** Computed from the bytes sent, never taken from the sender. */
  readonly name: Uint8Array;
}

/** Attributes without which statements of the key prove nothing (TPM 2.0 Part 2, §8.3). */
const required = [
  // A signing key that is not restricted signs any bytes, so also a forged statement.
  ['restricted', 'is not restricted: it signs any data, so its statements prove nothing'],
  // The private key is in this one TPM, since it was created there.
  ['fixedTpm', 'may be duplicated to another TPM (fixedTPM is not set)'],
  ['fixedParent', 'may be moved to another parent (fixedParent is not set)'],
  ['sensitiveDataOrigin', 'was not created by the TPM (sensitiveDataOrigin is not set)'],
] as const;

/** The problem completes `the attestation key …`. */
export function decodeAttestationKey(bytes: Uint8Array): Result<AttestationKey, string> {
  const decoded = decodePublicArea(bytes);
  if (!decoded.ok) return decoded;
  const area = decoded.value;
  const problem = checkAttributes(area.attributes);
  if (problem !== undefined) return failure(problem);
  if (area.scheme === undefined) return failure('has no signature scheme');
  if (area.key.kind === 'rsa' && area.key.modulus.length < 256) return failure('has fewer than 2048 bits');
  const key = publicKeyOf(area.key);
  if (!key.ok) return key;
  return success({ area, scheme: area.scheme, key: key.value, name: objectName(area.nameAlg, bytes) });
}

function checkAttributes(attributes: number): string | undefined {
  const has = (name: keyof typeof attribute) => (attributes & attribute[name]) !== 0;
  if (has('decrypt') && !has('sign')) return 'decrypts and does not sign, as an endorsement key or storage key does';
  if (!has('sign')) return 'does not sign';
  const missing = required.find(([name]) => !has(name));
  if (missing !== undefined) return missing[1];
  // No TPM creates a restricted key with both.
  return has('decrypt') ? 'signs and decrypts' : undefined;
}
