/** A signature by a TPM key (TPMT_SIGNATURE, TPM 2.0 Part 2, §11.3.4). */
import { constants, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Result } from '../../../outcome/result.ts';
import { coordinateBytes, mostCoordinateBytes, mostRsaBytes, readHash } from './algorithms.ts';
import { schemeName } from './public-area.ts';
import type { EccKey, RsaKey, SignatureScheme } from './public-area.ts';
import { padded } from './public-key.ts';
import { decodeStructure } from './structure-reader.ts';

export type Signature =
  | { readonly scheme: SignatureScheme; readonly kind: 'rsa'; readonly bytes: Uint8Array }
  | { readonly scheme: SignatureScheme; readonly kind: 'ecc'; readonly r: Uint8Array; readonly s: Uint8Array };

/** Two identifiers, and a number of an RSA key of 4096 bits. */
const mostBytes = 4 + 2 + mostRsaBytes;

/** The problem completes `the signature …`. */
export function decodeSignature(bytes: Uint8Array): Result<Signature, string> {
  return decodeStructure(bytes, mostBytes, (reader): Signature => {
    const name = schemeName(reader.uint16());
    if (name === undefined) return reader.refuse('is not of RSASSA, RSAPSS or ECDSA');
    const scheme = { name, hash: readHash(reader) };
    // TPMS_SIGNATURE_ECC (§11.3.2), TPMS_SIGNATURE_RSA (§11.3.1)
    if (name !== 'ecdsa') return { scheme, kind: 'rsa', bytes: reader.sized(mostRsaBytes, 'a number') };
    const r = reader.sized(mostCoordinateBytes, 'a number');
    return { scheme, kind: 'ecc', r, s: reader.sized(mostCoordinateBytes, 'a number') };
  });
}

/** `key` is `area` as publicKeyOf returns it. The caller has compared the scheme of the signature with the one of the key. */
export function verifySignature(
  signature: Signature,
  area: RsaKey | EccKey,
  key: KeyObject,
  signed: Uint8Array,
): boolean {
  const { name, hash } = signature.scheme;
  if (signature.kind === 'rsa') {
    // TPM 2.0 Part 1, §B.7: the salt of RSAPSS is as long as the digest, or as long as the key permits; OpenSSL finds it.
    const padding = name === 'rsapss' ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
    return verify(hash, signed, { key, padding }, signature.bytes);
  }
  if (area.kind !== 'ecc') return false;
  const width = coordinateBytes(area.curve);
  const { r, s } = signature;
  if (r.length > width || s.length > width) return false;
  const bytes = Buffer.concat([padded(r, width), padded(s, width)]);
  return verify(hash, signed, { key, dsaEncoding: 'ieee-p1363' }, bytes);
}
