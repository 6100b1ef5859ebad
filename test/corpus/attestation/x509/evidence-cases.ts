/** The DATA block, the time and the signature. */
import { keyOf } from '../../../harness/x509/certificate-writer.ts';
import * as world from './machine.ts';
import type { Case } from './judge.ts';

const invalid = (check: string) => ['AttestationInvalid', `the attestation data ${check}`] as const;
const lacks = invalid('lacks one of v, chain, signature, algorithm, nonce');
const badNonce = invalid('has an invalid nonce');
const badSignature = invalid('has a signature that is not base64');
const notSigned = ['AttestationInvalid', 'the signature is not by the key of the certificate'] as const;
const otherAlgorithm = invalid('has another algorithm than that of the key');
const old = ['AttestationInvalid', 'the signature is older than 5 minutes'] as const;
const early = ['AttestationInvalid', 'the signature is more than a minute ahead of our clock'] as const;
const at = (instant: number): Pick<Case, 'nonce'> => ({ nonce: world.nonceAt(instant) });
const leafOf = (key: ReturnType<typeof keyOf>): Pick<Case, 'chain' | 'key'> => ({
  key,
  chain: [world.leaf({ key }), world.certificates.intermediate],
});

export const evidenceCases: readonly Case[] = [
  {
    name: 'a machine with its certificate',
    expect: 'accepted',
    machine: {
      identity: `x509#prod/uri/${world.spiffeId}`,
      providerId: `x509:///${world.spiffeId}`,
      nodeNames: ['worker-1'],
      addresses: [],
      dnsNames: [],
    },
  },

  // The form.
  { name: 'not JSON', expect: invalid('is not JSON'), dataText: () => 'chain' },
  { name: 'no object', expect: invalid('is not a JSON object'), dataText: (text) => `[${text}]` },
  { name: 'a key twice', expect: invalid('has a key twice'), dataText: (text) => text.replace('{', '{"v":1,') },
  { name: 'an unknown key', expect: invalid('has an unknown key'), data: { root: 'prod' } },
  ...['v', 'chain', 'signature', 'algorithm', 'nonce'].map((key) => ({
    name: `no ${key}`,
    expect: lacks,
    data: { [key]: undefined },
  })),
  { name: 'another version', expect: invalid('is not of x509/v1'), data: { v: 2 } },
  { name: 'a version in quotes', expect: invalid('is not of x509/v1'), data: { v: '1' } },

  // The chain as text.
  { name: 'a chain that is no list', expect: invalid('has no chain'), data: { chain: 'MII' } },
  { name: 'an empty chain', expect: invalid('has no chain'), data: { chain: [] } },
  {
    name: 'seven certificates',
    expect: invalid('has more than 6 certificates'),
    chain: [world.certificates.leaf, ...Array<Buffer>(6).fill(world.certificates.intermediate)],
  },
  {
    name: 'six certificates',
    expect: 'accepted',
    chain: [world.certificates.leaf, ...Array<Buffer>(5).fill(world.certificates.intermediate)],
  },
  {
    name: 'a certificate that is no text',
    expect: ['AttestationInvalid', 'certificate 2 of the chain is not base64'],
    data: { chain: [world.certificates.leaf.toString('base64'), 7] },
  },
  {
    name: 'a certificate in base64url',
    expect: ['AttestationInvalid', 'certificate 1 of the chain is not base64'],
    data: { chain: [`${world.certificates.leaf.toString('base64')}\n`] },
  },
  {
    name: 'no certificate',
    expect: ['AttestationInvalid', 'certificate 1 of the chain is not an X.509 v3 certificate in DER'],
    data: { chain: ['MAA='] },
  },

  // The time.
  { name: 'signed 5 minutes ago', expect: old, ...at(world.now - 5 * world.minute) },
  { name: 'signed almost 5 minutes ago', expect: 'accepted', ...at(world.now - 5 * world.minute + 1) },
  { name: 'signed a minute ahead', expect: 'accepted', ...at(world.now + world.minute) },
  { name: 'signed more than a minute ahead', expect: early, ...at(world.now + world.minute + 1) },
  { name: 'a time in seconds', expect: badNonce, nonce: `${world.now / 1000}.MDEyMzQ1Njc4OWFiY2RlZg` },
  { name: 'a time with a sign', expect: badNonce, nonce: `+${world.nonceAt(world.now)}` },
  { name: 'no time', expect: badNonce, nonce: 'MDEyMzQ1Njc4OWFiY2RlZg' },
  { name: 'a time alone', expect: badNonce, nonce: `${world.now}.` },
  { name: 'a short random part', expect: badNonce, nonce: `${world.now}.MDEyMzQ1Njc4OWF` },
  { name: 'a long random part', expect: badNonce, nonce: `${world.now}.${'a'.repeat(129)}` },
  { name: 'a nonce with a line end', expect: badNonce, nonce: `${world.nonceAt(world.now)}\n` },
  { name: 'a nonce that is no text', expect: badNonce, data: { nonce: world.now } },
  {
    name: 'an old proof with a new time',
    expect: notSigned,
    content: () => world.contentFor(world.nonceAt(world.now - 6 * world.minute)),
    ...at(world.now),
  },

  // The signature.
  { name: 'a signature that is no text', expect: badSignature, data: { signature: 7 } },
  { name: 'a signature in hex', expect: badSignature, data: { signature: 'zz' } },
  {
    name: 'a signature of 1025 bytes',
    expect: badSignature,
    data: { signature: Buffer.alloc(1025).toString('base64') },
  },
  { name: 'no signature in the signature', expect: notSigned, data: { signature: '' } },
  {
    name: 'a signature by another key',
    expect: notSigned,
    signature: () => world.signatureOver(world.contentFor(world.nonceAt(world.now - 20_000)), keyOf('thief')),
  },
  {
    name: 'a signature with one bit changed',
    expect: notSigned,
    signature: (usual) => Buffer.concat([usual.subarray(0, -1), Buffer.from([(usual.at(-1) ?? 0) ^ 1])]),
  },
  {
    name: 'a signature with a byte behind it',
    expect: notSigned,
    signature: (usual) => Buffer.concat([usual, Buffer.of(0)]),
  },
  {
    name: 'for another node',
    expect: notSigned,
    content: (nonce) => world.contentFor(nonce, { nodeName: 'worker-2' }),
  },
  { name: 'over the digest alone', expect: notSigned, content: (nonce) => world.contentFor(nonce).subarray(-32) },
  {
    name: 'over the digest in hex',
    expect: notSigned,
    content: (nonce) => Buffer.from(`csr-attest/x509/v1\0${world.binding(nonce)}`),
  },
  {
    name: 'made for another provider',
    expect: notSigned,
    content: (nonce) => Buffer.concat([Buffer.from('csr-attest/x509/v2\0'), world.contentFor(nonce).subarray(-32)]),
  },
  {
    name: 'by another machine of the same PKI',
    expect: notSigned,
    chain: [world.leaf({ key: keyOf('other machine') }), world.certificates.intermediate],
  },

  // The algorithm goes with the key.
  ...(['P-384', 'P-521', 'Ed25519', 'RSA-2048'] as const).map((kind) => ({
    name: `a machine with a key ${kind}`,
    expect: 'accepted' as const,
    ...leafOf(keyOf('machine', kind)),
  })),
  { name: 'the algorithm of another curve', expect: otherAlgorithm, data: { algorithm: 'ECDSA_SHA_384' } },
  { name: 'no known algorithm', expect: otherAlgorithm, data: { algorithm: 'none' } },
  { name: 'a name that every object has as algorithm', expect: otherAlgorithm, data: { algorithm: 'constructor' } },
  {
    name: 'an algorithm that is no text',
    expect: invalid('has an algorithm that is not text'),
    data: { algorithm: ['ECDSA_SHA_256'] },
  },
  {
    name: 'an RSA key and PKCS #1 v1.5',
    expect: otherAlgorithm,
    ...leafOf(keyOf('machine', 'RSA-2048')),
    data: { algorithm: 'RSASSA_PKCS1_V1_5_SHA_256' },
  },
];
