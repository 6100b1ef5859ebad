import { describe, expect, test } from 'vitest';
import { verifySigV4 } from '../../harness/aws/sigv4-verifier.ts';
import type { ReceivedRequest, SigV4Refusal } from '../../harness/aws/sigv4-verifier.ts';

/*
 * AWS's published vectors: ListUsers is the example of its documentation, the others are of its signing test suite
 * (github.com/awslabs/aws-c-auth, tests/aws-signing-test-suite/v4, Apache-2.0). Theirs are the numbers; a presigned
 * vector's X-Amz-Date header, which its signature does not cover, is left out.
 */
interface Vector {
  readonly name: string;
  readonly method?: string;
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Service, signed headers, signature. */
  readonly signed?: readonly [service: string, headerList: string, signature: string];
  /** Signed headers, signature, security token. */
  readonly presigned?: readonly [headerList: string, signature: string, token?: string];
}

const date = '20150830T123600Z';
const now = Date.parse('2015-08-30T12:36:00Z');
const usual = 'host;x-amz-date';
const exampleToken = '6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267';
const trimmed = { 'my-header1': ' value1', 'my-header2': ' "a   b   c"' };

const vectors: readonly Vector[] = [
  {
    name: 'ListUsers',
    target: '/?Action=ListUsers&Version=2010-05-08',
    headers: {
      'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
      host: 'iam.amazonaws.com',
      'x-amz-date': date,
    },
    signed: ['iam', `content-type;${usual}`, '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7'],
  },
  {
    name: 'get-vanilla',
    signed: ['service', usual, '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  },
  {
    name: 'post-vanilla',
    method: 'POST',
    signed: ['service', usual, '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
  },
  {
    name: 'post-x-www-form-urlencoded',
    method: 'POST',
    headers: {
      'content-length': '13',
      'content-type': 'application/x-www-form-urlencoded',
      'x-amz-content-sha256': '9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e',
    },
    body: 'Param1=value1',
    signed: [
      'service',
      'content-length;content-type;host;x-amz-content-sha256;x-amz-date',
      'd3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b',
    ],
  },
  {
    name: 'get-header-value-trim',
    headers: trimmed,
    signed: [
      'service',
      'host;my-header1;my-header2;x-amz-date',
      'acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736',
    ],
  },
  {
    name: 'get-utf8',
    target: '/ሴ',
    signed: ['service', usual, '8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85'],
  },
  {
    name: 'get-slashes-normalized',
    target: '//example//',
    signed: ['service', usual, '9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84'],
  },
  {
    name: 'get-vanilla-query-order-encoded',
    target: '/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1',
    signed: ['service', usual, '371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac'],
  },
  {
    name: 'get-vanilla-with-session-token',
    headers: { 'x-amz-security-token': exampleToken },
    signed: [
      'service',
      `${usual};x-amz-security-token`,
      '07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8',
    ],
  },
  {
    name: 'get-vanilla-with-session-token, presigned',
    presigned: ['host', '7ff2b50b376cb4d151970630573d6291dc128cc5c2a12ffb237f73cc53f67b6c', exampleToken],
  },
  {
    name: 'get-vanilla-query-order-key-case, presigned',
    target: '/?Param2=value2&Param1=value1',
    presigned: ['host', '86012e2c9ad4d77369f5d81c11f75158aae4f895a085212cc6d3f923d300bed5'],
  },
  {
    name: 'get-vanilla-utf8-query, presigned',
    target: '/?ሴ=bar',
    presigned: ['host', '0bdd809b1519ac4f0c1dc3540e2cc46bd0c7f778eda408b2ebf3b913d21ff600'],
  },
  {
    name: 'get-vanilla-query-order-encoded, presigned',
    target: '/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1',
    presigned: ['host', 'c5f1848ceec943ac2ca68ee720460c23aaae30a2300586597ada94c4a65e4787'],
  },
  {
    name: 'get-header-value-trim, presigned',
    headers: trimmed,
    presigned: ['host;my-header1;my-header2', 'e7bb0fd515e125e1aec2ecc4c0c17484fb06f6846b927c35e46005dd3df3acd4'],
  },
];

function received({ method = 'GET', target = '/', headers, body = '', signed, presigned }: Vector): ReceivedRequest {
  const host = { host: 'example.amazonaws.com' };
  if (signed !== undefined) {
    const [service, headerList, signature] = signed;
    const scope = `Credential=AKIDEXAMPLE/20150830/us-east-1/${service}/aws4_request`;
    const authorization = `AWS4-HMAC-SHA256 ${scope}, SignedHeaders=${headerList}, Signature=${signature}`;
    return {
      method,
      target,
      headers: { ...host, 'x-amz-date': date, ...headers, authorization },
      body: Buffer.from(body),
    };
  }
  const [headerList, signature, token] = presigned ?? ['', ''];
  const parameters = [
    'X-Amz-Algorithm=AWS4-HMAC-SHA256',
    'X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Fus-east-1%2Fservice%2Faws4_request',
    `X-Amz-Date=${date}`,
    `X-Amz-SignedHeaders=${encodeURIComponent(headerList)}`,
    'X-Amz-Expires=3600',
    ...(token === undefined ? [] : [`X-Amz-Security-Token=${token}`]),
    `X-Amz-Signature=${signature}`,
  ].join('&');
  const url = `${target}${target.includes('?') ? '&' : '?'}${parameters}`;
  return { method, target: url, headers: { ...host, ...headers }, body: Buffer.from(body) };
}

const verify = (request: ReceivedRequest, at = now) =>
  verifySigV4(request, (id) => (id === 'AKIDEXAMPLE' ? 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' : undefined), at);

function vector(name: string): ReceivedRequest {
  const found = vectors.find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`no vector ${name}`);
  return received(found);
}

describe('the verifier of these tests', () => {
  test.each(vectors)('agrees with AWS on $name, and with nothing near it', (published) => {
    const request = received(published);
    const presigned = published.presigned !== undefined;
    expect(verify(request)).toMatchObject({
      accessKeyId: 'AKIDEXAMPLE',
      region: 'us-east-1',
      signedAt: now,
      presigned,
    });
    const wrong = 'signature does not match';
    expect(verify({ ...request, method: 'PUT' })).toBe(wrong);
    expect(verify({ ...request, target: request.target.replace('/', '/x') })).toBe(wrong);
    expect(verify({ ...request, body: Buffer.from('x') })).toMatch(/does not match|another body/);
    expect(verify({ ...request, headers: { ...request.headers, host: 'evil.example' } })).toBe(wrong);
    expect(verify({ ...request, headers: { ...request.headers, 'x-amz-meta': 'x' } })).toMatch(/not signed/);
    expect(verify(request, now + (presigned ? 900_000 : 300_000))).toMatchObject({ accessKeyId: 'AKIDEXAMPLE' });
    expect(verify(request, now + (presigned ? 900_001 : 300_001))).toBe('expired');
    expect(verify(request, now - 300_001)).toBe('not yet valid');
  });

  const presigned = vector('get-vanilla-with-session-token, presigned');
  const { authorization: _, ...unsigned } = vector('get-vanilla').headers;
  const change = (from: string | RegExp, to: string): ReceivedRequest => {
    const target = presigned.target.replace(from, to);
    if (target === presigned.target) throw new Error('the change changes nothing');
    return { ...presigned, target };
  };
  test.each<[string, ReceivedRequest, SigV4Refusal]>([
    ['no signature', { ...vector('get-vanilla'), headers: unsigned }, 'no signature'],
    [
      'a signature in both places',
      { ...presigned, headers: { ...presigned.headers, ...vector('get-vanilla').headers } },
      'two signatures',
    ],
    [
      'an upper-case signature',
      change(/[0-9a-f]{64}$/, presigned.target.slice(-64).toUpperCase()),
      'malformed signature',
    ],
    ['another algorithm', change('HMAC-SHA256', 'HMAC-SHA384'), 'malformed signature'],
    ['another terminator', change('aws4_request', 'aws4_requesT'), 'malformed signature'],
    ['another access key', change('AKIDEXAMPLE', 'AKIDEXAMPLF'), 'unknown access key'],
    ['another region', change('us-east-1', 'us-east-2'), 'signature does not match'],
    ['another service', change('service', 'sts'), 'signature does not match'],
    ['another lifetime', change('Expires=3600', 'Expires=60'), 'signature does not match'],
    ['another token', change('Token=6e', 'Token=6f'), 'signature does not match'],
    ['no token', change(/&X-Amz-Security-Token=\w+/, ''), 'signature does not match'],
    ['a parameter more', change('/?', '/?a=b&'), 'signature does not match'],
    ['a date of another day', change('Date=20150830', 'Date=20150831'), 'no date'],
    ['no date', change(/&X-Amz-Date=\w+/, ''), 'no date'],
    ['a flipped bit', change(/67b6c$/, '67b6d'), 'signature does not match'],
    ['a name twice', change('/?', '/?a=b&a=b&'), 'ambiguous query'],
    ['a name twice in another case', change('/?', '/?x-amz-credential=b&'), 'ambiguous query'],
    ['a plus', change('/?', '/?a=b+c&'), 'ambiguous query'],
    ['a broken escape', change('/?', '/?a=%zz&'), 'ambiguous query'],
    ['a second question mark', change('/?', '/?a=?&'), 'ambiguous query'],
    ['no signed host', change('Headers=host', 'Headers=date'), 'host or date not signed'],
    ['a signed header twice', change('Headers=host', 'Headers=host%3Bhost'), 'headers not in order'],
    [
      'a signed header that is not there',
      change('Headers=host', 'Headers=host%3Bx-k8s-aws-id'),
      'signature does not match',
    ],
  ])('refuses %s', (_name, request, refusal) => {
    expect(verify(request)).toBe(refusal);
  });
});
