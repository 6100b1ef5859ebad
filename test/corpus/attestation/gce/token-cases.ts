/** The DATA block, and the token: its form, its header, its claims, its time, its signature. */
import { createHmac, sign } from 'node:crypto';
import { jwkOf } from '../../../harness/fake-google/identity-token.ts';
import type { Case } from './judge.ts';
import * as world from './machine.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;
const data = (check: string) => invalid(`the attestation data ${check}`);
const lacks = data('lacks one of v, token, nonce');
const seconds = world.now / 1_000;
const noVm = invalid('the token does not describe a VM');
const notByGoogle = invalid('the token is not by Google');
const otherRequest = invalid('the token was not made for this request');
const notSigned = invalid('the token is not signed by Google');
const otherHeader = invalid('the header of the token has more than alg, kid and typ');
const noTimes = invalid('the token has no iat or no exp');
const notRs256 = invalid('the token is not signed with RS256');
/** A `kid` that no cached set has makes attest read the set; a wrong form costs no call. */
const local = { calls: 0 } as const;

const blocks: readonly Case[] = [
  { name: 'not JSON', expect: data('is not JSON'), dataText: () => 'token', ...local },
  { name: 'no object', expect: data('is not a JSON object'), dataText: (text) => `[${text}]` },
  { name: 'a key twice', expect: data('has a key twice'), dataText: (text) => text.replace('{', '{"v":1,') },
  { name: 'an unknown key', expect: data('has an unknown key'), data: { jwks: 'https://evil.example' } },
  ...['v', 'token', 'nonce'].map((key) => ({ name: `no ${key}`, expect: lacks, data: { [key]: undefined } })),
  { name: 'another version', expect: data('is not of gce/v1'), data: { v: 2 } },
  { name: 'a nonce that is too short', expect: data('has an invalid nonce'), data: { nonce: 'MDEyMzQ1Njc4OWF' } },
  { name: 'a nonce that is too long', expect: data('has an invalid nonce'), data: { nonce: 'a'.repeat(129) } },
  {
    name: 'a nonce of other characters',
    expect: data('has an invalid nonce'),
    data: { nonce: 'MDEyMzQ1Njc4OWFiY2/=' },
  },
  { name: 'a nonce with more behind it', expect: data('has an invalid nonce'), data: { nonce: `${world.nonce} ` } },
  { name: 'a nonce that is no text', expect: data('has an invalid nonce'), data: { nonce: 1_234_567_890_123_456 } },
  { name: 'another nonce than that of the token', expect: otherRequest, data: { nonce: 'another-nonce-of-it' } },

  { name: 'a token that is no text', expect: data('has no token'), token: () => 7 },
  { name: 'a list of a token', expect: data('has no token'), token: (usual) => [usual] },
  { name: 'a token of two parts', expect: data('has no token'), token: (usual) => usual.replace(/\.[^.]*$/, '') },
  { name: 'a token of four parts', expect: data('has no token'), token: (usual) => `${usual}.e30` },
  { name: 'a token with something before it', expect: data('has no token'), token: (usual) => `Bearer ${usual}` },
  { name: 'a token with a line break', expect: data('has no token'), token: (usual) => `${usual}\n` },
  { name: 'a token that is too long', expect: data('has no token'), claims: { more: 'a'.repeat(6_000) } },
];

const headers: readonly Case[] = [
  { name: 'a header that is no JSON', expect: invalid('the token is not a JWT'), header: 'alg', ...local },
  { name: 'a header with a key twice', expect: otherHeader, header: '{"alg":"RS256","alg":"RS256","kid":"google-1"}' },
  { name: 'a key set of the sender', expect: otherHeader, header: { jku: 'https://evil.example/certs' }, ...local },
  { name: 'a key of the sender', expect: otherHeader, header: { jwk: jwkOf(world.keys.attacker) }, ...local },
  { name: 'a certificate of the sender', expect: otherHeader, header: { x5c: ['MII'] }, ...local },
  { name: 'a critical extension', expect: otherHeader, header: { crit: ['b64'], b64: false }, ...local },
  { name: 'no kid', expect: invalid('the token names no key'), header: { kid: undefined }, ...local },
  { name: 'an empty kid', expect: invalid('the token names no key'), header: { kid: '' } },
  { name: 'no type', expect: 'accepted', header: { typ: undefined } },
  {
    name: 'no signature',
    expect: notRs256,
    header: { alg: 'none' },
    signature: () => Buffer.from('none'),
    ...local,
  },
  {
    name: "an HMAC with Google's public key",
    expect: notRs256,
    header: { alg: 'HS256' },
    signature: (signed) =>
      createHmac('sha256', world.keys.google.publicKey.export({ type: 'spki', format: 'pem' }))
        .update(signed)
        .digest(),
    ...local,
  },
  {
    name: 'RS512',
    expect: notRs256,
    header: { alg: 'RS512' },
    signature: (signed) => sign('sha512', signed, world.keys.google.privateKey),
    ...local,
  },
];

const claims: readonly Case[] = [
  { name: 'claims that are no JSON', expect: invalid('the token is not JSON'), claimsText: () => 'aud', ...local },
  { name: 'claims that are no object', expect: invalid('the token is not a JSON object'), claimsText: () => '[]' },
  {
    name: 'an audience twice',
    expect: invalid('the token has a key twice'),
    claimsText: (usual) => usual.replace('{', '{"aud":"other",'),
  },
  { name: 'another issuer', expect: notByGoogle, claims: { iss: 'https://accounts.evil.example' }, ...local },
  { name: 'the issuer without its scheme', expect: notByGoogle, claims: { iss: 'accounts.google.com' } },
  { name: 'no issuer', expect: notByGoogle, claims: { iss: undefined } },
  { name: 'the audience of another service', expect: otherRequest, claims: { aud: 'https://vault.example' }, ...local },
  { name: 'the binding alone as audience', expect: otherRequest, claims: { aud: world.binding(world.nonce) } },
  { name: 'two audiences', expect: otherRequest, claims: { aud: [world.audience(), 'https://vault.example'] } },
  { name: 'a list of the audience', expect: otherRequest, claims: { aud: [world.audience()] } },
  { name: 'no audience', expect: otherRequest, claims: { aud: undefined } },
  {
    name: 'the audience of another node',
    expect: otherRequest,
    claims: { aud: world.audience(world.binding(world.nonce, { nodeName: 'worker-2' })) },
  },
  {
    name: 'the audience of another deployment',
    expect: otherRequest,
    claims: { aud: world.audience(world.binding(world.nonce, { audience: '111122223333/eu-central-1/green' })) },
  },
  { name: 'no iat', expect: noTimes, claims: { iat: undefined } },
  { name: 'no exp', expect: noTimes, claims: { exp: undefined } },
  { name: 'an exp in quotes', expect: noTimes, claims: { exp: String(seconds + 60) } },
  { name: 'half a second', expect: noTimes, claims: { iat: seconds - 0.5 } },
  { name: 'five minutes old', expect: invalid('older than 5 minutes'), claims: { iat: seconds - 300 }, ...local },
  { name: 'almost five minutes old', expect: 'accepted', claims: { iat: seconds - 299 } },
  { name: 'a minute ahead', expect: 'accepted', claims: { iat: seconds + 60 } },
  { name: 'more than a minute ahead', expect: invalid('more than a minute ahead'), claims: { iat: seconds + 61 } },
  { name: 'expired', expect: invalid('the token has expired'), claims: { exp: seconds }, ...local },
  { name: 'almost expired', expect: 'accepted', claims: { exp: seconds + 1 } },
];

const engine: readonly Case[] = [
  { name: 'a token of a user', expect: noVm, claims: { google: undefined }, ...local },
  { name: 'a token with format=standard', expect: noVm, claims: { google: {} } },
  { name: 'a list instead of a VM', expect: noVm, claims: { google: { compute_engine: [] } } },
  ...['project_id', 'project_number', 'zone', 'instance_id', 'instance_name', 'instance_creation_timestamp'].map(
    (name) => ({ name: `no ${name}`, expect: noVm, engine: { [name]: undefined } }),
  ),
  { name: 'a project number in quotes', expect: noVm, engine: { project_number: world.vm.projectNumber } },
  { name: 'a project number that lost digits', expect: noVm, engine: { project_number: 2 ** 60 } },
  { name: 'an instance id as number', expect: noVm, engine: { instance_id: 42 } },
  { name: 'an instance id with a path', expect: noVm, engine: { instance_id: '42/../43' } },
  { name: 'an instance id with a leading zero', expect: noVm, engine: { instance_id: '042' } },
  { name: 'an instance id with a sign', expect: noVm, engine: { instance_id: '-42' } },
  { name: 'a zone with a path', expect: noVm, engine: { zone: 'projects/42/zones/europe-west3-b' } },
  { name: 'a zone that is a pattern', expect: noVm, engine: { zone: '*' } },
  { name: 'a name that is a pattern', expect: noVm, engine: { instance_name: 'worker-*' } },
  { name: 'a project id with a path', expect: noVm, engine: { project_id: '../my-nodes' } },
  { name: 'a time of creation in quotes', expect: noVm, engine: { instance_creation_timestamp: '1795000000' } },
  { name: 'an unknown claim', expect: 'accepted', engine: { license_id: ['1'] } },
];

const signatures: readonly Case[] = [
  { name: 'the VM with its token', expect: 'accepted', calls: 2 },
  { name: "the next of Google's keys", expect: 'accepted', key: world.keys.next },
  {
    name: "a key of the attacker with the name of one of Google's",
    expect: notSigned,
    key: world.keys.attacker,
    calls: 1,
  },
  {
    name: "a key that Google doesn't publish",
    expect: invalid('a key that Google does not publish'),
    key: world.keys.unknown,
    calls: 1,
  },
  { name: "another of Google's keys", expect: notSigned, header: { kid: 'google-2' } },
  {
    name: 'a signature over other bytes',
    expect: notSigned,
    signature: () => sign('sha256', Buffer.from('x'), world.keys.google.privateKey),
  },
  { name: 'a signature that is too short', expect: notSigned, signature: () => Buffer.alloc(16) },
  {
    name: 'claims of another token of the VM',
    expect: notSigned,
    token: (usual) => {
      const [head = '', body = '', signature = ''] = usual.split('.');
      const changed = Buffer.from(body, 'base64url')
        .toString()
        .replace('"email_verified":true', '"email_verified":null');
      return [head, Buffer.from(changed).toString('base64url'), signature].join('.');
    },
  },
  ...[{}, { keys: [] }, { keys: [{ ...jwkOf(world.keys.google), d: 'AAAA' }] }].map((keySet, index) => ({
    name: `a key set of Google's that cannot be used (${index + 1})`,
    expect: ['temporary', "Google's keys cannot be read"] as const,
    keySet,
    calls: 1,
  })),
  {
    name: "a key of Google's that is too short is an error, and no refusal",
    expect: ['temporary', 'cannot be used'] as const,
    key: world.keys.short,
  },
];

export const tokenCases = { blocks, headers, claims, engine, signatures };
