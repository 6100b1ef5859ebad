/** STS tokens: the known ways to forge them and more, each with the check that must catch it. */
import { createHmac } from 'node:crypto';
import { binding, clusterName, credentials, now, region } from './aws-machine.ts';
import type { Case } from './judge.ts';

const id = `csr-attest/v1/${clusterName}/${binding('')}`;
const host = `sts.${region}.amazonaws.com`;
const minute = 60_000;

const notForHost = ['AttestationInvalid', `is not for https://${host}/?`] as const;
const unknownParameter = ['AttestationInvalid', 'a parameter of no known name'] as const;
const notBase64url = ['AttestationInvalid', 'is not base64url without padding'] as const;
const notSigned = ['AttestationInvalid', 'is not a signature over this request'] as const;
const wrong = (name: string) => ['AttestationInvalid', `a parameter ${name} that is not as it must be`] as const;
const twice = (name: string) => ['AttestationInvalid', `has the parameter ${name} twice`] as const;
const lacks = (name: string) => ['AttestationInvalid', `lacks the parameter ${name}`] as const;
const replace = (from: string | RegExp, to: string) => (url: string) => url.replace(from, to);
const inHost = (to: string) => replace(host, to);

export const tokenCases: readonly Case[] = [
  { name: 'the machine itself', expect: 'accepted' },
  { name: 'with a nonce', expect: 'accepted', data: { nonce: 'Zm9v-_09' } },
  { name: 'parameters in another order', expect: 'accepted', url: replace(/\?(Action=[^&]*)&(.*)$/, '?$2&$1') },
  { name: 'signed 4 minutes 59 ago', expect: 'accepted', presign: { at: now - 5 * minute + 1_000 } },
  { name: 'signed 59 seconds ahead', expect: 'accepted', presign: { at: now + minute - 1_000 } },
  { name: 'valid for 15 minutes', expect: 'accepted', presign: { expires: 900 } },
  { name: 'valid for 0 seconds', expect: 'accepted', presign: { expires: 0 } },

  // Bound to something else.
  {
    name: 'signed for another key, node, signer or audience',
    expect: notSigned,
    presign: { id: `csr-attest/v1/${clusterName}/${'0'.repeat(64)}` },
  },
  { name: 'signed for another cluster', expect: notSigned, presign: { id: id.replace(clusterName, 'green') } },
  { name: 'an EKS token', expect: notSigned, presign: { id: clusterName } },
  { name: 'an EKS token of a cluster named after the binding', expect: notSigned, presign: { id: binding('') } },
  { name: 'signed with another nonce than sent', expect: notSigned, data: { nonce: 'aa' }, presign: { id } },
  { name: 'a nonce that was not signed', expect: notSigned, data: { nonce: 'zz' }, presign: { id } },

  // Signed by what is no instance.
  {
    name: "a user's long-lived key",
    expect: lacks('X-Amz-Security-Token'),
    presign: { credential: credentials.user },
    url: replace('AKIA', 'ASIA'),
  },
  {
    name: "a user's long-lived key, as it is",
    expect: wrong('X-Amz-Credential'),
    presign: { credential: credentials.user },
  },
  {
    name: 'a long-lived key with a session token',
    expect: wrong('X-Amz-Credential'),
    presign: { credential: credentials.userWithToken },
  },
  {
    name: 'no session token',
    expect: lacks('X-Amz-Security-Token'),
    presign: { credential: { ...credentials.machine, sessionToken: undefined } as never },
  },
  {
    name: 'a signature with a wrong key',
    expect: notSigned,
    presign: { credential: { ...credentials.machine, secretAccessKey: 'guess' } },
  },

  // Another question to STS.
  { name: 'another action', expect: wrong('Action'), presign: { parameters: { Action: 'GetSessionToken' } } },
  { name: 'another version', expect: wrong('Version'), presign: { parameters: { Version: '2011-06-16' } } },
  { name: 'another action after signing', expect: wrong('Action'), url: replace('GetCallerIdentity', 'AssumeRole') },
  { name: 'no action', expect: lacks('Action'), url: replace('Action=GetCallerIdentity&', '') },
  { name: 'Action twice', expect: twice('Action'), url: (url) => `${url}&Action=GetCallerIdentity` },
  { name: 'a second action', expect: wrong('Action'), url: replace('?', '?Action=AssumeRole&') },
  {
    name: 'Action twice, the same, signed so',
    expect: twice('Action'),
    url: replace('Version', 'Action=GetCallerIdentity&Version'),
  },
  {
    name: 'action in lower case (CVE-2022-2385)',
    expect: unknownParameter,
    presign: { parameters: { action: 'AssumeRole' } },
  },
  { name: 'Action percent-encoded', expect: unknownParameter, url: replace('Action=', '%41ction=') },
  { name: 'Action[]', expect: unknownParameter, url: replace('Action=', 'Action[]=') },
  {
    name: 'x-amz-credential beside X-Amz-Credential',
    expect: unknownParameter,
    url: (url) => `${url}&x-amz-credential=ASIAEVIL%2F20260830%2F${region}%2Fsts%2Faws4_request`,
  },
  {
    name: 'X-Amz-Credential twice',
    expect: twice('X-Amz-Credential'),
    url: (url) => `${url}&${/X-Amz-Credential=[^&]*/.exec(url)![0]}`,
  },
  {
    name: 'a further parameter',
    expect: unknownParameter,
    presign: { parameters: { WebIdentityToken: 'x' } },
  },
  { name: 'an empty parameter', expect: unknownParameter, url: (url) => `${url}&` },
  { name: 'a parameter without a name', expect: unknownParameter, url: (url) => `${url}&=x` },
  { name: 'a parameter named as one of every object', expect: unknownParameter, url: (url) => `${url}&constructor=x` },
  { name: 'a semicolon between parameters', expect: wrong('Action'), url: replace('&Version', ';Version') },
  { name: 'a second equals sign', expect: wrong('Version'), url: replace('Version=2011-06-15', 'Version=2011-06-15=') },
  { name: 'a value missing', expect: wrong('Version'), url: replace('Version=2011-06-15', 'Version') },
  { name: 'an escape in a value', expect: wrong('Action'), url: replace('GetCallerIdentity', 'GetCallerIdentit%79') },
  { name: 'a broken escape', expect: wrong('X-Amz-Security-Token'), url: replace('%2B', '%2') },
  { name: 'a lower-case escape', expect: wrong('X-Amz-Security-Token'), url: replace('%2B', '%2b') },
  { name: 'an escaped NUL', expect: wrong('X-Amz-Security-Token'), url: replace('%2B', '%00') },
  { name: 'a plus in the session token', expect: wrong('X-Amz-Security-Token'), url: replace('%2B', '+') },
  { name: 'a fragment', expect: wrong('X-Amz-Signature'), url: (url) => `${url}#x` },
  { name: 'a line end behind the URL', expect: wrong('X-Amz-Signature'), url: (url) => `${url}\r\nx-evil: 1` },
  { name: 'a tab in a value', expect: wrong('X-Amz-Date'), url: replace('Z&', 'Z\t&') },

  // Signed otherwise.
  { name: 'our header is not signed', expect: wrong('X-Amz-SignedHeaders'), presign: { id: undefined } as never },
  { name: 'a further signed header', expect: wrong('X-Amz-SignedHeaders'), presign: { headers: { 'x-evil': '1' } } },
  {
    name: 'a signed header that STS takes for a parameter',
    expect: wrong('X-Amz-SignedHeaders'),
    presign: { headers: { 'x-amz-target': 'x' } },
  },
  {
    name: 'another algorithm',
    expect: wrong('X-Amz-Algorithm'),
    url: replace('AWS4-HMAC-SHA256', 'AWS4-ECDSA-P256-SHA256'),
  },
  { name: 'for another service', expect: wrong('X-Amz-Credential'), presign: { service: 's3' } },
  {
    name: 'a credential of another form',
    expect: wrong('X-Amz-Credential'),
    url: replace('%2Faws4_request', '%2Faws4_request%2Fx'),
  },
  {
    name: 'slashes in the credential as they are',
    expect: wrong('X-Amz-Credential'),
    url: replace('%2Fsts%2F', '/sts/'),
  },
  { name: 'signed with POST', expect: notSigned, presign: { method: 'POST' } },
  { name: 'signed with a body', expect: notSigned, presign: { body: 'Action=AssumeRole' } },
  {
    name: 'an upper-case signature',
    expect: wrong('X-Amz-Signature'),
    url: (url) => url.replace(/[0-9a-f]{64}$/, (hex) => hex.toUpperCase()),
  },
  {
    name: 'a flipped signature',
    expect: notSigned,
    url: (url) => url.replace(/.$/, (hex) => (hex === '0' ? '1' : '0')),
  },
  { name: 'a short signature', expect: wrong('X-Amz-Signature'), url: (url) => url.slice(0, -1) },
  {
    name: 'a signature over the day before, in the credential of today',
    expect: ['AttestationInvalid', 'for another day than its date says'],
    url: replace(/%2F20260830%2F/, '%2F20260829%2F'),
  },

  // Too early, too late.
  {
    name: 'signed 6 minutes ago',
    expect: ['AttestationInvalid', 'was signed more than 5 minutes ago'],
    presign: { at: now - 6 * minute },
  },
  {
    name: 'signed 6 minutes ago, valid for 15',
    expect: ['AttestationInvalid', 'was signed more than 5 minutes ago'],
    presign: { at: now - 6 * minute, expires: 900 },
  },
  {
    name: 'signed 2 minutes ahead',
    expect: ['AttestationInvalid', 'was signed in the future'],
    presign: { at: now + 2 * minute },
  },
  {
    name: 'signed 10 minutes ahead',
    expect: ['AttestationInvalid', 'was signed in the future'],
    presign: { at: now + 10 * minute },
  },
  {
    name: 'an invalid date',
    expect: ['AttestationInvalid', 'has an invalid date'],
    url: replace(/X-Amz-Date=\d+T\d+/, 'X-Amz-Date=20260830T996161'),
  },
  {
    name: 'a date of another form',
    expect: wrong('X-Amz-Date'),
    url: replace(/X-Amz-Date=[^&]*/, 'X-Amz-Date=2026-08-30'),
  },
  { name: 'valid for longer than STS allows', expect: wrong('X-Amz-Expires'), presign: { expires: 901 } },
  { name: 'valid for ever', expect: wrong('X-Amz-Expires'), presign: { expires: '9999999' } },
  { name: 'valid for less than nothing', expect: wrong('X-Amz-Expires'), presign: { expires: '-1' } },

  // For another host, or for one that only looks like STS's.
  { name: 'http', expect: notForHost, url: replace('https:', 'http:') },
  { name: 'upper-case scheme', expect: notForHost, url: replace('https:', 'HTTPS:') },
  { name: 'another host', expect: notForHost, url: inHost('evil.example') },
  {
    name: 'another host, signed for it',
    expect: notForHost,
    presign: { host: 'sts.eu-central-1.amazonaws.com.evil.example' },
  },
  { name: 'userinfo before the host', expect: notForHost, url: inHost(`${host}@evil.example`) },
  { name: 'userinfo with a password', expect: notForHost, url: inHost(`${host}:x@evil.example`) },
  { name: 'userinfo and the true host', expect: notForHost, url: inHost(`evil@${host}`) },
  { name: 'a port', expect: notForHost, url: inHost(`${host}:443`) },
  { name: 'a dot behind the host', expect: notForHost, url: inHost(`${host}.`) },
  { name: 'an upper-case host', expect: notForHost, url: inHost(host.toUpperCase()) },
  { name: 'a backslash', expect: notForHost, url: replace('/?', '\\?') },
  { name: 'a backslash before the slash', expect: notForHost, url: inHost(`evil.example\\@${host}`) },
  { name: 'a tab in the host', expect: notForHost, url: inHost('sts.eu-central-1.\tamazonaws.com') },
  { name: 'a blank before the URL', expect: notForHost, url: (url) => ` ${url}` },
  { name: 'a path', expect: notForHost, presign: { path: '/x' } },
  { name: 'two slashes', expect: notForHost, url: replace('/?', '//?') },
  { name: 'a path that leads back', expect: notForHost, url: replace('/?', '/x/..?') },
  { name: 'a second question mark', expect: unknownParameter, url: replace('/?', '/??') },
  { name: 'the global host', expect: notForHost, presign: { host: 'sts.amazonaws.com', scopeRegion: 'us-east-1' } },
  { name: 'the FIPS host', expect: notForHost, presign: { host: `sts-fips.${region}.amazonaws.com` } },
  { name: 'the dual-stack host', expect: notForHost, presign: { host: `sts.${region}.api.aws` } },
  {
    name: "the VPC endpoint's host",
    expect: notForHost,
    presign: { host: `vpce-0a1b.sts.${region}.vpce.amazonaws.com` },
  },
  { name: 'the host of another region', expect: notForHost, presign: { region: 'us-east-1' } },
  { name: 'the host of another partition', expect: notForHost, presign: { host: `sts.${region}.amazonaws.com.cn` } },
  {
    name: 'signed for another region than its host',
    expect: ['AttestationInvalid', 'signed for another region than that of its host'],
    presign: { scopeRegion: 'us-east-1' },
  },

  // The token around it.
  {
    name: 'another prefix',
    expect: ['AttestationInvalid', 'does not start with k8s-aws-v1.'],
    token: (token) => token.replace('v1', 'v2'),
  },
  {
    name: 'no prefix',
    expect: ['AttestationInvalid', 'does not start with k8s-aws-v1.'],
    token: (token) => token.slice(11),
  },
  { name: 'padding', expect: notBase64url, token: (token) => `${token}=` },
  { name: 'a line end in the token', expect: notBase64url, token: (token) => `${token}\n` },
  {
    name: 'base64 of the other alphabet',
    expect: notBase64url,
    token: (token) => `${token.slice(0, 11)}${token.slice(11).replaceAll(/[-_]/g, '+')}+`,
  },
  { name: 'a blank in the token', expect: notBase64url, token: (token) => `${token.slice(0, 40)} ${token.slice(40)}` },
  { name: 'not ASCII', expect: wrong('X-Amz-Signature'), url: (url) => `${url}\u00e9` },
  { name: 'a full-width solidus in the host', expect: notForHost, url: inHost('evil.example\uff0f.amazonaws.com') },
  {
    name: '9 kB',
    expect: ['AttestationInvalid', 'is longer than 8192 characters'],
    presign: { credential: { ...credentials.machine, sessionToken: 'A'.repeat(6_000) } },
  },
  { name: 'an empty token', expect: ['AttestationInvalid', 'does not start with k8s-aws-v1.'], token: () => '' },
  { name: 'nothing behind the prefix', expect: notForHost, token: () => 'k8s-aws-v1.' },
  {
    name: 'a presigned URL that was made with another key derivation',
    expect: notSigned,
    url: (url) => url.replace(/[0-9a-f]{64}$/, createHmac('sha256', 'AWS4').update(url).digest('hex')),
  },
];
