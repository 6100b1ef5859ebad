/** Quotes and certifications of a real TPM, and what is refused in them. */
import { describe, expect, test } from 'vitest';
import { decodeAttest } from '../../../../../../core/attestation/tpm/structures/attest.ts';
import { bytesOf, vectors } from '../../../../../corpus/attestation/tpm/vectors.ts';
import type { QuoteVector } from '../../../../../corpus/attestation/tpm/vectors.ts';

const quotes = Object.keys(vectors.quotes) as QuoteVector[];

test.each(quotes)('a quote by %s', (name) => {
  const attest = decodeAttest(bytesOf(vectors.quotes[name].attest));
  expect(attest).toMatchObject({
    ok: true,
    value: {
      kind: 'quote',
      extraData: Buffer.alloc(32, 0xab),
      selections: [{ bank: 'sha256', pcrs: [0, 1, 2, 3, 4, 5, 6, 7] }],
      clock: { safe: true, resetCount: bytesOf(vectors.quotes[name].attest).readUInt32BE(84) },
    },
  });
  expect(attest.ok && attest.value.kind === 'quote' && attest.value.pcrDigest.length).toBe(name === 'p384' ? 48 : 32);
});

test.each(['unrestricted', 'software'] as const)('a certification of the %s key has its name', (name) => {
  // tpm2-tools has no option for extraData and sends these bytes.
  expect(decodeAttest(bytesOf(vectors.certifications[name].attest))).toMatchObject({
    ok: true,
    value: { kind: 'certification', name: ofHex(vectors.keys[name].name), extraData: Buffer.from('00ff55aa', 'hex') },
  });
});

function ofHex(hex: string): Buffer {
  return Buffer.from(hex, 'hex');
}

/** Offsets: magic 0, type 4, signer 6, extraData 42, clock 76, resetCount 84, safe 92, firmware 93, PCR list 101. */
const good = bytesOf(vectors.quotes.p256.attest);
const set = (offset: number, ...octets: number[]) =>
  Buffer.concat([good.subarray(0, offset), Buffer.from(octets), good.subarray(offset + octets.length)]);

describe('refused', () => {
  test.each<readonly [name: string, bytes: Buffer, problem: string]>([
    ['nothing', Buffer.of(), 'ends inside a field'],
    ['cut', good.subarray(0, -1), 'ends inside a field'],
    ['a trailing byte', Buffer.concat([good, Buffer.of(0)]), 'has trailing bytes'],
    [
      'a TPM2B_ATTEST',
      Buffer.concat([Buffer.of(0, good.length), good]),
      'does not begin with the magic number of a TPM',
    ],
    ['too large', Buffer.concat([good, Buffer.alloc(512)]), 'is larger than 512 bytes'],
    ['another magic number', set(0, 0xfe), 'does not begin with the magic number of a TPM'],
    ['a creation', set(4, 0x80, 0x1a), 'is neither a quote nor a certification'],
    ['a session audit', set(4, 0x80, 0x16), 'is neither a quote nor a certification'],
    ['a signer of 67 bytes', set(6, 0, 67), 'has a signer of more than 66 bytes'],
    ['extraData of 67 bytes', set(42, 0, 67), 'has extraData of more than 66 bytes'],
    ['a clock beyond all time', set(76, 0xff), 'has a clock of more than 285 000 years'],
    ['a clock that is 2 safe', set(92, 2), 'has a clock that is neither safe nor unsafe'],
    ['17 selections', set(101, 0, 0, 0, 17), 'selects PCRs of more than 16 banks'],
    ['4294967295 selections', set(101, 0xff, 0xff, 0xff, 0xff), 'selects PCRs of more than 16 banks'],
    ['more selections than there are', set(101, 0, 0, 0, 2), 'names a hash that is not SHA-256, SHA-384 or SHA-512'],
    ['PCRs of SHA-1', set(105, 0, 4), 'names a hash that is not SHA-256, SHA-384 or SHA-512'],
    ['a selection of 16 PCRs', set(107, 2), 'has a PCR selection that is not of 24 to 32 bits'],
    ['a selection of 40 PCRs', set(107, 5), 'has a PCR selection that is not of 24 to 32 bits'],
    ['a PCR digest of 65 bytes', set(111, 0, 65), 'has a PCR digest of more than 64 bytes'],
  ])('%s', (_, bytes, problem) => {
    expect(decodeAttest(bytes)).toEqual({ ok: false, problem });
  });
});
