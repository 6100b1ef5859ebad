/** Public areas of a real TPM, and what is refused in them. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  attribute,
  decodePublicArea,
  encodePublicArea,
  objectName,
} from '../../../../../../core/attestation/tpm/structures/public-area.ts';
import type { PublicArea } from '../../../../../../core/attestation/tpm/structures/public-area.ts';
import { eccKeyOf, publicKeyOf } from '../../../../../../core/attestation/tpm/structures/public-key.ts';
import { bytesOf, vectors } from '../../../../../corpus/attestation/tpm/vectors.ts';
import type { KeyVector } from '../../../../../corpus/attestation/tpm/vectors.ts';

const keys: readonly (readonly [string, KeyVector])[] = [
  ...Object.entries(vectors.keys),
  ...Object.entries(vectors.quotes).map(([name, key]) => [`ak-${name}`, key] as const),
];

function decoded(bytes: Uint8Array): PublicArea {
  const area = decodePublicArea(bytes);
  if (!area.ok) throw new Error(area.problem);
  return area.value;
}

test.each(keys)("%s: name and key are the TPM's", (_, vector) => {
  const area = decoded(bytesOf(vector.public));
  expect(Buffer.from(objectName(area.nameAlg, bytesOf(vector.public))).toString('hex')).toBe(vector.name);
  expect(Buffer.from(encodePublicArea(area)).toString('base64')).toBe(vector.public);
  const key = publicKeyOf(area.key);
  expect(key.ok && key.value.export({ type: 'spki', format: 'der' }).toString('base64')).toBe(vector.spki);
});

const { fixedTpm, fixedParent, sensitiveDataOrigin, userWithAuth, adminWithPolicy, restricted, decrypt, sign } =
  attribute;
const aes = { bits: 128 };

test.each([
  ['ek-rsa', fixedTpm | fixedParent | sensitiveDataOrigin | adminWithPolicy | restricted | decrypt, aes, undefined],
  ['ek-p384', undefined, { bits: 256 }, undefined],
  ['storage', fixedTpm | fixedParent | sensitiveDataOrigin | userWithAuth | restricted | decrypt, aes, undefined],
  ['unrestricted', fixedTpm | fixedParent | sensitiveDataOrigin | userWithAuth | sign, undefined, 'ecdsa sha256'],
  ['software', userWithAuth | sign, undefined, undefined],
  ['ak-rsassa', undefined, undefined, 'rsassa sha256'],
  ['ak-rsapss', undefined, undefined, 'rsapss sha256'],
  ['ak-p384', undefined, undefined, 'ecdsa sha384'],
] as const)('%s: attributes, cipher and scheme', (name, attributes, symmetric, scheme) => {
  const vector = keys.find(([known]) => known === name)?.[1];
  const area = decoded(bytesOf(vector?.public ?? ''));
  if (attributes !== undefined) expect(area.attributes).toBe(attributes);
  expect(area.symmetric).toEqual(symmetric);
  expect(area.scheme === undefined ? undefined : `${area.scheme.name} ${area.scheme.hash}`).toBe(scheme);
});

test('an EC key of X.509 is the key of the public area', () => {
  for (const name of ['ek-p256', 'ek-p384', 'unrestricted', 'software'] as const) {
    const { spki, public: area } = vectors.keys[name];
    const key = eccKeyOf(createPublicKey({ key: bytesOf(spki), format: 'der', type: 'spki' }));
    expect(key).toEqual({ ok: true, value: decoded(bytesOf(area)).key });
  }
});

test.each([
  ['an RSA key', generateKeyPairSync('rsa', { modulusLength: 2048 }), 'is not an elliptic-curve key'],
  ['P-521', generateKeyPairSync('ec', { namedCurve: 'P-521' }), 'is not a key on P-256 or P-384'],
  ['secp256k1', generateKeyPairSync('ec', { namedCurve: 'secp256k1' }), 'is not a key on P-256 or P-384'],
])('%s is not an EC key of a public area', (_, { publicKey }, problem) => {
  expect(eccKeyOf(publicKey)).toEqual({ ok: false, problem });
});

test('coordinates with and without leading zero bytes are the same key under two names', () => {
  const short = { kind: 'ecc', curve: 'P-256', x: Uint8Array.of(1), y: Uint8Array.of(2) } as const;
  const area = { nameAlg: 'sha256', attributes: sign, authPolicy: new Uint8Array(), key: short } as const;
  expect(decoded(encodePublicArea(area)).key).toEqual({ ...short, x: Buffer.of(1), y: Buffer.of(2) });
});

test('the exponent 65537 may be written out: the same key under another name', () => {
  const { public: usual, name, spki } = vectors.quotes.rsassa;
  const bytes = at(18, 0, 1, 0, 1)(bytesOf(usual));
  const { key } = decoded(bytes);
  expect(key).toMatchObject({ exponent: 65537 });
  expect(Buffer.from(encodePublicArea(decoded(bytes)))).toEqual(bytes);
  expect(Buffer.from(objectName('sha256', bytes)).toString('hex')).not.toBe(name);
  const read = publicKeyOf(key);
  expect(read.ok && read.value.export({ type: 'spki', format: 'der' }).toString('base64')).toBe(spki);
});

/** Replaces bytes at an offset. */
const at =
  (offset: number, ...octets: number[]) =>
  (bytes: Buffer) =>
    Buffer.concat([bytes.subarray(0, offset), Buffer.from(octets), bytes.subarray(offset + octets.length)]);

const rsa = vectors.quotes.rsassa.public;
const ecc = vectors.quotes.p256.public;

describe('refused', () => {
  test.each<readonly [name: string, of: string, change: (bytes: Buffer) => Buffer, problem: string]>([
    ['nothing', ecc, () => Buffer.of(), 'ends inside a field'],
    ['cut in a number', ecc, (bytes) => bytes.subarray(0, 7), 'ends inside a field'],
    ['cut in a coordinate', ecc, (bytes) => bytes.subarray(0, -1), 'ends inside a field'],
    ['a trailing byte', ecc, (bytes) => Buffer.concat([bytes, Buffer.of(0)]), 'has trailing bytes'],
    [
      'a TPM2B_PUBLIC',
      ecc,
      (bytes) => Buffer.concat([Buffer.of(0, bytes.length), bytes]),
      'is not of an RSA or ECC key',
    ],
    ['too large', rsa, (bytes) => Buffer.concat([bytes, Buffer.alloc(700)]), 'is larger than 700 bytes'],
    ['a keyed hash', ecc, at(0, 0, 8), 'is not of an RSA or ECC key'],
    ['a symmetric key', ecc, at(0, 0, 0x25), 'is not of an RSA or ECC key'],
    ['named by SHA-1', ecc, at(2, 0, 4), 'names a hash that is not SHA-256, SHA-384 or SHA-512'],
    ['no name', ecc, at(2, 0, 0x10), 'names a hash that is not SHA-256, SHA-384 or SHA-512'],
    ['reserved attribute 0', ecc, at(7, 0x73), 'has a reserved attribute'],
    ['reserved attribute 31', ecc, at(4, 0x80), 'has a reserved attribute'],
    ['a policy of one byte', ecc, (bytes) => at(8, 0, 1)(bytes), 'has a policy that is no digest of its hash'],
    ['a policy of 65 bytes', ecc, at(8, 0, 65), 'has a policy of more than 64 bytes'],
    ['Camellia', ecc, at(10, 0, 0x26), 'names a cipher that is not AES'],
    ['AES of 192 bits', ecc, at(10, 0, 6, 0, 192), 'names an AES key that is not of 128 or 256 bits'],
    ['AES in CTR mode', ecc, at(10, 0, 6, 0, 128, 0, 0x40), 'names a cipher mode that is not CFB'],
    ['ECDAA', ecc, at(12, 0, 0x1a), 'names a scheme that is not RSASSA, RSAPSS or ECDSA for its key'],
    ['RSASSA with an EC key', ecc, at(12, 0, 0x14), 'names a scheme that is not RSASSA, RSAPSS or ECDSA for its key'],
    ['ECDSA with an RSA key', rsa, at(12, 0, 0x18), 'names a scheme that is not RSASSA, RSAPSS or ECDSA for its key'],
    ['OAEP', rsa, at(12, 0, 0x17), 'names a scheme that is not RSASSA, RSAPSS or ECDSA for its key'],
    ['a scheme with SHA-1', ecc, at(14, 0, 4), 'names a hash that is not SHA-256, SHA-384 or SHA-512'],
    ['P-521', ecc, at(16, 0, 5), 'names a curve that is not P-256 or P-384'],
    ['a key derivation', ecc, at(18, 0, 0x20), 'names a key derivation'],
    ['a coordinate of 49 bytes', ecc, at(20, 0, 49), 'has a coordinate of more than 48 bytes'],
    [
      'a coordinate of P-384',
      ecc,
      (bytes) => Buffer.concat([at(20, 0, 48)(bytes.subarray(0, 22)), Buffer.alloc(48), bytes.subarray(54)]),
      'has a coordinate that is too long for P-256',
    ],
    [
      'a second coordinate of P-384',
      ecc,
      (bytes) => Buffer.concat([at(54, 0, 48)(bytes.subarray(0, 56)), Buffer.alloc(48)]),
      'has a coordinate that is too long for P-256',
    ],
    ['an RSA exponent of 3', rsa, at(18, 0, 0, 0, 3), 'has an RSA exponent that is not 65537'],
    ['2048 bits in a field of 3072', rsa, at(16, 0x0c, 0), 'has a modulus of another length'],
    ['a modulus that begins with zero', rsa, at(24, 0x7f), 'has a modulus of another length'],
    ['a modulus of 513 bytes', rsa, at(22, 2, 1), 'has a modulus of more than 512 bytes'],
  ])('%s', (_, of, change, problem) => {
    expect(decodePublicArea(change(bytesOf(of)))).toEqual({ ok: false, problem });
  });

  test('a point that is not on its curve', () => {
    const { key } = decoded(at(22, 1, 2, 3)(bytesOf(ecc)));
    expect(publicKeyOf(key)).toEqual({ ok: false, problem: 'has a point that is not on its curve' });
  });
});
