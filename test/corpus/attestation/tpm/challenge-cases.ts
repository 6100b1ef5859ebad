/** Answers to challenges: right ones, and those of others. */
import { createHmac } from 'node:crypto';
import { nameOf } from '../../../harness/tpm/model-tpm.ts';
import type { Case } from './judge.ts';
import type { Json } from './machine.ts';
import { ak, audience, b64, bound, ek, hashOf, now, otherAk, otherEk, withKey } from './machine.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;

export interface Answer {
  readonly key?: string;
  readonly audience?: string;
  readonly ekHash?: string;
  readonly name?: Buffer;
  readonly binding?: Buffer;
  readonly challenge?: Buffer;
  /** The challenge that is sent, if it is not the one that is answered. */
  readonly sent?: Buffer;
  readonly proof?: (proof: Buffer) => Buffer;
}

export function challengeUntil(expiresAt: number, version = 1, random = 16): Buffer {
  const head = Buffer.alloc(7);
  head.writeUInt8(version);
  head.writeUIntBE(expiresAt, 1, 6);
  return Buffer.concat([head, Buffer.alloc(random, 0x77)]);
}

const usual = challengeUntil(now + 60_000);

/** The answer of who knows the secret, as docs/attestation/tpm.md gives it. */
export function answer(options: Answer = {}): Json {
  const { key = 'K', ekHash = hashOf(ek.spki), name = nameOf(ak.area), challenge = usual } = options;
  const { audience: of = audience, binding = bound, sent = challenge, proof: change = (same) => same } = options;
  const text = Buffer.from(of);
  const parts = [
    'csr-attest/challenge/v1\0',
    Buffer.of(0, text.length),
    text,
    challenge,
    Buffer.from(ekHash, 'hex'),
    name,
  ];
  const mac = createHmac('sha256', key);
  for (const part of parts) mac.update(part);
  const proof = createHmac('sha256', mac.digest()).update(binding).digest();
  return { activation: { challenge: sent.toString('base64url'), proof: b64(change(proof)) } };
}

const wrong = invalid('the answer to the challenge is not of this TPM for this request');
const notOurs = invalid('the challenge is not one of version 1');

export const challengeCases: readonly Case[] = [
  { name: 'answered', data: answer(), expect: 'activated' },
  { name: 'answered in the last moment', data: answer({ challenge: challengeUntil(now + 1) }), expect: 'activated' },
  {
    name: 'expired',
    data: answer({ challenge: challengeUntil(now) }),
    expect: invalid('the challenge has expired: the machine must ask for another one'),
  },
  { name: 'of version 2', data: answer({ challenge: challengeUntil(now + 1, 2) }), expect: notOurs },
  { name: 'too short', data: answer({ challenge: challengeUntil(now + 1, 1, 15) }), expect: notOurs },
  { name: 'too long', data: answer({ challenge: challengeUntil(now + 1, 1, 17) }), expect: notOurs },
  { name: 'another one than was answered', data: answer({ sent: challengeUntil(now + 60_001) }), expect: wrong },
  { name: 'made with another key', data: answer({ key: 'k' }), expect: wrong },
  { name: 'made by another deployment', data: answer({ audience: `${audience}2` }), expect: wrong },
  { name: 'made for another endorsement key', data: answer({ ekHash: hashOf(otherEk.spki) }), expect: wrong },
  { name: 'made for another attestation key', data: answer({ name: nameOf(otherAk.area) }), expect: wrong },
  {
    name: 'made for this attestation key, and sent with another',
    data: { ...answer(), ...withKey(otherAk) },
    expect: wrong,
  },
  { name: 'answered for another request', data: answer({ binding: Buffer.alloc(32, 1) }), expect: wrong },
  {
    name: 'a proof with another last byte',
    data: answer({ proof: (proof) => Buffer.concat([proof.subarray(0, 31), Buffer.of((proof[31] ?? 0) ^ 1)]) }),
    expect: wrong,
  },
  { name: 'the first half of a proof', data: answer({ proof: (proof) => proof.subarray(0, 16) }), expect: wrong },
  { name: 'a proof and more', data: answer({ proof: (proof) => Buffer.concat([proof, Buffer.of(0)]) }), expect: wrong },
  {
    name: 'a challenge key that does not answer',
    data: answer(),
    ports: { challengeKey: { mac: () => Promise.reject(new Error('throttled')) } },
    expect: ['temporary', 'throttled'],
  },
  {
    name: 'a list of machines that does not answer',
    ports: { findMachine: () => Promise.reject(new Error('throttled')) },
    expect: ['temporary', 'throttled'],
  },
];
