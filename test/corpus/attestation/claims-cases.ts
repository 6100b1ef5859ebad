/** aws/v2: what the evidence claims, before STS or EC2 is asked about it. */
import { account, credentials, instanceId, otherAccount, region } from './aws-machine.ts';
import type { Case } from './judge.ts';

const invalid = (check: string) => ['AttestationInvalid', `the attestation data ${check}`] as const;
const notAllowed = (check: string) => ['IdentityNotAllowed', check] as const;
const noAccount = invalid('names no account');
const noRegion = invalid('names no region of a known partition');
const noInstance = invalid('names no instance');
const lacks = invalid('lacks one of v, account, region, instance, sts');
const unknownKey = invalid('has an unknown key');

export const claimsCases: readonly Case[] = [
  // The form.
  { name: 'not JSON', expect: invalid('is not JSON'), dataText: () => 'account=…' },
  { name: 'no object', expect: invalid('is not a JSON object'), dataText: (text) => `[${text}]` },
  {
    name: 'a key twice',
    expect: invalid('has a key twice'),
    dataText: (text) => text.replace('{', '{"instance":"i-1",'),
  },
  { name: 'a document beside the claims', expect: unknownKey, data: { rsa2048: 'MIAG' } },
  { name: 'a zone beside the claims', expect: unknownKey, data: { zone: `${region}a` } },
  { name: 'a key of every object', expect: unknownKey, dataText: (text) => text.replace('{', '{"__proto__":{},') },
  { name: 'no version', expect: lacks, data: { v: undefined } },
  { name: 'of another version', expect: invalid('is not of aws/v2'), data: { v: 1 } },
  { name: 'a version in quotes', expect: invalid('is not of aws/v2'), data: { v: '2' } },
  { name: 'the data of aws/v1 under this name', expect: unknownKey, data: { v: 1, rsa2048: 'MIAG' } },
  { name: 'no STS token', expect: lacks, data: { sts: undefined } },
  { name: 'a token that is no text', expect: invalid('has a proof that is not text'), data: { sts: ['k8s-aws-v1.'] } },
  { name: 'a nonce that is no text', expect: invalid('has an invalid nonce'), data: { nonce: 1 } },
  { name: 'a nonce with blanks', expect: invalid('has an invalid nonce'), data: { nonce: 'a b' } },
  {
    name: 'where roles count',
    version: 'aws/v2',
    expect: invalid('is of a version that is not taken'),
    policy: { requireIdentityRole: false, roles: [`arn:aws:iam::${account}:role/nodes`] },
    presign: { credential: credentials.nodeRole },
  },
  {
    name: 'a document where aws/v1 is not taken any more',
    version: 'aws/v1',
    expect: invalid('is of a version that is not taken'),
    policy: { acceptV1: false },
  },
  { name: 'where aws/v1 is not taken any more', expect: 'accepted', policy: { acceptV1: false } },

  // The account.
  { name: 'no account', expect: lacks, data: { account: undefined } },
  { name: 'an account that is a number', expect: noAccount, data: { account: Number(account) } },
  { name: 'an account that is a list', expect: noAccount, data: { account: [account] } },
  { name: 'an account of 11 digits', expect: noAccount, data: { account: account.slice(1) } },
  { name: 'an account of 13 digits', expect: noAccount, data: { account: `${account}0` } },
  { name: 'an account with a line end', expect: noAccount, data: { account: `${account}\n` } },
  {
    name: 'an account that is not listed',
    expect: notAllowed(`instances of account ${otherAccount} may not join`),
    data: { account: otherAccount },
  },
  {
    name: 'a whole machine of an account that is not listed',
    expect: notAllowed(`instances of account ${otherAccount} may not join`),
    data: { account: otherAccount },
    presign: { credential: credentials.otherAccount },
    instance: { ownerId: otherAccount },
  },

  // The region.
  { name: 'no region', expect: lacks, data: { region: undefined } },
  { name: 'a region that is a list', expect: noRegion, data: { region: [region] } },
  { name: 'an invalid region', expect: noRegion, data: { region: 'mars-1' } },
  { name: 'a region in upper case', expect: noRegion, data: { region: region.toUpperCase() } },
  { name: 'a region with a host behind it', expect: noRegion, data: { region: `${region}.attacker.example/` } },
  { name: 'a listed region of no known partition', expect: noRegion, data: { region: 'us-iso-east-1' } },
  {
    name: 'a region that is not listed',
    expect: notAllowed('instances in region us-east-1 may not join'),
    data: { region: 'us-east-1' },
    presign: { region: 'us-east-1' },
  },
  {
    name: 'a listed region whose STS was not signed for',
    expect: ['AttestationInvalid', 'is not for https://sts.eu-west-1.amazonaws.com/?'],
    data: { region: 'eu-west-1' },
  },

  // The instance.
  { name: 'no instance', expect: lacks, data: { instance: undefined } },
  { name: 'an instance that is a list', expect: noInstance, data: { instance: [instanceId] } },
  { name: 'an instance with a wildcard', expect: noInstance, data: { instance: 'i-*' } },
  { name: 'an instance in upper case', expect: noInstance, data: { instance: instanceId.toUpperCase() } },
  { name: 'an instance with a path before it', expect: noInstance, data: { instance: `x/${instanceId}` } },
  { name: 'an instance id of 16 digits', expect: noInstance, data: { instance: instanceId.slice(0, -1) } },
  { name: 'another kind of machine', expect: noInstance, data: { instance: `m${instanceId}` } },
];
