/** Keys of TPM objects as Node and X.509 hold them. */
import { createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { failure, success } from '../../../outcome/result.ts';
import type { Result } from '../../../outcome/result.ts';
import type { CurveName } from './algorithms.ts';
import { coordinateBytes } from './algorithms.ts';
import type { EccKey, RsaKey } from './public-area.ts';

/** Fails if the point is not on its curve. */
export function publicKeyOf(key: RsaKey | EccKey): Result<KeyObject, string> {
  try {
    return success(createPublicKey({ key: jwkOf(key), format: 'jwk' }));
  } catch {
    return failure('has a point that is not on its curve');
  }
}

function jwkOf(key: RsaKey | EccKey) {
  if (key.kind === 'rsa') return { kty: 'RSA', n: base64url(key.modulus), e: 'AQAB' };
  const width = coordinateBytes(key.curve);
  return { kty: 'EC', crv: key.curve, x: base64url(padded(key.x, width)), y: base64url(padded(key.y, width)) };
}

/**
 * An EC key, its coordinates padded to the width of the curve as TPMs write them. Fails for RSA keys and for other curves.
 */
export function eccKeyOf(key: KeyObject): Result<EccKey, string> {
  if (key.asymmetricKeyType !== 'ec') return failure('is not an elliptic-curve key');
  const { crv, x = '', y = '' } = key.export({ format: 'jwk' });
  if (!isCurve(crv)) return failure('is not a key on P-256 or P-384');
  return success({ kind: 'ecc', curve: crv, x: Buffer.from(x, 'base64url'), y: Buffer.from(y, 'base64url') });
}

function isCurve(name: string | undefined): name is CurveName {
  return name === 'P-256' || name === 'P-384';
}

/** Big-endian, with leading zero bytes. `width`: in bytes, not less than the number has. */
export function padded(number: Uint8Array, width: number): Uint8Array {
  const wide = Buffer.alloc(width);
  wide.set(number, width - number.length);
  return wide;
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}
