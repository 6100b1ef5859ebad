import { describe, expect, test } from 'vitest';
import { ThrottledError } from '../../../../../core/ports/errors.ts';
import type { ApiAnswer, JsonObject } from '../../../../../core/ports/kubernetes-api.ts';
import type { SignAnswer } from '../../../../../core/ports/signing-endpoint.ts';
import { withoutManagedFields } from '../../../../../lambdas/watch-relay/objects/request-phase.ts';
import { createWebhookProxy } from '../../../../../lambdas/watch-relay/webhook/proxy.ts';
import type { WebhookCall } from '../../../../../lambdas/watch-relay/webhook/posted.ts';
import { approved, denied, goodPem, object, otherPem } from '../fixtures.ts';
import { issued, refusal } from '../simulated-endpoint.ts';

const path = '/v1/clusters/prod/sign';
const made = object('r');
const stored: JsonObject = { ...made, spec: { ...made.spec, usages: ['digital signature', 'client auth'] } };
type Api = (name: string) => ApiAnswer<JsonObject> | Error;
const has =
  (found: JsonObject): Api =>
  (name) =>
    name === 'r' ? { ok: true, value: found } : { ok: false, problem: { why: 'NotFound', message: 'HTTP 404' } };

/** The answer to one call, and the calls that it caused. */
async function post(
  posted: unknown,
  options: { api?: Api; answer?: SignAnswer | Error; call?: Partial<WebhookCall> } = {},
) {
  const { api = has(stored), answer = issued, call = {} } = options;
  const forwarded: JsonObject[] = [];
  const read: string[] = [];
  const logged: string[] = [];
  const log = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const orThrow = <T>(value: T | Error): Promise<T> =>
    value instanceof Error ? Promise.reject(value) : Promise.resolve(value);
  const proxy = createWebhookProxy('prod', {
    api: {
      get: (name) => {
        read.push(name);
        return orThrow(api(name));
      },
    },
    endpoint: {
      sign: (given) => {
        forwarded.push(given);
        return orThrow(answer);
      },
    },
    log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
  });
  const body = Buffer.from(typeof posted === 'string' ? posted : JSON.stringify(posted));
  const {
    statusCode,
    headers,
    body: text,
  } = await proxy(
    { method: 'POST', path, contentType: 'application/json', body, ...call },
    new AbortController().signal,
  );
  return {
    answer: `${statusCode} ${headers['x-countersign-outcome']}`,
    json: JSON.parse(text) as Record<string, unknown>,
    headers,
    forwarded,
    read,
    logged,
  };
}

/** The object, changed somewhere. */
function changed(where: string, value: unknown, base: JsonObject = stored): JsonObject {
  const copy = structuredClone(base) as Record<string, unknown>;
  const keys = where.split('.');
  const last = keys.pop()!;
  let inner = copy;
  for (const key of keys) inner = inner[key] as Record<string, unknown>;
  if (value === undefined) delete inner[last];
  else inner[last] = value;
  return copy;
}

test('the stored object goes to the endpoint, the posted one comes back with the certificate', async () => {
  // A client sends what it once saw: other conditions, other metadata, fields of its own.
  const posted = {
    ...changed('metadata.resourceVersion', '0'),
    status: { conditions: [approved, approved] },
    extra: 1,
  };
  const { answer, json, forwarded, read } = await post(posted);
  expect(answer).toBe('200 issued');
  expect(forwarded).toEqual([withoutManagedFields(stored)]);
  expect(read).toEqual(['r']);
  const certificate = Buffer.from(goodPem).toString('base64');
  expect(json).toEqual({ ...posted, status: { ...posted.status, certificate } });
});

test('finding 18: a stored object that is oversized is refused without asking the endpoint, and is no error', async () => {
  const large = { ...stored, metadata: { ...made.metadata, labels: { padding: 'x'.repeat(200_000) } } };
  const tooLargeToRead: Api = () => ({ ok: false, problem: { why: 'TooLarge', message: 'the answer is too large' } });
  for (const api of [has(large), tooLargeToRead]) {
    const { answer, json, forwarded, logged } = await post(stored, { api });
    expect([answer, forwarded, logged]).toEqual(['413 refused', [], []]);
    expect(JSON.stringify(json)).toContain('RequestTooLarge');
  }
});

test('an older client is answered in its own version', async () => {
  const { answer, json, forwarded } = await post(changed('apiVersion', 'certificates.k8s.io/v1beta1'));
  expect([answer, json['apiVersion']]).toEqual(['200 issued', 'certificates.k8s.io/v1beta1']);
  expect(forwarded[0]?.['apiVersion']).toBe('certificates.k8s.io/v1');
});

describe('nothing is forwarded, and nothing 2xx', () => {
  const request = Buffer.from('-----BEGIN').toString('base64');
  test.each<[string, unknown, string, RegExp]>([
    ['another UID', changed('metadata.uid', 'uid-other'), '409 ignored', /metadata\.uid differs/],
    ['another request', changed('spec.request', request), '409 ignored', /spec differs/],
    ['another signer', changed('spec.signerName', 'kubernetes.io/kubelet-serving'), '409 ignored', /spec differs/],
    ['another user', changed('spec.username', 'system:admin'), '409 ignored', /spec differs/],
    ['more groups', changed('spec.groups', ['system:masters']), '409 ignored', /spec differs/],
    ['usages in another order', changed('spec.usages', ['client auth', 'digital signature']), '409 ignored', /spec/],
    ['a longer life', changed('spec.expirationSeconds', 99_999), '409 ignored', /spec differs/],
    ['a field more', changed('spec.extra', { a: ['b'] }), '409 ignored', /spec differs/],
    ['a field of nothing', changed('spec.uid', null), '409 ignored', /spec differs/],
    ['a field less', changed('spec.username', undefined), '409 ignored', /spec differs/],
    [
      'a prototype for a field',
      JSON.stringify(stored).replace('"spec":{', '"spec":{"__proto__":{"x":1},'),
      '409 ignored',
      /spec/,
    ],
    ['an unknown name', changed('metadata.name', 'other'), '409 ignored', /no request of that name/],
    ['a name that leads elsewhere', changed('metadata.name', '../nodes/n1'), '400 invalid', /metadata\.name/],
    ['no name', changed('metadata.name', undefined), '400 invalid', /metadata\.name/],
    ['no UID', changed('metadata.uid', undefined), '400 invalid', /metadata\.uid/],
    ['no spec', changed('spec', undefined), '400 invalid', /spec/],
    ['another kind', changed('kind', 'Secret'), '400 invalid', /kind/],
    ['no JSON', '{', '400 invalid', /JSON/],
    ['no UTF-8', Buffer.from([0xff]).toString('latin1'), '400 invalid', /./],
    ['brackets', '['.repeat(5_000), '400 invalid', /nested/],
    ['far too much', JSON.stringify({ x: 'x'.repeat(1_600_000) }), '413 refused', /1\.5 MiB/],
    ['too large a request', changed('spec.request', 'A'.repeat(200_000)), '413 refused', /too large/],
  ])('for %s', async (_, posted, expected, message) => {
    const { answer, json, forwarded } = await post(posted);
    expect(answer).toBe(expected);
    expect(json).toMatchObject({
      kind: 'Status',
      status: 'Failure',
      message: expect.stringMatching(message) as unknown,
    });
    // The only part that the client shows.
    expect(json['error']).toMatchObject({ message: json['message'] });
    expect(forwarded).toEqual([]);
  });

  test.each<[string, JsonObject, RegExp]>([
    ['not approved', { ...stored, status: { conditions: [] } }, /not approved/],
    ['denied', { ...stored, status: { conditions: [approved, denied] } }, /denied/],
    ['failed', { ...stored, status: { conditions: [approved, { ...approved, type: 'Failed' }] } }, /failed/],
    ['answered', { ...stored, status: { conditions: [approved], certificate: 'AA==' } }, /has its certificate/],
  ])('for a request that is %s, whatever the posted one says of itself', async (_, found, message) => {
    const { answer, json, forwarded } = await post(stored, { api: has(found) });
    expect([answer, json['message']]).toEqual(['409 ignored', expect.stringMatching(message)]);
    expect(forwarded).toEqual([]);
  });

  test.each<[string, Partial<WebhookCall>, string]>([
    ['another cluster', { path: '/v1/clusters/test/sign' }, '404 invalid'],
    ['another path', { path: `${path}/` }, '404 invalid'],
    ['attest', { path: '/v1/clusters/prod/attest' }, '404 invalid'],
    ['another method', { method: 'PUT' }, '405 invalid'],
    ['a form', { contentType: 'text/plain' }, '415 invalid'],
    ['no content type', { contentType: undefined }, '415 invalid'],
  ])('for %s', async (_, call, expected) => {
    const { answer, read } = await post(stored, { call });
    expect(answer).toBe(expected);
    expect(read).toEqual([]);
  });
});

describe('what the API server or the endpoint say', () => {
  const message = 'subject organization is not system:nodes; RSA 1024 is too short';
  const causes = [
    { reason: 'SignerValidationFailure', message: 'subject organization is not system:nodes' },
    { reason: 'KeyNotPermitted', message: 'RSA 1024 is too short' },
  ];
  const large: SignAnswer = { kind: 'refused', violations: [{ code: 'RequestTooLarge', message: 'too large' }] };
  test.each<[string, SignAnswer | Error, string, object, string]>([
    ['refused', refusal, '422 refused', { message, details: { causes } }, ''],
    ['too large', large, '413 refused', { message: 'too large' }, ''],
    ['ignored', { kind: 'ignored' }, '409 ignored', {}, ''],
    ['invalid', { kind: 'invalid' }, '400 invalid', {}, ''],
    ['busy', { kind: 'busy', retryAfterSeconds: 7 }, '503 busy', { retryAfterSeconds: 7 }, ''],
    ['throttled by the front', { kind: 'busy' }, '503 busy', { retryAfterSeconds: 2 }, ''],
    ['unauthorized', { kind: 'unauthorized', message: 'HTTP 403' }, '503 busy', {}, 'error'],
    ['without its function', { kind: 'functionFailed', status: 500 }, '503 busy', {}, 'warn'],
    ['a page', { kind: 'unexpected', status: 200, message: 'x' }, '503 busy', {}, 'error'],
    ['a certificate for another key', { kind: 'issued', certificatePem: otherPem }, '503 busy', {}, 'error'],
    ['an invalid certificate', { kind: 'issued', certificatePem: 'x' }, '503 busy', {}, 'error'],
    ['nothing', new Error('ECONNREFUSED'), '503 busy', {}, 'warn'],
  ])('the endpoint: %s', async (_, said, expected, body, level) => {
    const { answer, json, headers, logged } = await post(stored, { answer: said });
    expect(answer).toBe(expected);
    expect(json).toMatchObject(body);
    // With one the client calls up to 55 times in a row.
    expect(headers).not.toHaveProperty('retry-after');
    expect(logged.map((line) => line.split(' ')[0])).toEqual(level === '' ? [] : [level]);
    // The client does not learn the cause.
    if (expected === '503 busy') expect(json['message']).toBe('temporarily unable to sign; try again');
  });

  test.each<[string, ReturnType<Api>, string]>([
    ['forbidden', { ok: false, problem: { why: 'Forbidden', message: 'HTTP 403' } }, 'error'],
    ['unauthorized', { ok: false, problem: { why: 'Unauthorized', message: 'HTTP 401' } }, 'error'],
    ['throttled', new ThrottledError('HTTP 429'), 'warn'],
    ['away', new Error('ECONNREFUSED'), 'warn'],
  ])('the API server: %s', async (_, said, level) => {
    const { answer, forwarded, logged } = await post(stored, { api: () => said });
    expect(answer).toBe('503 busy');
    expect(forwarded).toEqual([]);
    expect(logged.map((line) => line.split(' ')[0])).toEqual([level]);
  });
});
