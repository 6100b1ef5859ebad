/** Signatures of a real TPM, and what is refused in them. */
import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { decodePublicArea, sized } from '../../../../../../core/attestation/tpm/structures/public-area.ts';
import { eccKeyOf } from '../../../../../../core/attestation/tpm/structures/public-key.ts';
import { decodeSignature, verifySignature } from '../../../../../../core/attestation/tpm/structures/signature.ts';
import { bytesOf, vectors } from '../../../../../corpus/attestation/tpm/vectors.ts';
import type { QuoteVector } from '../../../../../corpus/attestation/tpm/vectors.ts';

const names = Object.keys(vectors.quotes) as QuoteVector[];

function verified(name: QuoteVector, signature: Uint8Array, signed: Uint8Array): boolean | string {
  const { public: bytes, spki } = vectors.quotes[name];
  const area = decodePublicArea(bytesOf(bytes));
  const read = decodeSignature(signature);
  if (!area.ok || !read.ok) return read.ok ? 'no area' : read.problem;
  const key = createPublicKey({ key: bytesOf(spki), format: 'der', type: 'spki' });
  return verifySignature(read.value, area.value.key, key, signed);
}

test.each(names)('%s signed its quote, and nothing else', (name) => {
  const { signature, attest } = vectors.quotes[name];
  expect(verified(name, bytesOf(signature), bytesOf(attest))).toBe(true);
  const tampered = bytesOf(attest);
  tampered[50] = 0;
  expect(verified(name, bytesOf(signature), tampered)).toBe(false);
  for (const other of names.filter((one) => one !== name))
    expect(verified(other, bytesOf(signature), bytesOf(attest))).toBe(false);
});

test('numbers without their leading zero bytes are the same signature, longer ones are invalid', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const area = eccKeyOf(publicKey);
  const signed = Buffer.from('signed');
  // One signature in 256 has an r that begins with a zero byte.
  let raw = Buffer.of(1);
  while (raw[0] !== 0) raw = sign('sha256', signed, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  const verdict = (r: Buffer, s: Buffer) => {
    const read = decodeSignature(Buffer.concat([Buffer.from('0018000b', 'hex'), sized(r), sized(s)]));
    return read.ok && area.ok && verifySignature(read.value, area.value, publicKey, signed);
  };
  const [r, s] = [raw.subarray(0, 32), raw.subarray(32)];
  expect(verdict(r, s)).toBe(true);
  expect(verdict(r.subarray(1), s)).toBe(true);
  expect(verdict(Buffer.concat([Buffer.alloc(1), r]), s)).toBe(false);
  expect(verdict(r, Buffer.concat([Buffer.alloc(1), s]))).toBe(false);
});

const rsa = bytesOf(vectors.quotes.rsassa.signature);
const ecc = bytesOf(vectors.quotes.p256.signature);
const set = (bytes: Buffer, offset: number, ...octets: number[]) =>
  Buffer.concat([bytes.subarray(0, offset), Buffer.from(octets), bytes.subarray(offset + octets.length)]);

describe('refused', () => {
  test.each<readonly [name: string, bytes: Buffer, problem: string]>([
    ['nothing', Buffer.of(), 'ends inside a field'],
    ['cut', rsa.subarray(0, -1), 'ends inside a field'],
    ['a trailing byte', Buffer.concat([ecc, Buffer.of(0)]), 'has trailing bytes'],
    ['too large', Buffer.concat([rsa, rsa, rsa]), 'is larger than 518 bytes'],
    ['ASN.1', Buffer.of(0x30, 6, 2, 1, 1, 2, 1, 1), 'is not of RSASSA, RSAPSS or ECDSA'],
    ['HMAC', set(ecc, 0, 0, 5), 'is not of RSASSA, RSAPSS or ECDSA'],
    ['none', set(ecc, 0, 0, 0x10), 'is not of RSASSA, RSAPSS or ECDSA'],
    ['SHA-1', set(ecc, 2, 0, 4), 'names a hash that is not SHA-256, SHA-384 or SHA-512'],
    ['an RSA number of 513 bytes', set(rsa, 4, 2, 1), 'has a number of more than 512 bytes'],
    ['an r of 49 bytes', set(ecc, 4, 0, 49), 'has a number of more than 48 bytes'],
    ['an s of 49 bytes', set(ecc, 38, 0, 49), 'has a number of more than 48 bytes'],
  ])('%s', (_, bytes, problem) => {
    expect(decodeSignature(bytes)).toEqual({ ok: false, problem });
  });
});
