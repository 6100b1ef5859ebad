import { letIn, payloadWith, raw, refused, signPath, withKeys } from './case.ts';
import type { Case, More } from './case.ts';
import { keyCases } from './key-cases.ts';
import {
  audience,
  claims,
  cluster,
  ecKey,
  encode,
  issuer,
  jwkOf,
  makeToken,
  nowSeconds,
  otherSubject,
  rsaKey,
  signer,
  strangerKey,
  subject,
} from './tokens.ts';

const [head, body, signature] = makeToken().split('.') as [string, string, string];

const accepted: readonly Case[] = [
  letIn('an RS256 token', makeToken()),
  letIn('an ES256 token', makeToken({ key: ecKey })),
  letIn('the second subject', makeToken({ claims: { sub: otherSubject } }), { subject: otherSubject }),
  letIn('an audience that is no list', makeToken({ claims: { aud: audience } })),
  letIn('typ JWT', makeToken({ header: { typ: 'JWT' } })),
  letIn('a lifetime of exactly an hour', makeToken({ claims: { iat: nowSeconds, exp: nowSeconds + 3_600 } })),
  letIn(
    'an issuer whose clock is a little ahead',
    makeToken({ claims: { iat: nowSeconds + 20, nbf: nowSeconds + 20 } }),
  ),
  letIn('an end that the issuer sees a little later', makeToken({ claims: { exp: nowSeconds - 20 } })),
  letIn('the path of the CA certificates', makeToken(), {
    event: { rawPath: `/v1/clusters/${cluster}/trust-bundle/clients` },
  }),
  letIn('a key that does not say what it is for', makeToken(), {
    ...withKeys({ ...jwkOf(rsaKey), use: undefined, alg: undefined }),
  }),
];

const claimCases: readonly Case[] = [
  refused('IssuerWrong', 'another issuer', makeToken({ claims: { iss: 'https://issuer.example.org' } })),
  refused('IssuerWrong', 'an issuer with a slash more', makeToken({ claims: { iss: `${issuer}/` } })),
  refused('IssuerWrong', 'a list of issuers', makeToken({ claims: { iss: [issuer] } })),
  refused('AudienceWrong', 'the audience every pod has', makeToken({ claims: { aud: [issuer] } })),
  refused('AudienceWrong', 'an audience in other letters', makeToken({ claims: { aud: [audience.toUpperCase()] } })),
  refused('AudienceWrong', 'two audiences, ours first', makeToken({ claims: { aud: [audience, 'vault'] } })),
  refused('AudienceWrong', 'two audiences, ours last', makeToken({ claims: { aud: ['vault', audience] } })),
  refused('AudienceWrong', 'our audience twice', makeToken({ claims: { aud: [audience, audience] } })),
  refused('AudienceWrong', 'no audience in the list', makeToken({ claims: { aud: [] } })),
  refused('AudienceWrong', 'a list in the list', makeToken({ claims: { aud: [[audience]] } })),
  refused('AudienceWrong', 'an object for an audience', makeToken({ claims: { aud: { 0: audience, length: 1 } } })),
  refused(
    'SubjectNotAllowed',
    'another account',
    makeToken({ claims: { sub: 'system:serviceaccount:default:default' } }),
  ),
  refused('SubjectNotAllowed', 'a longer name', makeToken({ claims: { sub: `${subject}-2` } })),
  refused('SubjectNotAllowed', 'a shorter name', makeToken({ claims: { sub: subject.slice(0, -1) } })),
  refused('SubjectNotAllowed', 'no name', makeToken({ claims: { sub: '' } })),
  refused('ClaimMalformed', 'a list of subjects', makeToken({ claims: { sub: [subject] } })),
  refused('ClaimMalformed', 'a subject within', makeToken({ claims: { sub: { name: subject } } })),
  refused(
    'Expired',
    'a token of yesterday',
    makeToken({ claims: { iat: nowSeconds - 90_000, exp: nowSeconds - 86_400 } }),
  ),
  refused('Expired', 'a token that has just expired', makeToken({ claims: { exp: nowSeconds - 31 } })),
  refused('NotYetValid', 'a token of tomorrow', makeToken({ claims: { nbf: nowSeconds + 60 } })),
  refused('NotYetValid', 'a token issued later', makeToken({ claims: { iat: nowSeconds + 60 } })),
  refused(
    'LifetimeTooLong',
    'an hour and a second',
    makeToken({ claims: { iat: nowSeconds - 1, exp: nowSeconds + 3_600 } }),
  ),
  refused('LifetimeTooLong', 'a year', makeToken({ claims: { exp: nowSeconds + 31_536_000 } })),
  ...['exp', 'nbf', 'iat', 'sub'].map((claim) =>
    refused('ClaimMalformed', `no ${claim}`, makeToken({ claims: { [claim]: undefined } })),
  ),
  refused('AudienceWrong', 'no aud', makeToken({ claims: { aud: undefined } })),
  refused('IssuerWrong', 'no iss', makeToken({ claims: { iss: undefined } })),
  refused('ClaimMalformed', 'an exp in text', makeToken({ claims: { exp: String(nowSeconds + 600) } })),
  refused('ClaimMalformed', 'an nbf in text', makeToken({ claims: { nbf: '0' } })),
  refused('ClaimMalformed', 'an exp of null', makeToken({ claims: { exp: null } })),
  refused('ClaimMalformed', 'an exp without end', makeToken(raw('exp', '1e999'))),
  refused('ClaimMalformed', 'an nbf before all times', makeToken(raw('nbf', '-1e999'))),
  refused('ClaimMalformed', 'half a second of iat', makeToken(raw('iat', `${nowSeconds - 1}.5`))),
  refused('ClaimMalformed', 'half a second of exp', makeToken(raw('exp', `${nowSeconds + 1}.5`))),
  refused('ClaimMalformed', 'half a second of nbf', makeToken(raw('nbf', `${nowSeconds - 1}.5`))),
  refused('ClaimMalformed', 'two audiences by one name', makeToken(payloadWith('"aud":["vault"]'))),
  refused('ClaimMalformed', 'two subjects by two spellings', makeToken(payloadWith('"\\u0073ub":"someone"'))),
  refused('ClaimMalformed', 'two names within', makeToken(payloadWith('"x":{"a":1,"a":2}'))),
  refused('TokenMalformed', 'claims that are a list', makeToken({ payloadText: JSON.stringify([claims()]) })),
  refused('TokenMalformed', 'claims in a text', makeToken({ payloadText: JSON.stringify(JSON.stringify(claims())) })),
  refused('TokenMalformed', 'claims that are no JSON', makeToken({ payloadText: '{' })),
  refused('IssuerWrong', 'the claims one level down', makeToken({ payloadText: JSON.stringify({ claims: claims() }) })),
  refused('TokenMalformed', 'nothing but brackets', makeToken({ payloadText: '['.repeat(3_000) })),
];

const headerCases: readonly Case[] = [
  refused('HeaderNotPermitted', 'crit', makeToken({ header: { crit: ['exp'], exp: 1 } })),
  refused('HeaderNotPermitted', 'crit b64', makeToken({ header: { crit: ['b64'], b64: true } })),
  refused(
    'HeaderNotPermitted',
    'a key of its own',
    makeToken({ header: { jwk: jwkOf(strangerKey) }, signature: signer(strangerKey) }),
  ),
  refused('HeaderNotPermitted', 'a key set of its own', makeToken({ header: { jku: 'https://evil.example/jwks' } })),
  refused('HeaderNotPermitted', 'a certificate of its own', makeToken({ header: { x5c: ['MIIB'] } })),
  refused(
    'HeaderNotPermitted',
    'two algorithms',
    makeToken({ headerText: '{"alg":"none","alg":"RS256","kid":"rsa"}' }),
  ),
  refused('TokenMalformed', 'a header that is no JSON', makeToken({ headerText: 'RS256' })),
  refused('TokenMalformed', 'a header that is a list', makeToken({ headerText: '["RS256"]' })),
];

const withHeaders = (headers: unknown): More => ({ event: { headers } });
const eventCases: readonly Case[] = [
  refused('TokenMissing', 'no token', undefined),
  refused('TokenMissing', 'no headers', makeToken(), withHeaders(null)),
  refused('TokenMissing', 'an empty header', makeToken(), withHeaders({ authorization: '' })),
  refused('TokenMissing', 'a list of tokens', makeToken(), withHeaders({ authorization: [`Bearer ${makeToken()}`] })),
  refused('TokenMalformed', 'a token without Bearer', makeToken(), withHeaders({ authorization: makeToken() })),
  refused('TokenMalformed', 'Basic', makeToken(), withHeaders({ authorization: `Basic ${encode('a:b')}` })),
  refused(
    'TokenMalformed',
    'two tokens',
    makeToken(),
    withHeaders({ authorization: `Bearer ${makeToken()},Bearer ${makeToken()}` }),
  ),
  refused('TokenMalformed', 'two parts', `${head}.${body}`),
  refused('TokenMalformed', 'five parts, an encrypted one', `${makeToken()}.a.b`),
  refused('TokenMalformed', 'padded base64', `${head}=.${body}.${signature}`),
  refused('TokenMalformed', 'a line break', `${makeToken()}\n`),
  refused('TokenTooLarge', 'a token of 8 KiB', makeToken({ claims: { x: 'x'.repeat(8_192) } })),
  refused('OtherCluster', 'the path of another cluster', makeToken(), { event: { rawPath: '/v1/clusters/test/sign' } }),
  refused('OtherCluster', 'the path of another cluster, ours among the parameters', makeToken(), {
    event: { rawPath: '/v1/clusters/test/sign', pathParameters: { cluster } },
  }),
  ...[
    '/',
    '/healthz',
    `/v1/clusters/${cluster}`,
    `/v1/clusters/${cluster}/`,
    `/v1/clusters/${cluster}/sign/`,
    `//v1/clusters/${cluster}/sign`,
    `/prod/v1/clusters/${cluster}/sign`,
    `/v1/clusters/${cluster}/../test/sign`,
    `/v1/clusters/${cluster}%2Fsign`,
    `/v1/clusters/%70rod/sign`,
    `/v1/clusters/${cluster}/sign?x`,
    `/v1/clusters/${cluster}/sign\n`,
    `/V1/clusters/${cluster}/sign`,
    '',
    undefined,
    [signPath],
  ].map((rawPath) =>
    refused('PathUnknown', `the path ${JSON.stringify(rawPath)}`, makeToken(), { event: { rawPath } }),
  ),
  refused('EventUnknown', 'payload 1.0', makeToken(), { event: { version: '1.0' } }),
  refused('EventUnknown', 'an event of another sort', makeToken(), { event: { type: 'TOKEN' } }),
];

export const cases: readonly Case[] = [...accepted, ...claimCases, ...keyCases, ...headerCases, ...eventCases];
