/** Quotes: tampered with, of something else, for something else, of other PCRs. */
import { createHash } from 'node:crypto';
import { attest, id, quote, quoteBody, signature, tpm2b } from '../../../harness/tpm/model-tpm.ts';
import type { Quoted } from '../../../harness/tpm/model-tpm.ts';
import type { Case } from './judge.ts';
import { rsaKeys } from './key-cases.ts';
import { ak, bound, good, otherAk, pcrs, pcrsSent, quoteData, withKey } from './machine.ts';
import type { Json } from './machine.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;
const notAllowed = (check: string) => ['IdentityNotAllowed', check] as const;
const made = quote(ak, bound, pcrs);
const quoted = (options: Parameters<typeof quote>[3], values = pcrs): Json => ({
  quote: quoteData(quote(ak, bound, pcrs, options), values),
});
/** The attestation key signs whatever is in `bytes`. */
const signedAs = (bytes: Buffer): Json => ({
  quote: quoteData({ attest: bytes, sig: signature(ak.privateKey, id.ecdsa, id.sha256, bytes) }),
});
const changed = (change: (bytes: Buffer) => void): Buffer => {
  const bytes = Buffer.from(made.attest);
  change(bytes);
  return bytes;
};
const send = (one: Partial<Quoted>): Json => ({ quote: quoteData({ ...made, ...one }) });
const name = Buffer.concat([Buffer.of(0, id.sha256), Buffer.alloc(32)]);
const certification = attest({ type: 0x8017, extraData: bound, body: Buffer.concat([tpm2b(name), tpm2b(name)]) });
const digest = createHash('sha256')
  .update(Buffer.concat([...pcrs.values()]))
  .digest();
const body = quoteBody([[id.sha256, [...pcrs.keys()]]], digest);
const { rsaAk, pssAk } = rsaKeys;

export const quoteCases: readonly Case[] = [
  {
    name: 'tampered with',
    data: send({ attest: changed((bytes) => bytes.writeUInt8(1, 80)) }),
    expect: invalid('the quote is not signed with the attestation key'),
  },
  {
    name: 'a trailing byte',
    data: send({ attest: Buffer.concat([made.attest, Buffer.of(0)]) }),
    expect: invalid('the quote has trailing bytes'),
  },
  {
    name: 'a trailing byte that is signed',
    data: signedAs(Buffer.concat([made.attest, Buffer.of(0)])),
    expect: invalid('the quote has trailing bytes'),
  },
  {
    name: 'cut, and signed',
    data: signedAs(made.attest.subarray(0, -1)),
    expect: invalid('the quote ends inside a field'),
  },
  {
    name: 'another magic number, signed',
    data: signedAs(changed((bytes) => bytes.writeUInt8(0xfe, 0))),
    expect: invalid('the quote does not begin with the magic number of a TPM'),
  },
  { name: 'a certification', data: signedAs(certification), expect: invalid('the quote is a certification') },
  {
    name: 'a time attestation',
    data: signedAs(changed((bytes) => bytes.writeUInt16BE(0x8019, 4))),
    expect: invalid('the quote is neither a quote nor a certification'),
  },
  {
    name: 'for another request',
    data: { quote: quoteData(quote(ak, Buffer.alloc(32, 0xb2), pcrs)) },
    expect: invalid('the quote is not for this request'),
  },
  {
    name: 'for this request and more',
    data: { quote: quoteData(quote(ak, Buffer.concat([bound, Buffer.of(0)]), pcrs)) },
    expect: invalid('the quote is not for this request'),
  },
  {
    name: 'for the first half of it',
    data: { quote: quoteData(quote(ak, bound.subarray(0, 16), pcrs)) },
    expect: invalid('the quote is not for this request'),
  },
  {
    name: 'for nothing',
    data: { quote: quoteData(quote(ak, Buffer.of(), pcrs)) },
    expect: invalid('the quote is not for this request'),
  },
  {
    name: 'by another key',
    data: { quote: quoteData(quote(otherAk, bound, pcrs)) },
    expect: invalid('the quote is not signed with the attestation key'),
  },
  {
    name: 'by a key of another kind',
    data: withKey(ak, rsaAk),
    expect: invalid('is signed with another scheme than that of the attestation key'),
  },
  {
    name: 'RSAPSS by a key for RSASSA',
    data: { ...withKey(rsaAk, { ...rsaAk, scheme: id.rsapss }) },
    expect: invalid('is signed with another scheme'),
  },
  {
    name: 'RSASSA by a key for RSAPSS',
    data: { ...withKey(pssAk, { ...pssAk, scheme: id.rsassa }) },
    expect: invalid('is signed with another scheme'),
  },
  {
    name: 'SHA-384 by a key for SHA-256',
    data: { ...withKey(ak, { ...ak, hash: id.sha384 }) },
    expect: invalid('is signed with another scheme'),
  },
  {
    name: 'a signature with a trailing byte',
    data: send({ sig: Buffer.concat([made.sig, Buffer.of(0)]) }),
    expect: invalid('the quote has a signature that has trailing bytes'),
  },
  {
    name: 'a signature in ASN.1',
    data: send({ sig: Buffer.of(0x30, 6, 2, 1, 1, 2, 1, 1) }),
    expect: invalid('the quote has a signature that is not of RSASSA, RSAPSS or ECDSA'),
  },
  {
    name: 'a signature of zeros',
    data: send({ sig: Buffer.concat([made.sig.subarray(0, 4), tpm2b(Buffer.of()), tpm2b(Buffer.of())]) }),
    expect: invalid('the quote is not signed with the attestation key'),
  },
  {
    name: 'a signature with an r that is too long',
    data: send({
      sig: Buffer.concat([
        made.sig.subarray(0, 4),
        tpm2b(Buffer.concat([Buffer.alloc(1), made.sig.subarray(6, 38)])),
        made.sig.subarray(38),
      ]),
    }),
    expect: invalid('the quote is not signed with the attestation key'),
  },
  {
    name: 'a clock of 2 safe, signed',
    data: quoted({ safe: 2 }),
    expect: invalid('the quote has a clock that is neither safe nor unsafe'),
  },
  { name: 'a clock that is not safe', data: quoted({ safe: 0 }), expect: 'accepted' },
  { name: 'no PCRs at all', data: { quote: quoteData(quote(ak, bound, new Map()), 'unsent') }, expect: 'accepted' },
  {
    name: 'of other values than were sent',
    data: { quote: quoteData(made, new Map([...pcrs, [7, Buffer.alloc(32)]])) },
    expect: invalid('the quote is of other PCR values than were sent'),
  },
  {
    name: 'of more PCRs than were sent',
    data: { quote: quoteData(made, new Map([...pcrs].slice(1))) },
    expect: invalid('the quote is of other PCRs than were sent'),
  },
  {
    name: 'of fewer PCRs than were sent',
    data: { quote: quoteData(made, new Map([...pcrs, [8, Buffer.alloc(32)]])) },
    expect: invalid('the quote is of other PCRs than were sent'),
  },
  {
    name: 'of other PCRs, with the digest of those that were sent',
    data: quoted({ selections: [[id.sha256, [16, 17, 18, 19, 20, 21, 22, 23]]] }),
    expect: invalid('the quote is of other PCRs than were sent'),
  },
  {
    name: 'of another bank',
    data: quoted({ selections: [[id.sha384, [...pcrs.keys()]]] }),
    expect: invalid('the quote is not of the SHA-256 bank alone'),
  },
  {
    name: 'of two banks',
    data: quoted({
      selections: [
        [id.sha256, [...pcrs.keys()]],
        [id.sha384, [0]],
      ],
    }),
    expect: invalid('the quote is not of the SHA-256 bank alone'),
  },
  {
    name: 'of no bank, with values',
    data: quoted({ body: quoteBody([], digest) }),
    expect: invalid('the quote is not of the SHA-256 bank alone'),
  },
  { name: 'with a body that is right', data: quoted({ body }), expect: 'accepted' },
];

const hex = (pcr: number) => Buffer.alloc(32, pcr).toString('hex');
const policyOf = (values: Readonly<Record<string, readonly string[]>>) => ({ bank: 'sha256', values }) as const;
const unsent = { quote: { attest: (good['quote'] as Json)['attest'], sig: (good['quote'] as Json)['sig'] } };

const more = new Map([...pcrs, [12, Buffer.alloc(32)], [13, Buffer.alloc(32)]]);

export const pcrCases: readonly Case[] = [
  { name: 'the values of the policy', pcrs: policyOf({ 4: [hex(4)], 7: [hex(9), hex(7)] }), expect: 'accepted' },
  {
    name: 'another value of PCR 7',
    pcrs: policyOf({ 4: [hex(4)], 7: [hex(9)] }),
    expect: notAllowed('the profile does not permit the value of PCR 7 (Secure Boot policy)'),
  },
  {
    name: 'other values of two PCRs',
    pcrs: policyOf({ 0: [hex(1)], 4: [hex(5)], 7: [hex(7)] }),
    expect: notAllowed('the value of PCR 0 (firmware code), PCR 4 (boot loader code)'),
  },
  {
    name: 'a PCR that is not quoted',
    pcrs: policyOf({ 11: [hex(11)] }),
    expect: notAllowed('the profile permits values of PCR 11, and the evidence does not hold it'),
  },
  {
    name: 'values that are not sent',
    data: unsent,
    pcrs: policyOf({ 7: [hex(7)] }),
    expect: notAllowed('the profile permits values of PCR 7, and the evidence does not hold it'),
  },
  {
    name: 'values of the policy, sent beside a quote of others',
    data: { quote: { ...(good['quote'] as Json), pcrs: { ...pcrsSent(), 7: hex(9) } } },
    pcrs: policyOf({ 7: [hex(9)] }),
    expect: invalid('the quote is of other PCR values than were sent'),
  },
  {
    name: 'PCRs above those of the firmware',
    data: { quote: quoteData(quote(ak, bound, more), more) },
    pcrs: policyOf({ 12: [hex(12)], 13: [hex(12)] }),
    expect: notAllowed('does not permit the value of PCR 12, PCR 13'),
  },
];
