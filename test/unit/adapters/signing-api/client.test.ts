import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { connectSigner, signUrl } from '../../../../adapters/signing-api/client.ts';
import type { Credentials, SignerHttpOptions } from '../../../../adapters/signing-api/client.ts';
import type { SignAnswer } from '../../../../core/ports/signing-endpoint.ts';
import { serveImpatiently, tooMuchToSend } from '../../../harness/processes/impatient-server.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';

const never = new AbortController().signal;
const object = { metadata: { name: 'r' }, spec: { x: 'ü' }, unknown: [1, null] };
const closes: (() => void)[] = [];
afterEach(() => {
  for (const close of closes.splice(0)) close();
});

interface Call {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

async function serve(
  answer: (response: ServerResponse, call: Call) => void,
  { tls, ...options }: Partial<SignerHttpOptions> & { tls?: { key: string; cert: string } } = {},
) {
  const calls: Call[] = [];
  const listener: RequestListener = (request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (text: string) => (body += text));
    request.on('end', () => {
      const call = { method: request.method, url: request.url, headers: request.headers, body };
      calls.push(call);
      answer(response, call);
    });
  };
  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  let connections = 0;
  server.on('connection', () => void (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const endpoint = connectSigner({ url: `${origin}/v1/clusters/c`, connections: 2, ...options });
  closes.push(() => {
    endpoint.close();
    server.closeAllConnections();
    server.close();
  });
  return { endpoint, calls, origin, connections: () => connections };
}

function respond(status: number, outcome: string | undefined, body: unknown) {
  return (response: ServerResponse) =>
    void response
      .writeHead(status, outcome === undefined ? {} : { 'x-countersign-outcome': outcome })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
}

function status(...causes: readonly unknown[]) {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: 'm', details: { causes } };
}

const known = { reason: 'KeyNotPermitted', message: 'too short' };
const certificate = { status: { certificate: Buffer.from('PEM\n').toString('base64') } };
const issued: SignAnswer = { kind: 'issued', certificatePem: 'PEM\n' };

test('posts the object as it is to …/sign, and keeps the connection', async () => {
  const { endpoint, calls, connections } = await serve(respond(200, 'issued', { ...object, ...certificate }));
  for (let i = 0; i < 4; i += 1) expect(await endpoint.sign(object, never)).toEqual(issued);
  expect(connections()).toBe(1);
  expect(calls[0]).toMatchObject({
    method: 'POST',
    url: '/v1/clusters/c/sign',
    body: JSON.stringify(object),
    headers: { 'content-type': 'application/json' },
  });
});

const unknownCaller =
  'HTTP 403: the function knows neither this role nor this service account (access in countersign.yaml)';

describe('what an answer means', () => {
  const unexpected = expect.objectContaining({ kind: 'unexpected' }) as SignAnswer;
  test.each<[string, number, string | undefined, unknown, SignAnswer]>([
    ['issued', 200, 'issued', certificate, issued],
    ['issued, without our header', 200, undefined, certificate, unexpected],
    ['issued, but 201', 201, 'issued', certificate, unexpected],
    ['issued, without a certificate', 200, 'issued', { status: {} }, unexpected],
    ['issued, with an empty certificate', 200, 'issued', { status: { certificate: '' } }, unexpected],
    ['issued, not in base64', 200, 'issued', { status: { certificate: '-----BEGIN' } }, unexpected],
    ['issued, no JSON', 200, 'issued', 'hello', unexpected],
    ['200 with a refusal in it', 200, 'refused', status(known), unexpected],
    [
      'refused',
      422,
      'refused',
      status(known),
      { kind: 'refused', violations: [{ code: 'KeyNotPermitted', message: 'too short' }] },
    ],
    [
      'refused for two reasons',
      422,
      'refused',
      status(known, { reason: 'UidReused', message: 'x' }),
      {
        kind: 'refused',
        violations: [
          { code: 'KeyNotPermitted', message: 'too short' },
          { code: 'UidReused', message: 'x' },
        ],
      },
    ],
    [
      'too large',
      413,
      'refused',
      status({ reason: 'RequestTooLarge', message: 'x' }),
      { kind: 'refused', violations: [{ code: 'RequestTooLarge', message: 'x' }] },
    ],
    ['refused, without our header', 422, undefined, status(known), unexpected],
    ['too large for the front door', 413, undefined, { message: 'Request Too Long' }, unexpected],
    ['refused, no reason known', 422, 'refused', status({ reason: 'MoonPhase', message: 'x' }), unexpected],
    ['refused, one reason unknown', 422, 'refused', status(known, { reason: 'MoonPhase', message: 'x' }), unexpected],
    ['refused, without reasons', 422, 'refused', status(), unexpected],
    ['refused, a reason without message', 422, 'refused', status({ reason: 'UidReused' }), unexpected],
    ['refused, no Status', 422, 'refused', { details: { causes: [known] } }, unexpected],
    ['refused, no JSON', 422, 'refused', '<html>', unexpected],
    ['refused with 409', 409, 'refused', status(known), unexpected],
    ['refused with 500', 500, 'refused', status(known), unexpected],
    ['ignored', 409, 'ignored', status(), { kind: 'ignored' }],
    ["another server's conflict", 409, undefined, {}, unexpected],
    ['invalid', 400, 'invalid', status(), { kind: 'invalid' }],
    ["another server's bad request", 400, undefined, {}, unexpected],
    ['unknown cluster', 404, 'invalid', status(), unexpected],
    ['busy', 503, 'busy', { retryAfterSeconds: 4 }, { kind: 'busy', retryAfterSeconds: 4 }],
    ['busy with nonsense', 503, 'busy', { retryAfterSeconds: -1 }, { kind: 'busy' }],
    ['busy for a reason', 503, 'busy', because('Unavailable'), { kind: 'busy', why: 'Unavailable' }],
    ['busy for a reason of another version', 503, 'busy', because('toString'), { kind: 'busy' }],
    ["another server's reason", 503, undefined, because('Unavailable'), { kind: 'busy' }],
    ["the front door's 503", 503, undefined, { message: 'Service Unavailable' }, { kind: 'busy' }],
    ["the front door's throttle", 429, undefined, { message: 'Too Many Requests' }, { kind: 'busy' }],
    ['401', 401, undefined, {}, { kind: 'unauthorized', message: 'HTTP 401' }],
    ['403', 403, undefined, { message: 'Forbidden' }, { kind: 'unauthorized', message: 'HTTP 403' }],
    ['403 of the function', 403, 'forbidden', status(), { kind: 'unauthorized', message: unknownCaller }],
    [
      '403 of the function, with reasons to refuse',
      403,
      'forbidden',
      status(known),
      { kind: 'unauthorized', message: unknownCaller },
    ],
    ...[500, 502, 504].flatMap((code): [string, number, undefined, unknown, SignAnswer][] => [
      [`${code} of API Gateway`, code, undefined, { message: 'x' }, { kind: 'functionFailed', status: code }],
      [`${code} of a function URL`, code, undefined, { Message: 'x' }, { kind: 'functionFailed', status: code }],
      [`${code} of another proxy`, code, undefined, '<html>', unexpected],
      [`${code} with a message that is no text`, code, undefined, { message: {} }, unexpected],
    ]),
    ["a message that is not API Gateway's", 501, undefined, { message: 'x' }, unexpected],
    ['500 of the function itself', 500, 'internal', { message: 'x' }, unexpected],
    ['a teapot', 418, undefined, '', unexpected],
  ])('%s', async (_, code, outcome, body, expected) => {
    const { endpoint, calls } = await serve(respond(code, outcome, body));
    expect(await endpoint.sign(object, never)).toEqual(expected);
    expect(calls).toHaveLength(1);
  });
});

describe('attest', () => {
  const verdict = (more: object) => ({
    decision: 'approve',
    reason: 'Attested',
    message: 'm',
    annotations: {},
    ...more,
  });
  const deny = (more: object = {}) => verdict({ decision: 'deny', reason: 'TofuReuse', ...more });
  const own = { 'countersign.dev/identity': 'aws#x', 'cluster-x-k8s-io/tpm-endorsement-key': 'k' };

  test('is asked where it is, which need not be where sign is', async () => {
    const [sign, elsewhere] = [await serve(respond(200, 'verdict', {})), await serve(respond(200, 'verdict', {}))];
    const both = connectSigner({
      url: `${sign.origin}/v1/clusters/c`,
      attestUrl: `${elsewhere.origin}/v1/clusters/c`,
      connections: 1,
    });
    try {
      await both.attest(object, undefined, never);
      await both.sign(object, never);
      expect([sign.calls, elsewhere.calls].map((calls) => calls.map(({ url }) => url))).toEqual([
        ['/v1/clusters/c/sign'],
        ['/v1/clusters/c/attest'],
      ]);
    } finally {
      both.close();
    }
    expect(() => connectSigner({ url: 'https://a.example', attestUrl: 'http://a.example', connections: 1 })).toThrow(
      /both/,
    );
  });

  test('posts the request, and the context beside it where there is one', async () => {
    const { endpoint, calls } = await serve(respond(200, 'verdict', verdict({})));
    await endpoint.attest(object, undefined, never);
    await endpoint.attest(object, {}, never);
    await endpoint.attest(object, { clusterApi: { machines: [], cluster: { deleting: false } } }, never);
    expect(calls.map(({ url }) => url)).toEqual(Array(3).fill('/v1/clusters/c/attest'));
    expect(calls.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      { request: object },
      { request: object },
      { request: object, context: { clusterApi: { machines: [], cluster: { deleting: false } } } },
    ]);
  });

  const unexpected = expect.objectContaining({ kind: 'unexpected' }) as unknown;
  const says = (more: object) => ({ kind: 'verdict', verdict: more });
  test.each<[string, number, string | undefined, unknown, unknown]>([
    [
      'approval',
      200,
      'verdict',
      verdict({ annotations: own }),
      says({ decision: 'approve', message: 'm', annotations: own }),
    ],
    [
      'denial',
      200,
      'verdict',
      deny({ annotations: own }),
      says({ decision: 'deny', reason: 'TofuReuse', message: 'm', annotations: own }),
    ],
    [
      'challenge',
      200,
      'verdict',
      verdict({ decision: 'challenge', reason: 'AttestationChallenge' }),
      says({ decision: 'challenge', reason: 'AttestationChallenge', message: 'm', annotations: {} }),
    ],
    [
      'no interest',
      200,
      'verdict',
      { decision: 'ignore', reason: 'UnknownSigner', message: 'm', annotations: {} },
      says({ decision: 'ignore', reason: 'UnknownSigner' }),
    ],
    [
      'a refusal to read',
      413,
      'refused',
      status({ reason: 'RequestTooLarge', message: 'x' }),
      { kind: 'refused', violations: [{ code: 'RequestTooLarge', message: 'x' }] },
    ],
    ['invalid', 400, 'invalid', status(), { kind: 'invalid' }],
    ['busy', 503, 'busy', { retryAfterSeconds: 4 }, { kind: 'busy', retryAfterSeconds: 4 }],
    ['the front door’s throttle', 429, undefined, {}, { kind: 'busy' }],
    ['403', 403, undefined, {}, { kind: 'unauthorized', message: 'HTTP 403' }],
    ['403 of the function', 403, 'forbidden', status(), { kind: 'unauthorized', message: unknownCaller }],
    ['approval without our header', 200, undefined, verdict({}), unexpected],
    ['approval as something else of ours', 200, 'issued', verdict({}), unexpected],
    ['approval as a refusal', 422, 'verdict', verdict({}), unexpected],
    ['approval from a server without this path', 404, 'invalid', status(), unexpected],
    ['an unknown decision', 200, 'verdict', verdict({ decision: 'perhaps' }), unexpected],
    ['no decision', 200, 'verdict', {}, unexpected],
    ['no JSON', 200, 'verdict', 'approve', unexpected],
    ['denial for an unknown reason', 200, 'verdict', deny({ reason: 'MoonPhase' }), unexpected],
    ['denial without words', 200, 'verdict', deny({ message: undefined }), unexpected],
    ['no interest for an unknown reason', 200, 'verdict', { decision: 'ignore', reason: 'Boredom' }, unexpected],
    ['a list as annotations', 200, 'verdict', verdict({ annotations: ['a'] }), unexpected],
    ['an annotation that is no text', 200, 'verdict', verdict({ annotations: { 'countersign.dev/a': 1 } }), unexpected],
    [
      'an annotation of another domain',
      200,
      'verdict',
      verdict({ annotations: { 'kubernetes.io/a': 'x' } }),
      unexpected,
    ],
    [
      'annotations too large for the API server',
      200,
      'verdict',
      verdict({ annotations: { 'countersign.dev/a': 'x'.repeat(70_000) } }),
      unexpected,
    ],
    ['a crash', 500, undefined, {}, unexpected],
  ])('hears %s', async (_, code, outcome, body, expected) => {
    const { endpoint, calls } = await serve(respond(code, outcome, body));
    expect(await endpoint.attest(object, undefined, never)).toEqual(expected);
    expect(calls).toHaveLength(1);
  });

  test('without credentials sends no request', async () => {
    const { endpoint, calls } = await serve(respond(200, 'verdict', verdict({})), {
      authorize: () => Promise.resolve({ ok: false, problem: 'no role' }),
    });
    expect(await endpoint.attest(object, undefined, never)).toEqual({ kind: 'unauthorized', message: 'no role' });
    expect(calls).toHaveLength(0);
  });

  test('signs for the URL it calls', async () => {
    const urls: string[] = [];
    const { endpoint } = await serve(respond(200, 'verdict', verdict({})), {
      authorize: ({ url }) => {
        urls.push(url.pathname);
        return Promise.resolve({ ok: true, value: {} });
      },
    });
    await endpoint.attest(object, undefined, never);
    expect(urls).toEqual(['/v1/clusters/c/attest']);
  });
});

test('a redirect is not followed', async () => {
  const { endpoint, calls, origin } = await serve(
    (response) => void response.writeHead(307, { location: `${origin}/other` }).end(),
  );
  expect(await endpoint.sign(object, never)).toMatchObject({ kind: 'unexpected', status: 307 });
  expect(calls).toHaveLength(1);
});

describe('no answer is thrown:', () => {
  test('none in time', async () => {
    const { endpoint } = await serve(() => {}, { timeoutMilliseconds: 50 });
    await expect(endpoint.sign(object, never)).rejects.toThrow('no answer in 0.05 s');
  });

  test('half of one in time', async () => {
    const { endpoint } = await serve(
      (response) => void response.writeHead(200, { 'x-countersign-outcome': 'issued' }).write('{'),
      {
        timeoutMilliseconds: 100,
      },
    );
    await expect(endpoint.sign(object, never)).rejects.toThrow('no answer');
  });

  test('half of one and then a closed connection', async () => {
    const { endpoint } = await serve((response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{');
      setImmediate(() => response.destroy());
    });
    await expect(endpoint.sign(object, never)).rejects.toThrow();
  });

  test('one without end', async () => {
    const { endpoint } = await serve((response) => {
      response.writeHead(200);
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('drain', more);
      more();
    });
    await expect(endpoint.sign(object, never)).rejects.toThrow('too large');
  });

  test('no server listens', async () => {
    const endpoint = connectSigner({ url: 'http://127.0.0.1:1/v1/clusters/c', connections: 1 });
    closes.push(() => endpoint.close());
    await expect(endpoint.sign(object, never)).rejects.toThrow('ECONNREFUSED');
  });

  test('called off', async () => {
    const controller = new AbortController();
    const { endpoint, calls } = await serve(() => controller.abort(new Error('enough')));
    await expect(endpoint.sign(object, controller.signal)).rejects.toThrow('enough');
    await expect(endpoint.sign(object, controller.signal)).rejects.toThrow('enough');
    expect(calls).toHaveLength(1);
  });
});

test('an answer before the body was read counts, and its connection does not block the next request', async () => {
  const server = await serveImpatiently(503, ['x-countersign-outcome: busy'], '{}');
  const endpoint = connectSigner({ url: server.url, connections: 1 });
  closes.push(
    () => endpoint.close(),
    () => server.close(),
  );
  for (let i = 0; i < 3; i += 1) expect(await endpoint.sign({ spec: tooMuchToSend }, never)).toEqual({ kind: 'busy' });
  server.read();
  await expect.poll(() => server.counts, { timeout: 10_000 }).toEqual({ opened: 3, ended: 3 });
}, 60_000);

test('over TLS only the given CA is trusted', async () => {
  const authority = await createTestAuthority('signer');
  const { certificatePem: cert, keyPem: key } = await authority.issue({
    subject: [{ CN: ['s'] }],
    extensions: loopbackServerExtensions(),
  });
  const tls = { key, cert };
  const trusted = await serve(respond(200, 'issued', certificate), { tls, caPem: authority.certificatePem });
  expect(await trusted.endpoint.sign(object, never)).toEqual(issued);
  const untrusted = await serve(respond(200, 'issued', certificate), { tls });
  await expect(untrusted.endpoint.sign(object, never)).rejects.toThrow(/certificate/);
  expect(untrusted.calls).toEqual([]);
});

test('credentials are asked for each call, over its body', async () => {
  const bodies: string[] = [];
  const { endpoint, calls } = await serve(respond(200, 'issued', certificate), {
    authorize: ({ method, url, headers, body }) => {
      expect([method, url.pathname, headers['content-type']]).toEqual([
        'POST',
        '/v1/clusters/c/sign',
        'application/json',
      ]);
      const authorization = `Test ${bodies.push(Buffer.from(body).toString('utf8'))}`;
      return Promise.resolve({ ok: true, value: { authorization } });
    },
  });
  await endpoint.sign(object, never);
  await endpoint.sign(object, never);
  expect(calls.map(({ headers }) => headers.authorization)).toEqual(['Test 1', 'Test 2']);
  expect(bodies).toEqual([JSON.stringify(object), JSON.stringify(object)]);
});

test('without credentials nothing is sent', async () => {
  const { endpoint, calls } = await serve(respond(200, 'issued', certificate), {
    authorize: () => Promise.resolve({ ok: false, problem: 'no role' }),
  });
  expect(await endpoint.sign(object, never)).toEqual({ kind: 'unauthorized', message: 'no role' });
  const broken = await serve(respond(200, 'issued', certificate), {
    authorize: () => Promise.reject(new Error('STS is away')),
  });
  await expect(broken.endpoint.sign(object, never)).rejects.toThrow('STS is away');
  expect([...calls, ...broken.calls]).toEqual([]);
});

test('credentials that take too long, or until the relay stops, lead to no call', async () => {
  let answer: ((credentials: Credentials) => void) | undefined;
  const { endpoint, calls } = await serve(respond(200, 'issued', certificate), {
    authorize: () => new Promise((resolve) => (answer = resolve)),
    timeoutMilliseconds: 50,
  });
  await expect(endpoint.sign(object, never)).rejects.toThrow('no answer in 0.05 s');
  answer?.({ ok: true, value: {} });
  const stop = new AbortController();
  const stopped = endpoint.sign(object, stop.signal);
  stop.abort(new Error('stopping'));
  await expect(stopped).rejects.toThrow('stopping');
  answer?.({ ok: true, value: {} });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(calls).toEqual([]);
});

test('a name under localhost is this machine', async () => {
  const { calls, origin } = await serve(respond(200, 'issued', certificate));
  const { port } = new URL(origin);
  const endpoint = connectSigner({ url: `http://a.execute-api.localhost:${port}/v1/clusters/c`, connections: 1 });
  closes.push(() => endpoint.close());
  expect(await endpoint.sign(object, never)).toEqual(issued);
  expect(calls[0]?.headers.host).toBe(`a.execute-api.localhost:${port}`);
});

test.each([
  ['https://a.example/v1/clusters/c', 'https://a.example/v1/clusters/c/sign'],
  ['https://a.example/stage/v1/clusters/c//', 'https://a.example/stage/v1/clusters/c/sign'],
])('%s leads to %s', (base, url) => {
  expect(signUrl(base).href).toBe(url);
});

test.each([
  'ftp://a.example/',
  'file:///etc/passwd',
  'https://u:p@a.example/',
  'https://a.example/?x=1',
  'https://a.example/#x',
  'x',
])('%s is no endpoint', (base) => {
  expect(() => signUrl(base)).toThrow(/URL/);
});

function because(reason: string): object {
  return { kind: 'Status', status: 'Failure', details: { causes: [{ reason, message: 'try again' }] } };
}

describe('look', () => {
  test('sends the names to attest, and 202 is all it needs to know', async () => {
    const { endpoint, calls } = await serve(respond(202, undefined, {}));
    expect(await endpoint.look(['a', 'b'], never)).toEqual({ kind: 'accepted' });
    expect(calls.map(({ method, url, body }) => [method, url, JSON.parse(body) as unknown])).toEqual([
      ['POST', '/v1/clusters/c/attest/look', { nodeNames: ['a', 'b'] }],
    ]);
  });

  test.each<[number, string | undefined, unknown, object]>([
    [429, 'busy', {}, { kind: 'busy' }],
    [403, undefined, {}, { kind: 'unauthorized', message: 'HTTP 403' }],
    [404, 'invalid', {}, { kind: 'unexpected', status: 404 }],
    [400, 'invalid', {}, { kind: 'unexpected', status: 400 }],
    [200, undefined, {}, { kind: 'unexpected', status: 200 }],
  ])('%d %s is no acceptance', async (status, outcome, body, expected) => {
    const { endpoint } = await serve(respond(status, outcome, body));
    expect(await endpoint.look(['a'], never)).toMatchObject(expected);
  });
});
