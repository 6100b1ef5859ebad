/** Requests of EC2 instances with a NitroTPM: right ones, and one for each check. What aws and tpm check is in their own cases. */
import { ThrottledError } from '../../../../core/ports/errors.ts';
import { createAk, createEk, quote } from '../../../harness/tpm/model-tpm.ts';
import * as ec2 from '../aws-machine.ts';
import { answer, challengeUntil } from '../tpm/challenge-cases.ts';
import type { Answer } from '../tpm/challenge-cases.ts';
import * as tpm from '../tpm/machine.ts';
import { audience } from './judge.ts';
import type { Case } from './judge.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;
const notAllowed = (check: string) => ['IdentityNotAllowed', check] as const;
const temporary = (check: string) => ['temporary', check] as const;

const p384 = createEk('P-384');
const challenge = challengeUntil(ec2.now + 60_000);
const answered = (options: Answer = {}) => answer({ audience, challenge, ...options });
const unrestricted = createAk('P-256', { attributes: 0x00040072 });
const notOfThisTpm = invalid('the answer to the challenge is not of this TPM for this request');
const pcrPolicy = (value: number) => ({
  bank: 'sha256' as const,
  values: { 7: [Buffer.alloc(32, value).toString('hex')] },
});

const evidenceCases: readonly Case[] = [
  { name: 'a quote', expect: 'accepted' },
  { name: 'a quote and an answer', data: answered(), expect: 'activated' },
  {
    name: 'an endorsement key on P-384',
    data: { ekType: 'ecc-sec-p384', ...answered({ ekHash: tpm.hashOf(p384.spki) }) },
    endorsementKey: p384.spki,
    expect: 'activated',
  },
  { name: 'no JSON', text: (text) => text.slice(1), expect: invalid('the attestation data is not JSON') },
  { name: 'of version 2', data: { v: 2 }, expect: invalid('the attestation data is not of aws-nitrotpm/v1') },
  ...['account', 'region', 'instance', 'sts', 'ekType', 'ak', 'quote'].map((key) => ({
    name: `without ${key}`,
    data: { [key]: undefined },
    expect: invalid('the attestation data lacks one of'),
  })),
  {
    name: 'an endorsement key in the request',
    data: { ek: { spki: tpm.b64(tpm.ek.spki) } },
    expect: invalid('the attestation data has an unknown key'),
  },
  {
    name: 'an identity document in the request',
    data: { rsa2048: 'MII=' },
    expect: invalid('the attestation data has an unknown key'),
  },
  ...['p-256', 'RSA-2048', '', null, 1].map((ekType) => ({
    name: `an endorsement key of type ${JSON.stringify(ekType)}`,
    data: { ekType },
    expect: invalid('the attestation data names no type of endorsement key that a NitroTPM has'),
  })),
  { name: 'a proof that is a number', data: { sts: 1 }, expect: invalid('has a proof that is not text') },
  { name: 'no instance', data: { instance: 'i-1' }, expect: invalid('the attestation data names no instance') },
  { name: 'a nonce with a blank', data: { nonce: ' ' }, expect: invalid('the attestation data has an invalid nonce') },
];

const instanceCases: readonly Case[] = [
  {
    name: 'an account that may not join',
    data: { account: ec2.otherAccount },
    expect: notAllowed(`instances of account ${ec2.otherAccount} may not join`),
  },
  {
    name: 'a token for another request',
    presign: { id: `csr-attest/v1/${ec2.clusterName}/${'0'.repeat(64)}` },
    expect: invalid('the STS token '),
  },
  {
    name: 'credentials of another instance',
    presign: { credential: ec2.credentials.otherMachine },
    expect: invalid('the STS token is of another instance than the evidence says'),
  },
  { name: 'an instance without the tag', instance: { tags: new Map() }, expect: notAllowed('does not have the tag') },
  { name: 'a stopped instance', instance: { state: 'stopped' }, expect: notAllowed('the instance is stopped') },
  { name: 'an instance that EC2 does not know yet', instance: 'notFound', expect: temporary('EC2 does not yet know') },
  {
    name: 'an instance without NitroTPM',
    instance: { tpmSupport: '' },
    expect: notAllowed('the instance has no NitroTPM 2.0'),
  },
  {
    name: 'an instance with a TPM of another version',
    instance: { tpmSupport: 'v1.2' },
    expect: notAllowed('the instance has no NitroTPM 2.0'),
  },
  {
    name: 'an invalid endorsement key of EC2',
    endorsementKey: Buffer.from('no key'),
    expect: invalid('the endorsement key that EC2 names cannot be decoded'),
  },
  {
    name: 'an endorsement key of EC2 of another type',
    endorsementKey: p384.spki,
    expect: invalid('the endorsement key that EC2 names is not rsa-2048'),
  },
  {
    name: 'an EC2 that is throttled',
    ports: { endorsementKeys: () => Promise.reject(new ThrottledError('EC2 asks to slow down')) },
    expect: temporary('EC2 asks to slow down'),
  },
];

const tpmCases: readonly Case[] = [
  {
    name: 'an attestation key that signs anything',
    data: tpm.withKey(unrestricted),
    expect: invalid('the attestation key is not restricted'),
  },
  {
    name: 'a quote by another key',
    data: tpm.withKey(tpm.ak, tpm.otherAk),
    expect: invalid('the quote '),
  },
  {
    name: 'a quote for another request',
    data: { quote: tpm.quoteData(quote(tpm.ak, Buffer.alloc(32, 1), tpm.pcrs)) },
    expect: invalid('the quote '),
  },
  { name: 'the PCRs of the profile', pcrs: pcrPolicy(7), expect: 'accepted' },
  { name: 'another PCR than the profile permits', pcrs: pcrPolicy(8), expect: notAllowed('PCR 7') },
  {
    name: 'an expired challenge',
    data: answered({ challenge: challengeUntil(ec2.now) }),
    expect: invalid('the challenge has expired'),
  },
  // The TPM of another instance, or one of software: EC2 names neither for this instance.
  {
    name: 'an answer of another TPM',
    data: answered({ ekHash: tpm.hashOf(tpm.otherEk.spki) }),
    expect: notOfThisTpm,
  },
  {
    name: 'an answer for the other endorsement key of the TPM',
    data: answered({ ekHash: tpm.hashOf(p384.spki) }),
    expect: notOfThisTpm,
  },
  { name: 'an answer to another deployment', data: answered({ audience: `${audience}2` }), expect: notOfThisTpm },
  {
    name: 'a challenge key that does not answer',
    data: answered(),
    ports: { challengeKey: { mac: () => Promise.reject(new Error('throttled')) } },
    expect: temporary('throttled'),
  },
];

export const casesBySubject: Readonly<Record<string, readonly Case[]>> = {
  evidence: evidenceCases,
  instance: instanceCases,
  tpm: tpmCases,
};
