import { randomUUID, X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { maxObjectBytes } from '../../../../core/encoding/json-body.ts';
import { ThrottledError } from '../../../../core/ports/errors.ts';
import { pemBlock } from '../../../harness/x509/requests.ts';
import { certificatesIn, csrFixture, errorIn, eventFixture, outcomeOf, startStack } from './stack.ts';
import type { Stack, StackChange } from './stack.ts';

let stack: Stack;
const stacks: Stack[] = [];
async function start(change?: StackChange): Promise<Stack> {
  stack = await startStack(change);
  stacks.push(stack);
  return stack;
}
beforeEach(() => start());
afterEach(() => {
  for (const each of stacks.splice(0)) each.close();
});

describe('issued', () => {
  test('the same object with a certificate that the CA signed, and nothing else changed', async () => {
    const csr = csrFixture();
    const answer = await stack.post(csr);
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([200, 'issued']);
    expect(answer.headers['content-type']).toBe('application/json');
    const object = JSON.parse(answer.body) as ReturnType<typeof csrFixture> & { status: { certificate?: string } };
    const { certificate, ...status } = object.status;
    expect({ ...object, status }).toEqual(csr);
    expect(certificate).toMatch(/^[A-Za-z0-9+/]+=*$/);

    const [leaf, ...more] = certificatesIn(answer);
    expect(more).toEqual([]);
    expect(leaf?.verify(new X509Certificate(stack.caPem).publicKey)).toBe(true);
    expect(leaf?.subject).toBe('O=system:nodes\nCN=system:node:n1');
    expect(leaf?.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
  });

  test('again: the same bytes, one signature, and the log says which', async () => {
    const csr = csrFixture();
    const first = await stack.post(csr);
    stack.clock.now += 3_600_000;
    const second = await stack.post(csr);
    expect(second.body).toBe(first.body);
    expect(stack.signatures()).toBe(1);
    expect(stack.log.map(({ outcome, repeat }) => ({ outcome, repeat }))).toEqual([
      { outcome: 'issued', repeat: false },
      { outcome: 'issued', repeat: true },
    ]);
  });

  test('v1beta1 is answered as v1beta1, its signerName defaulted', async () => {
    const csr = { ...csrFixture({ spec: { signerName: undefined } }), apiVersion: 'certificates.k8s.io/v1beta1' };
    const answer = await stack.post(csr);
    expect(answer.statusCode).toBe(200);
    expect(JSON.parse(answer.body)).toMatchObject({ apiVersion: 'certificates.k8s.io/v1beta1' });
    expect(JSON.parse(answer.body)).not.toHaveProperty('spec.signerName');
  });

  test('fields we do not know, null, and keys named as parts of every object come back as they were', async () => {
    const csr = csrFixture({
      metadata: {
        annotations: { a: 'ä€😀\u2028', constructor: 'c' },
        managedFields: [{ fieldsV1: { 'f:status': {} } }],
      },
      spec: { extra: { toString: ['x'] } },
      status: { unknown: null },
    });
    const text = JSON.stringify(csr).replace('"kind"', '"__proto__":{"polluted":true},"kind"');
    const answer = await stack.post(csr, { body: text });
    expect(answer.statusCode).toBe(200);
    expect(answer.body.replace(/,"certificate":"[^"]+"/, '')).toBe(text);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('a missing content type and one with parameters are JSON', async () => {
    for (const headers of [
      {},
      { 'Content-Type': 'application/json; charset=utf-8' },
      { 'content-type': 'APPLICATION/JSON' },
    ])
      expect((await stack.post(csrFixture(), { headers })).statusCode).toBe(200);
  });
});

describe('refused', () => {
  test('422 with both shapes, all violations in order, and codes as causes', async () => {
    const csr = csrFixture({
      request: { subject: { O: 'system:masters', CN: 'admin' }, sans: { dns: ['x'], email: ['a@b'] } },
    });
    const answer = await stack.post(csr);
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([422, 'refused']);
    const body = errorIn(answer);
    expect(body).toMatchObject({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Invalid', code: 422 });
    expect(body.error).toEqual({ code: 422, message: body.message, status: 'FAILED_PRECONDITION' });
    expect(body.message).toMatch(/^subject organization is not system:nodes; /);
    expect(body.details?.causes.length).toBeGreaterThan(2);
    expect(body.details?.causes[0]).toEqual({
      reason: 'SignerValidationFailure',
      message: 'subject organization is not system:nodes',
    });
    expect(body.details?.causes.map(({ message }) => message).join('; ')).toBe(body.message);
    expect(body).not.toHaveProperty('spec');
    expect(stack.signatures()).toBe(0);
    expect(stack.log[0]).toMatchObject({ level: 'info', outcome: 'refused', status: 422 });
    expect(stack.log[0]?.codes?.[0]).toBe('SignerValidationFailure');
  });

  test('other content under a UID that has its certificate: UidReused, and nothing of the first is told', async () => {
    const csr = csrFixture();
    await stack.post(csr);
    const other = csrFixture({
      metadata: { uid: csr.metadata.uid },
      request: { subject: { O: 'system:nodes', CN: 'system:node:n2' } },
    });
    const answer = await stack.post(other);
    expect([answer.statusCode, errorIn(answer).details?.causes.map(({ reason }) => reason)]).toEqual([
      422,
      ['UidReused'],
    ]);
    expect(answer.body).not.toContain('n1');
  });

  test('a request over 128 KiB: 413, final, before it is decoded', async () => {
    const request = Buffer.from(pemBlock('CERTIFICATE REQUEST', new Uint8Array(100_000))).toString('base64');
    const answer = await stack.post(csrFixture({ spec: { request } }));
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([413, 'refused']);
    const body = errorIn(answer);
    expect(body.details?.causes[0]?.reason).toBe('RequestTooLarge');
    expect([body.reason, body.error.code]).toEqual(['RequestEntityTooLarge', 413]);
  });

  test('an object over 1.5 MiB: 413, final, before it is parsed', async () => {
    const answer = await stack.post({}, { body: '['.repeat(maxObjectBytes + 1) });
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([413, 'refused']);
    const fits = csrFixture({ metadata: { annotations: { a: '' } } });
    const filling = 'x'.repeat(maxObjectBytes - JSON.stringify(fits).length);
    Object.assign(fits.metadata, { annotations: { a: filling } });
    expect(JSON.stringify(fits)).toHaveLength(maxObjectBytes);
    expect((await stack.post(fits)).statusCode).toBe(200);
  });
});

describe('ignored', () => {
  const condition = (type: string) => ({ type, status: 'True' });
  test.each([
    ['not approved', { status: { conditions: [] } }, 'NotApproved'],
    ['denied', { status: { conditions: [condition('Approved'), condition('Denied')] } }, 'Denied'],
    ['failed', { status: { conditions: [condition('Approved'), condition('Failed')] } }, 'Failed'],
    ['issued already', { status: { certificate: 'eA==' } }, 'AlreadyIssued'],
    ["another signer's", { spec: { signerName: 'example.com/other' } }, 'UnknownSigner'],
  ])('%s: 409, nothing signed, nothing recorded', async (_, change, why) => {
    const csr = csrFixture(change);
    const answer = await stack.post(csr);
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([409, 'ignored']);
    expect(errorIn(answer).details?.causes[0]?.reason).toBe(why);
    expect(errorIn(answer).error.code).toBe(409);
    expect(stack.signatures()).toBe(0);
    expect(await stack.ledger.find(csr.metadata.uid)).toBeUndefined();
    expect(stack.log[0]).toMatchObject({ level: 'info', outcome: 'ignored', why });
  });
});

describe('invalid', () => {
  test.each<[string, string | Uint8Array, RegExp]>([
    ['nothing', '', /not JSON/],
    ['text', 'hello', /not JSON/],
    ['half an object', '{"a":', /not JSON/],
    ['a byte order mark', `\uFEFF${JSON.stringify(csrFixture())}`, /not JSON/],
    [
      'bytes that are not UTF-8',
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')]),
      /not UTF-8/,
    ],
    ['null', 'null', /not a JSON object/],
    ['a list', '[]', /not a JSON object/],
    ['another kind', JSON.stringify({ ...csrFixture(), kind: 'Pod' }), /kind is not/],
    ['another version', JSON.stringify({ ...csrFixture(), apiVersion: 'v1' }), /apiVersion is not/],
    ['a UID that is no UID', JSON.stringify(csrFixture({ metadata: { uid: '../x' } })), /metadata.uid/],
    ['a bomb of open brackets', '['.repeat(1_500_000), /nested deeper/],
    ['a bomb of closed brackets', '['.repeat(700_000) + ']'.repeat(700_000), /nested deeper/],
    ['a bomb of objects', '{"a":'.repeat(200_000) + '1' + '}'.repeat(200_000), /nested deeper/],
    [
      'a bomb inside an otherwise good object',
      JSON.stringify(csrFixture()).replace('"keep":"me"', `"keep":${'['.repeat(9_000)}${']'.repeat(9_000)}`),
      /nested deeper/,
    ],
  ])('%s: 400 that quotes nothing of it', async (_, body, message) => {
    const answer = await stack.post({}, { body });
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([400, 'invalid']);
    expect(errorIn(answer).message).toMatch(message);
    expect(errorIn(answer).reason).toBe('BadRequest');
    expect(answer.body.length).toBeLessThan(400);
    expect(stack.signatures()).toBe(0);
  });

  test('brackets inside strings are no nesting', async () => {
    const csr = csrFixture({ metadata: { annotations: { a: '[{'.repeat(500), b: '\\"[[[', '[[[\\': '"' } } });
    expect((await stack.post(csr)).statusCode).toBe(200);
  });

  test('the log names no field that could be anything', async () => {
    await stack.post(
      csrFixture({ metadata: { uid: 'a\nb', name: 'x'.repeat(5_000) }, spec: { signerName: { a: 1 } } }),
    );
    expect(stack.log).toHaveLength(1);
    expect(stack.log[0]).not.toHaveProperty('uid');
    expect(stack.log[0]).not.toHaveProperty('name');
    expect(stack.log[0]).not.toHaveProperty('signerName');
  });
});

describe('busy', () => {
  const failing = (error: Error) =>
    start({
      authority: async () => {
        throw error;
      },
    });
  test.each([
    ['Throttled', new ThrottledError('slow down'), 'info'],
    ['Unavailable', new Error('connect ECONNREFUSED'), 'warn'],
    ['Internal', new TypeError('x is not a function'), 'error'],
  ])('%s: 503 without Retry-After, with a body that says when', async (why, error, level) => {
    await failing(error);
    const answer = await stack.post(csrFixture());
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([503, 'busy']);
    expect(Object.keys(answer.headers).map((name) => name.toLowerCase())).not.toContain('retry-after');
    const body = errorIn(answer);
    expect(body).toMatchObject({
      kind: 'Status',
      reason: 'ServiceUnavailable',
      code: 503,
      error: { status: 'UNAVAILABLE' },
    });
    expect(body.details?.causes[0]?.reason).toBe(why);
    expect(body.retryAfterSeconds).toBeGreaterThanOrEqual(1);
    expect(body.retryAfterSeconds).toBeLessThanOrEqual(4);
    // What broke is for the operator, not for the caller.
    expect(answer.body).not.toContain(error.message);
    expect(stack.log[0]).toMatchObject({ level, why, error: { name: error.name, message: error.message } });
  });

  test('while another worker holds the lease: InProgress', async () => {
    const csr = csrFixture();
    const asksTheKey = Promise.withResolvers<void>();
    const sign = (): Promise<never> => {
      asksTheKey.resolve();
      return new Promise(() => {});
    };
    await start({ wrapSigner: (signer) => ({ ...signer, sign }) });
    void stack.post(csr);
    await asksTheKey.promise;
    const answer = await stack.post(csr);
    expect([answer.statusCode, errorIn(answer).details?.causes[0]?.reason]).toEqual([503, 'InProgress']);
    expect(errorIn(answer).retryAfterSeconds).toBe(1);
  });

  test('an error text may be a page long; the log has its beginning', async () => {
    await failing(new Error('e'.repeat(10_000), { cause: new Error('why'.repeat(1_000)) }));
    await stack.post(csrFixture());
    expect(JSON.stringify(stack.log[0]).length).toBeLessThan(1_500);
  });

  test('after a failure the next delivery succeeds', async () => {
    let calls = 0;
    await start({
      wrapSigner: (signer) => ({
        ...signer,
        sign: async (tbs) => {
          calls += 1;
          if (calls === 1) throw new Error('KMS is down');
          return signer.sign(tbs);
        },
      }),
    });
    const csr = csrFixture();
    expect((await stack.post(csr)).statusCode).toBe(503);
    expect((await stack.post(csr)).statusCode).toBe(200);
    expect(stack.signatures()).toBe(1);
  });

  test('a wrong signature never leaves, and raises an alarm', async () => {
    await start({ wrapSigner: (signer) => ({ ...signer, sign: (tbs) => signer.sign(Uint8Array.from(tbs).fill(0)) }) });
    const csr = csrFixture();
    const answer = await stack.post(csr);
    expect([answer.statusCode, errorIn(answer).details?.causes[0]?.reason]).toEqual([503, 'Internal']);
    expect(stack.log[0]).toMatchObject({ level: 'error', why: 'Internal' });
    expect((await stack.ledger.find(csr.metadata.uid))?.state).toBe('intent');
  });
});

describe('the log', () => {
  test('has one line a request with what an operator needs, and nothing secret', async () => {
    const csr = csrFixture();
    const answer = await stack.post(csr, {
      headers: { 'content-type': 'application/json', authorization: 'Bearer secret-token' },
    });
    const [leaf] = certificatesIn(answer);
    expect(stack.log).toEqual([
      {
        level: 'info',
        outcome: 'issued',
        status: 200,
        durationMilliseconds: 0,
        cluster: 'demo',
        uid: csr.metadata.uid,
        name: 'node-csr-1',
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        serial: leaf?.serialNumber.toLowerCase(),
        repeat: false,
      },
    ]);
  });

  test('is quiet about probes that succeed', async () => {
    await stack.handler(eventFixture({ path: '/healthz' }));
    await stack.handler(eventFixture({ path: '/v1/clusters/demo/trust-bundle' }));
    expect(stack.log).toEqual([]);
    await stack.handler(eventFixture({ path: `/${randomUUID()}\u202e` }));
    expect(stack.log).toHaveLength(1);
    expect(JSON.stringify(stack.log)).not.toContain('\u202e');
  });
});
