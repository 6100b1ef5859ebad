/** Evidence and identity documents: the signature is good in each, unless the name says otherwise. */
import { account, credentials, instanceId, keys, otherAccount, otherInstanceId } from './aws-machine.ts';
import type { Case } from './judge.ts';

const invalid = (check: string) => ['AttestationInvalid', check] as const;
const noInstance = invalid('names no instance');
const noZone = invalid('names no availability zone of its region');
const noTime = invalid('has no pendingTime');
const noAddress = invalid('has a privateIp that is no IPv4 address');

export const evidenceCases: readonly Case[] = [
  { name: 'not JSON', expect: invalid('the attestation data is not JSON'), dataText: () => 'rsa2048=…' },
  { name: 'no object', expect: invalid('the attestation data is not a JSON object'), dataText: (text) => `[${text}]` },
  { name: 'nothing at all', expect: invalid('the attestation data is not JSON'), dataText: () => '' },
  { name: 'null', expect: invalid('the attestation data is not a JSON object'), dataText: () => 'null' },
  {
    name: 'a key twice',
    expect: invalid('the attestation data has a key twice'),
    dataText: (text) => text.replace('{', '{"sts":"x",'),
  },
  {
    name: 'a document beside the signed one',
    expect: invalid('the attestation data has an unknown key'),
    data: { document: { instanceId: otherInstanceId } },
  },
  {
    name: 'a key of every object',
    expect: invalid('the attestation data has an unknown key'),
    dataText: (text) => text.replace('{', '{"__proto__":{},'),
  },
  {
    name: 'no STS token',
    expect: invalid('the attestation data lacks one of v, rsa2048, sts'),
    data: { sts: undefined },
  },
  {
    name: 'no document',
    expect: invalid('the attestation data lacks one of v, rsa2048, sts'),
    data: { rsa2048: undefined },
  },
  { name: 'of another version', expect: invalid('is not of aws/v1'), data: { v: 2 } },
  { name: 'a version in quotes', expect: invalid('is not of aws/v1'), data: { v: '1' } },
  { name: 'a token that is no text', expect: invalid('has a proof that is not text'), data: { sts: ['k8s-aws-v1.'] } },
  { name: 'a document that is no text', expect: invalid('has a proof that is not text'), data: { rsa2048: 1 } },
  { name: 'a nonce that is no text', expect: invalid('has an invalid nonce'), data: { nonce: 1 } },
  { name: 'a nonce with blanks', expect: invalid('has an invalid nonce'), data: { nonce: 'a b' } },
  { name: 'a nonce of 129 characters', expect: invalid('has an invalid nonce'), data: { nonce: 'a'.repeat(129) } },
  {
    name: 'a PEM block instead of IMDS text',
    expect: invalid('has an rsa2048 that is not base64'),
    data: { rsa2048: '-----BEGIN PKCS7-----\nMIAG\n-----END PKCS7-----' },
  },
  {
    name: 'blanks in the document',
    expect: invalid('has an rsa2048 that is not base64'),
    dataText: (text) => text.replace('"rsa2048":"', '"rsa2048":" '),
  },
  { name: 'lines ended as on Windows', expect: 'accepted', dataText: (text) => text.replaceAll('\\n', '\\r\\n') },
];

export const documentCases: readonly Case[] = [
  { name: 'fields that are not known', expect: 'accepted', document: { future: { of: ['AWS'] } } },
  { name: 'an old instance id', expect: noInstance, document: { instanceId: 'i-0123456789abcde' } },
  { name: 'signed, and not JSON', expect: invalid('is signed, but is not JSON'), content: () => Buffer.from('hello') },
  {
    name: 'signed, and not UTF-8',
    expect: invalid('is signed, but is not JSON'),
    content: (usual) => Buffer.concat([usual, Buffer.of(0xff)]),
  },
  {
    name: 'signed, and no object',
    expect: invalid('is signed, but is not a JSON object'),
    content: () => Buffer.from('"x"'),
  },
  {
    name: 'signed, with a key twice',
    expect: invalid('is signed, but has a key twice'),
    content: (usual) => Buffer.from(usual.toString().replace('{', `{"instanceId":"${otherInstanceId}",`)),
  },
  {
    name: 'of another region than its key',
    expect: invalid('is of another region than the key that signed it'),
    signedWith: keys['us-east-1'],
  },
  {
    name: 'no region',
    expect: invalid('is of another region than the key that signed it'),
    document: { region: undefined },
  },
  {
    name: 'of a partition that is not public',
    expect: invalid('is of a region of no known partition'),
    document: { region: 'us-iso-east-1', availabilityZone: 'us-iso-east-1a' },
    signedWith: keys['us-iso-east-1'],
    presign: { region: 'us-iso-east-1' },
    instance: { availabilityZone: 'us-iso-east-1a' },
  },
  { name: 'no account', expect: invalid('names no account'), document: { accountId: undefined } },
  {
    name: 'an account that is a number',
    expect: invalid('names no account'),
    document: { accountId: Number(account) },
  },
  { name: 'an account of 13 digits', expect: invalid('names no account'), document: { accountId: `${account}0` } },
  { name: 'no instance', expect: noInstance, document: { instanceId: undefined } },
  { name: 'an instance that is a list', expect: noInstance, document: { instanceId: [instanceId] } },
  { name: 'an instance with a wildcard', expect: noInstance, document: { instanceId: 'i-*' } },
  { name: 'an instance in upper case', expect: noInstance, document: { instanceId: instanceId.toUpperCase() } },
  { name: 'another kind of machine', expect: noInstance, document: { instanceId: `m${instanceId}` } },
  { name: 'no zone', expect: noZone, document: { availabilityZone: undefined } },
  { name: 'a zone that is a list', expect: noZone, document: { availabilityZone: ['eu-central-1a'] } },
  { name: 'a zone of another region', expect: noZone, document: { availabilityZone: 'us-east-1a' } },
  { name: 'a zone that is the region', expect: noZone, document: { availabilityZone: 'eu-central-1' } },
  { name: 'a zone with a slash', expect: noZone, document: { availabilityZone: 'eu-central-1/a' } },
  {
    name: 'a local zone',
    expect: 'accepted',
    document: { availabilityZone: 'eu-central-1-ham-1a' },
    instance: { availabilityZone: 'eu-central-1-ham-1a' },
  },
  { name: 'no time', expect: noTime, document: { pendingTime: undefined } },
  { name: 'a time that is a number', expect: noTime, document: { pendingTime: 1_788_000_000_000 } },
  { name: 'an invalid time', expect: noTime, document: { pendingTime: '2026-13-45T12:00:00Z' } },
  { name: 'a time of another form', expect: noTime, document: { pendingTime: '2026-08-30' } },
  {
    name: 'started 2 minutes ahead',
    expect: invalid('starts in the future'),
    document: { pendingTime: '2026-08-30T12:02:30Z' },
  },
  { name: 'started 50 seconds ahead', expect: 'accepted', document: { pendingTime: '2026-08-30T12:01:20Z' } },
  { name: 'no IPv4 address', expect: 'accepted', document: { privateIp: undefined } },
  { name: 'an invalid address', expect: noAddress, document: { privateIp: '10.0.0.256' } },
  { name: 'an address with a prefix', expect: noAddress, document: { privateIp: '10.0.0.5/32' } },
  { name: 'an IPv6 address as private', expect: noAddress, document: { privateIp: '2001:db8::5' } },
  { name: 'an address that is a list', expect: noAddress, document: { privateIp: ['10.0.0.5'] } },
  {
    name: 'a genuine document of another account',
    expect: ['IdentityNotAllowed', `instances of account ${otherAccount} may not join`],
    document: { accountId: otherAccount },
  },
  {
    name: 'a genuine document of another region',
    expect: ['IdentityNotAllowed', 'instances in region us-east-1 may not join'],
    document: { region: 'us-east-1', availabilityZone: 'us-east-1a' },
    signedWith: keys['us-east-1'],
    presign: { region: 'us-east-1' },
    instance: { availabilityZone: 'us-east-1a' },
  },
  {
    name: 'a whole machine of another account',
    expect: ['IdentityNotAllowed', `instances of account ${otherAccount} may not join`],
    document: { accountId: otherAccount },
    presign: { credential: credentials.otherAccount },
    instance: { ownerId: otherAccount },
  },
];
