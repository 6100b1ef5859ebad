/** RSA keys whose numbers would make a signature worthless, or verifying it expensive. The cases need no signature. */
import { describe, expect, test } from 'vitest';
import { readDer } from '../../../../core/encoding/der-reader.ts';
import { decodePublicKey, decodeSpki } from '../../../../core/x509/public-key.ts';
import * as der from '../../../harness/x509/der-writer.ts';
import { sharedKey } from '../../../harness/x509/requests.ts';

/** Of 2048 bits, odd. */
const modulus = Buffer.concat([Buffer.from([0]), Buffer.alloc(256, 0xc5)]);

function decode(modulusOctets: Uint8Array, exponentOctets: Uint8Array) {
  const key = der.sequence(der.tlv(2, modulusOctets), der.tlv(2, exponentOctets));
  const algorithm = der.sequence(der.oid('1.2.840.113549.1.1.1'), der.nothing());
  const info = readDer(der.sequence(algorithm, der.bits(key)));
  if (!info.ok) throw new Error(info.problem);
  const decoded = decodePublicKey(info.value);
  return decoded.ok ? decoded.value.publicKey.description : decoded.problem[0].code;
}

describe('the exponent of an RSA key', () => {
  test.each<[string, readonly number[], string]>([
    ['3', [3], 'RSA 2048'],
    ['65537', [1, 0, 1], 'RSA 2048'],
    ['the largest that Go verifies, 2147483647', [0x7f, 0xff, 0xff, 0xff], 'RSA 2048'],
    ['1: any value is its own signature', [1], 'KeyNotPermitted'],
    ['257, whose last octet is 1', [1, 1], 'RSA 2048'],
    ['even', [1, 0, 0], 'KeyNotPermitted'],
    ['of 32 bits', [0, 0x80, 0, 0, 1], 'KeyNotPermitted'],
    ['of 33 bits', [1, 0, 0, 0, 1], 'KeyNotPermitted'],
    ['zero', [0], 'RequestMalformed'],
    ['negative', [0xff], 'RequestMalformed'],
  ])('%s', (_, exponent, answer) => {
    expect(decode(modulus, Buffer.from(exponent))).toBe(answer);
  });
});

describe('the modulus of an RSA key', () => {
  test.each<[string, Uint8Array, string]>([
    ['even', Buffer.concat([Buffer.from([0]), Buffer.alloc(256, 0xc4)]), 'KeyNotPermitted'],
    ['of 8192 bits', Buffer.concat([Buffer.from([0]), Buffer.alloc(1024, 0xc5)]), 'RSA 8192'],
    ['of 8193 bits', Buffer.concat([Buffer.from([1]), Buffer.alloc(1024, 0xc5)]), 'KeyNotPermitted'],
    ['negative', Buffer.alloc(256, 0xc5), 'RequestMalformed'],
  ])('%s', (_, octets, answer) => {
    expect(decode(octets, Buffer.from([1, 0, 1]))).toBe(answer);
  });
});

test('an ordinary key is described', () => {
  const info = readDer(sharedKey('P-256').spki);
  if (!info.ok) throw new Error(info.problem);
  expect(decodePublicKey(info.value)).toMatchObject({ value: { publicKey: { description: 'ECDSA P-256' } } });
});

test('bytes that hold a key and nothing else are decoded', () => {
  const { spki } = sharedKey('P-256');
  expect(decodeSpki(spki)).toMatchObject({ value: { publicKey: { description: 'ECDSA P-256' } } });
  expect(decodeSpki(Buffer.concat([spki, Buffer.of(0)]))).toMatchObject({
    problem: [
      { code: 'RequestMalformed', message: expect.stringMatching(/^the public key is not DER: it /) as string },
    ],
  });
});
