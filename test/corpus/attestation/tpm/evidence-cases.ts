/** The DATA block: one meaning, closed keys, exact encodings. */
import { quote } from '../../../harness/tpm/model-tpm.ts';
import type { Case } from './judge.ts';
import { ak, b64, binding, bound, certificate, ek, good, pcrs, pcrsSent, quoteData } from './machine.ts';
import type { Json } from './machine.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;
const quoted = good['quote'] as Json;
const answer = { challenge: Buffer.alloc(23, 1).toString('base64url'), proof: b64(Buffer.alloc(32)) };
const withPcrs = (values: unknown): Json => ({ quote: { ...quoted, pcrs: values } });
const withEvents = (events: unknown): Json => ({ quote: { ...quoted, events } });
const notDigests = invalid('the attestation data has events that are not base64 of SHA-256 digests by PCR number');
const notHex = invalid('the attestation data has PCR values that are not hex of SHA-256 by PCR number');
const noEk = invalid('the attestation data has an endorsement key that is neither a cert nor a spki');
const noActivation = invalid('the attestation data has an activation that is not a challenge and a proof');
const notBase64 = invalid('the attestation data has an attestation key that is not base64');
const quoteNotBase64 = invalid('the attestation data has a quote that is not base64');

export const evidenceCases: readonly Case[] = [
  { name: 'as the node sends it', expect: 'accepted' },
  {
    name: 'with a nonce',
    data: { nonce: 'ab12', quote: quoteData(quote(ak, Buffer.from(binding('ab12'), 'hex'), pcrs)) },
    expect: 'accepted',
  },
  {
    name: 'with a nonce that the quote does not hold',
    data: { nonce: 'ab12' },
    expect: invalid('the quote is not for this request'),
  },
  { name: 'with a nonce of 129 characters', data: { nonce: 'a'.repeat(129) }, expect: invalid('has an invalid nonce') },
  { name: 'with a nonce that is a number', data: { nonce: 1 }, expect: invalid('has an invalid nonce') },
  { name: 'not JSON', text: () => 'ek', expect: invalid('the attestation data is not JSON') },
  { name: 'an array', text: () => '[]', expect: invalid('the attestation data is not a JSON object') },
  {
    name: 'a key twice',
    text: (text) => text.replace('{', '{"v":1,'),
    expect: invalid('the attestation data has a key twice'),
  },
  {
    name: 'a key twice, inside',
    text: (text) => text.replace('{"attest"', '{"sig":"","attest"'),
    expect: invalid('the attestation data has a key twice'),
  },
  { name: 'an unknown key', data: { cert: '' }, expect: invalid('the attestation data has an unknown key') },
  {
    name: 'no attestation key',
    data: { ak: undefined },
    expect: invalid('the attestation data lacks one of v, ek, ak, quote'),
  },
  {
    name: 'no quote',
    data: { quote: undefined },
    expect: invalid('the attestation data lacks one of v, ek, ak, quote'),
  },
  { name: 'of version 2', data: { v: 2 }, expect: invalid('the attestation data is not of tpm/v1') },
  { name: 'of version "1"', data: { v: '1' }, expect: invalid('the attestation data is not of tpm/v1') },
  { name: 'an endorsement key that is text', data: { ek: 'cert' }, expect: noEk },
  { name: 'an endorsement key that is null', data: { ek: null }, expect: noEk },
  { name: 'an endorsement key without its kind', data: { ek: {} }, expect: noEk },
  { name: 'an endorsement key of an unknown kind', data: { ek: { name: b64(ek.spki) } }, expect: noEk },
  { name: 'an endorsement key twice', data: { ek: { cert: b64(certificate), spki: b64(ek.spki) } }, expect: noEk },
  { name: 'an endorsement key that is not base64', data: { ek: { cert: '*' } }, expect: noEk },
  { name: 'an endorsement key that is a number', data: { ek: { cert: 1 } }, expect: noEk },
  { name: 'an attestation key that is a number', data: { ak: 1 }, expect: notBase64 },
  { name: 'an attestation key that is empty', data: { ak: '' }, expect: notBase64 },
  { name: 'an attestation key with a line break', data: { ak: `${String(good['ak'])}\n` }, expect: notBase64 },
  {
    name: 'an attestation key as base64url',
    data: { ak: b64(ak.area).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') },
    expect: notBase64,
  },
  { name: 'a quote that is text', data: { quote: 'quote' }, expect: invalid('has a quote that is not an object') },
  { name: 'a quote that is null', data: { quote: null }, expect: invalid('has a quote that is not an object') },
  {
    name: 'a quote with an unknown key',
    data: { quote: { ...quoted, name: '' } },
    expect: invalid('has a quote that has an unknown key'),
  },
  {
    name: 'a quote without a signature',
    data: { quote: { attest: quoted['attest'] } },
    expect: invalid('has a quote that lacks one of attest, sig'),
  },
  {
    name: 'an attest that is not base64',
    data: { quote: { ...quoted, attest: 'ff54=' } },
    expect: quoteNotBase64,
  },
  { name: 'a signature that is not base64', data: { quote: { ...quoted, sig: 1 } }, expect: quoteNotBase64 },
  {
    name: 'PCR values in a list',
    data: withPcrs([...pcrs.values()].map((value) => value.toString('hex'))),
    expect: notHex,
  },
  { name: 'PCR values that are text', data: withPcrs('00'), expect: notHex },
  { name: 'PCR 32', data: withPcrs({ ...pcrsSent(), 32: '0'.repeat(64) }), expect: notHex },
  { name: 'PCR 00', data: withPcrs({ ...pcrsSent(), '00': '0'.repeat(64) }), expect: notHex },
  { name: 'PCR -1', data: withPcrs({ ...pcrsSent(), '-1': '0'.repeat(64) }), expect: notHex },
  { name: 'a PCR value in capitals', data: withPcrs({ ...pcrsSent(), 7: 'AB'.repeat(32) }), expect: notHex },
  { name: 'a PCR value of 31 bytes', data: withPcrs({ ...pcrsSent(), 7: '07'.repeat(31) }), expect: notHex },
  { name: 'a PCR value in a list', data: withPcrs({ ...pcrsSent(), 7: ['07'.repeat(32)] }), expect: notHex },
  { name: 'a PCR value that is a number', data: withPcrs({ ...pcrsSent(), 7: 7 }), expect: notHex },
  { name: 'events', data: withEvents({ 4: b64(Buffer.alloc(64)), 23: b64(Buffer.alloc(32)) }), expect: 'accepted' },
  { name: 'no events', data: withEvents({}), expect: 'accepted' },
  { name: 'events in a list', data: withEvents([b64(Buffer.alloc(32))]), expect: notDigests },
  { name: 'events that are text', data: withEvents(b64(Buffer.alloc(32))), expect: notDigests },
  { name: 'events that are null', data: withEvents(null), expect: notDigests },
  { name: 'events of PCR 32', data: withEvents({ 32: b64(Buffer.alloc(32)) }), expect: notDigests },
  { name: 'events of no bytes', data: withEvents({ 4: '' }), expect: notDigests },
  { name: 'events of 63 bytes', data: withEvents({ 4: b64(Buffer.alloc(63)) }), expect: notDigests },
  { name: 'events in hex', data: withEvents({ 4: [Buffer.alloc(32).toString('hex')] }), expect: notDigests },
  {
    name: 'events in base64url',
    data: withEvents({ 4: Buffer.alloc(32, 0xff).toString('base64url') }),
    expect: notDigests,
  },
  { name: 'an activation that is null', data: { activation: null }, expect: noActivation },
  { name: 'an activation that is text', data: { activation: answer.challenge }, expect: noActivation },
  { name: 'an activation with an unknown key', data: { activation: { ...answer, secret: '' } }, expect: noActivation },
  {
    name: 'an activation without a proof',
    data: { activation: { challenge: answer.challenge } },
    expect: noActivation,
  },
  {
    name: 'an activation whose challenge is not base64url',
    data: { activation: { ...answer, challenge: '+/+/' } },
    expect: noActivation,
  },
  {
    name: 'an activation whose proof is not base64',
    data: { activation: { ...answer, proof: '-_-_' } },
    expect: noActivation,
  },
  {
    name: 'a quote without PCR values',
    data: { quote: quoteData(quote(ak, bound, pcrs), 'unsent') },
    expect: 'accepted',
  },
];
