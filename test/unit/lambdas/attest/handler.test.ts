/** The attest function over HTTP: what it takes, and how each of its ends is answered and logged. */
import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { verdictAnswer } from '../../../../adapters/lambda/answers.ts';
import { maxObjectBytes } from '../../../../core/encoding/json-body.ts';
import { violation } from '../../../../core/outcome/outcome.ts';
import { MisconfigurationError, ThrottledError } from '../../../../core/ports/errors.ts';
import { maxCallBytes } from '../../../../lambdas/attest/handler.ts';
import { clusterApi, contextOf, machineObject } from '../../../harness/attestation/machine-objects.ts';
import { newKey } from '../../../harness/x509/requests.ts';
import { errorIn, outcomeOf } from '../sign/stack.ts';
import { attestPath, endpointOf, verdictIn } from './endpoint.ts';
import type { Endpoint } from './endpoint.ts';
import { createWorld, requestOf } from './world.ts';
import type { Asked, World, WorldOptions } from './world.ts';

interface Site extends World, Endpoint {}

const open: World[] = [];
async function start(options?: WorldOptions): Promise<Site> {
  const world = await createWorld(options);
  open.push(world);
  world.platform.machines.set('m1', { nodeNames: ['node-1'], addresses: ['10.0.0.1', '10.0.0.2'] });
  return { ...world, ...endpointOf(world) };
}
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});
const m1 = { machine: 'm1' };
const proved = (asked: Asked = {}) => requestOf({ evidence: m1, ...asked });

describe('what is no call of ours', () => {
  test.each([
    '/',
    '/healthz',
    '/v1/clusters/demo',
    '/v1/clusters/demo/attest/',
    '/v1/clusters//attest',
    '/v1/clusters/DEMO/attest',
    '/v1/clusters/demo%2f/attest',
    '//v1/clusters/demo/attest',
    '/v1/clusters/demo/sign',
    '/v1/clusters/demo/trust-bundle',
    `/v1/clusters/${'a'.repeat(64)}/attest`,
    '/v1/clusters/other/attest',
    '/v1/clusters/constructor/attest',
  ])('%s: 404', async (path) => {
    const { post } = await start();
    const answer = await post({ request: proved() }, { path });
    expect([answer.statusCode, outcomeOf(answer), errorIn(answer).reason]).toEqual([404, 'invalid', 'NotFound']);
  });

  test.each(['GET', 'HEAD', 'PUT', 'OPTIONS', 'DELETE'])('%s: 405 with Allow: POST', async (method) => {
    const { post } = await start();
    const answer = await post({}, { method });
    expect([answer.statusCode, answer.headers['allow'], outcomeOf(answer)]).toEqual([405, 'POST', 'invalid']);
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', ''])(
    'content type %j: 415, and nothing is judged',
    async (type) => {
      const { post, store } = await start();
      const answer = await post({ request: proved() }, { headers: { 'content-type': type } });
      expect([answer.statusCode, outcomeOf(answer)]).toEqual([415, 'invalid']);
      expect(await store.findNode('node-1')).toBeUndefined();
    },
  );
});

describe('a call is a request, and a context that may be missing', () => {
  const request = proved();
  test.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /not JSON/],
    ['a text', 'x', /not a JSON object/],
    ['null', null, /not a JSON object/],
    ['a list', [request], /not a JSON object/],
    ['no request', {}, /^request: /],
    ['an object of another kind', { request: { kind: 'Pod' } }, /^request: /],
    ['a request in text', { request: JSON.stringify(request) }, /^request: /],
    ['the bare request, as /sign takes it', request, /keys other than request and context/],
    ['one key more', { request, force: true }, /keys other than request and context/],
    ['context that is null', { request, context: null }, /^context is not/],
    ['context that is a list', { request, context: [] }, /^context is not/],
    ['context of something else', { request, context: { machine: {} } }, /^context has keys other than clusterApi$/],
  ])('%s: 400, said in words, and nothing is judged', async (_, call, message) => {
    const { post, store, log } = await start();
    const answer = await post(call, call === undefined ? { body: '' } : {});
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([400, 'invalid']);
    expect(errorIn(answer).message).toMatch(message);
    expect(await store.findNode('node-1')).toBeUndefined();
    expect(log).toMatchObject([{ level: 'info', outcome: 'invalid', status: 400 }]);
  });

  test.each([
    ['a key of every object', `{"__proto__":{},"request":${JSON.stringify(request)}}`],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['a hundred levels', `{"request":${'['.repeat(101)}${']'.repeat(101)}}`],
  ])('%s: 400', async (_, body) => {
    const { post } = await start();
    expect((await post({}, { body })).statusCode).toBe(400);
  });

  test.each([{}, contextOf([]), contextOf([machineObject({ deleting: true })])])(
    'without attestation.machines no context changes anything: %j',
    async (context) => {
      const { post } = await start();
      expect(verdictIn(await post({ request: proved(), context })).decision).toBe('approve');
    },
  );

  test('a missing content type and one with parameters are JSON', async () => {
    const { post } = await start();
    for (const headers of [{}, { 'Content-Type': 'application/json; charset=utf-8' }])
      expect((await post({ request: proved() }, { headers })).statusCode).toBe(200);
  });
});

test('what was concluded once stands, whatever is said later of the Machine', async () => {
  const { post } = await start({ settings: { clusterApi } });
  const request = proved();
  const denied = await post({ request, context: contextOf([machineObject({ deleting: true })]) });
  expect(verdictIn(denied)).toMatchObject({ decision: 'deny', reason: 'MachineDeleting' });
  expect((await post({ request, context: contextOf() })).body).toBe(denied.body);
});

describe('a verdict', () => {
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-countersign-outcome': 'verdict',
  };

  test('approve, with the machine it is for; again the same, and the log says so', async () => {
    const { post, log } = await start();
    const request = proved();
    const answer = await post({ request });
    expect(answer).toMatchObject({ statusCode: 200, headers });
    expect(Object.keys(answer.headers).toSorted()).toEqual(Object.keys(headers).toSorted());
    expect(verdictIn(answer)).toEqual({
      decision: 'approve',
      reason: 'Attested',
      message: 'attested as null#m1',
      annotations: { 'countersign.dev/identity': 'null#m1', 'countersign.dev/evidence': 'null/v1' },
    });
    expect((await post({ request })).body).toBe(answer.body);
    const { uid, name } = request.metadata;
    const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
    const about = { level: 'info', outcome: 'verdict', status: 200, cluster: 'demo', uid, name, signerName };
    const told = { decision: 'approve', identity: 'null#m1', evidence: 'null/v1', durationMilliseconds: 0 };
    expect(log).toEqual([
      { ...about, ...told, repeat: false },
      { ...about, ...told, repeat: true },
    ]);
  });

  test('approve, for a signer without attestation', async () => {
    const { post, store } = await start();
    const request = requestOf({
      signerName: 'kubernetes.io/kube-apiserver-client',
      spec: { subject: { CN: 'jane' } },
    });
    expect(verdictIn(await post({ request }))).toEqual({
      decision: 'approve',
      reason: 'Unattested',
      message: 'this signer demands no proof',
      annotations: {},
    });
    expect(await store.findVerdict(request.metadata.uid, Date.now())).toBeUndefined();
  });

  test('approve in audit mode, with what would be refused', async () => {
    const { post, log } = await start({ attestation: { mode: 'audit' } });
    const verdict = verdictIn(await post({ request: requestOf() }));
    expect(verdict).toMatchObject({ decision: 'approve', reason: 'Audited', annotations: {} });
    expect(verdict.message).toMatch(/^audit mode: it would be refused: the request brings no evidence/);
    expect(log).toMatchObject([{ level: 'info', decision: 'approve', wouldRefuse: ['AttestationMissing'] }]);
  });

  test('approve in audit mode, when it cannot be judged now', async () => {
    const { post, log, platform } = await start({ attestation: { mode: 'audit' } });
    platform.machines.set('m1', { nodeNames: ['node-1'], down: new Error('away') });
    expect(verdictIn(await post({ request: proved() }))).toMatchObject({ decision: 'approve', reason: 'Audited' });
    expect(log).toMatchObject([{ decision: 'approve', wouldRefuse: 'unjudged' }]);
  });

  test('deny, all violations in order, the first one’s code as reason', async () => {
    const { post, log } = await start();
    const spec = { subject: { O: ['system:masters'], CN: 'admin' }, sans: { dns: ['x'] } };
    const verdict = verdictIn(await post({ request: proved({ spec }) }));
    expect(verdict).toMatchObject({ decision: 'deny', reason: 'SignerValidationFailure', annotations: {} });
    expect(verdict.message).toMatch(/^subject organization is not system:nodes; /);
    expect(log).toMatchObject([{ level: 'info', outcome: 'verdict', status: 200, decision: 'deny', repeat: false }]);
    expect(log[0]?.codes?.length).toBeGreaterThan(1);
    expect(log[0]).not.toHaveProperty('identity');
  });

  test('deny, with the versions that are taken', async () => {
    const { post } = await start();
    expect(verdictIn(await post({ request: proved({ version: 'null/v9' }) }))).toMatchObject({
      decision: 'deny',
      reason: 'AttestationVersion',
      annotations: { 'countersign.dev/supported-attestation-versions': 'null/v2,null/v1' },
    });
  });

  test('challenge, as a provider may one day ask for it', () => {
    const violations = [violation('AttestationChallenge', 'answer this')] as const;
    const annotations = { 'countersign.dev/challenge': 'x' };
    const answer = verdictAnswer({ kind: 'challenge', violations, annotations, repeat: false });
    expect(answer).toMatchObject({ statusCode: 200, headers });
    const told = { decision: 'challenge', reason: 'AttestationChallenge', message: 'answer this' };
    expect(verdictIn(answer)).toEqual({ ...told, annotations });
  });

  const condition = (type: string) => ({ status: { conditions: [{ type, status: 'True' }] } });
  test.each([
    ['Denied', condition('Denied')],
    ['Failed', condition('Failed')],
    ['AlreadyIssued', { status: { certificate: 'eA==' } }],
  ])('ignore: %s', async (reason, change) => {
    const { post, log, store } = await start();
    const verdict = verdictIn(await post({ request: { ...proved(), ...change } }));
    expect(verdict).toEqual({ decision: 'ignore', reason, message: expect.any(String) as string, annotations: {} });
    expect(log).toMatchObject([{ level: 'info', outcome: 'verdict', decision: 'ignore', why: reason }]);
    expect(await store.findNode('node-1')).toBeUndefined();
  });

  test('ignore: another’s signer', async () => {
    const { post } = await start();
    const request = proved({ signerName: 'example.com/theirs' });
    expect(verdictIn(await post({ request }))).toMatchObject({ decision: 'ignore', reason: 'UnknownSigner' });
  });

  test('of an approved request is the same as of a pending one', async () => {
    const { post } = await start();
    const key = newKey('P-256');
    const pending = proved({ key });
    const approved = { ...pending, ...condition('Approved') };
    expect((await post({ request: approved })).body).toBe((await post({ request: pending })).body);
  });

  test('of other content under the same UID discloses nothing of the first', async () => {
    const { post } = await start();
    const uid = randomUUID();
    await post({ request: proved({ uid }) });
    const other = await post({ request: requestOf({ uid, node: 'node-2', evidence: m1 }) });
    expect(verdictIn(other)).toMatchObject({ decision: 'deny', reason: 'UidReused', annotations: {} });
    expect(other.body).not.toMatch(/m1|node-1/);
  });
});

describe('size', () => {
  test('an object as large as /sign takes it is judged, with its context around it', async () => {
    const { post } = await start();
    const request = { ...proved(), filling: '' };
    request.filling = 'x'.repeat(maxObjectBytes - JSON.stringify(request).length);
    const addresses = Array<string>(64).fill('x'.repeat(512));
    const machines = [
      machineObject({ addresses }),
      ...Array.from({ length: 7 }, () => machineObject({ name: 'x'.repeat(253) })),
    ];
    const context = contextOf(machines, {
      deleting: false,
      authorizedAttestors: Array<string>(64).fill('x'.repeat(253)),
    });
    expect(verdictIn(await post({ request, context })).decision).toBe('approve');
  });

  test('a larger call: 413, final, before it is parsed', async () => {
    const { post } = await start();
    const answer = await post({}, { body: '['.repeat(maxCallBytes + 1) });
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([413, 'refused']);
    expect(errorIn(answer).details?.causes.map(({ reason }) => reason)).toEqual(['RequestTooLarge']);
  });

  test('a spec.request over 128 KiB is denied', async () => {
    const { post } = await start();
    const verdict = verdictIn(await post({ request: requestOf({ request: 'x'.repeat(131_073) }) }));
    expect(verdict).toMatchObject({ decision: 'deny', reason: 'RequestTooLarge' });
  });
});

describe('busy: nothing was concluded, and the next delivery may well be answered', () => {
  test.each([
    ['a service throttles', new ThrottledError('slow'), 'Throttled', 'info'],
    ['a service is unreachable', new Error('away'), 'Unavailable', 'warn'],
    ['something is set up wrongly', new MisconfigurationError('no right'), 'Internal', 'error'],
    ['a defect of ours', new TypeError('x is not a function'), 'Internal', 'error'],
  ])('%s', async (_, error, why, level) => {
    const { post, log, platform } = await start();
    platform.machines.set('m1', { nodeNames: ['node-1'], down: error });
    const request = proved();
    const answer = await post({ request });
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([503, 'busy']);
    const body = errorIn(answer);
    expect(body).toMatchObject({ reason: 'ServiceUnavailable', code: 503 });
    expect(body.details?.causes.map(({ reason }) => reason)).toEqual([why]);
    expect((body as { retryAfterSeconds?: number }).retryAfterSeconds).toBeOneOf([1, 2, 3, 4]);
    // With that header one client calls 55 times in a row. And what is wrong is the operator's to know.
    expect(Object.keys(answer.headers)).not.toContain('retry-after');
    expect(answer.body).not.toContain(error.message);
    expect(log).toMatchObject([
      { level, outcome: 'busy', status: 503, why, error: { name: error.name, message: error.message } },
    ]);
    platform.machines.set('m1', { nodeNames: ['node-1'] });
    expect(verdictIn(await post({ request })).decision).toBe('approve');
  });

  test('what stands behind a cluster cannot be had', async () => {
    const world = await start();
    const { post } = endpointOf(world, { attestation: () => Promise.reject(new Error('no table')) });
    expect(outcomeOf(await post({ request: proved() }))).toBe('busy');
  });

  test('the store fails before or after its write: the same answer in the end, and one claim', async () => {
    const world = await start();
    for (const when of ['before', 'after'] as const) {
      const store: World['store'] = {
        ...world.store,
        async claim(...claimed) {
          if (when === 'after') await world.store.claim(...claimed);
          throw new Error('lost');
        },
      };
      const request = proved({ by: when === 'before' ? 'bootstrap' : 'node' });
      expect(outcomeOf(await endpointOf({ ...world, store }).post({ request }))).toBe('busy');
      expect(verdictIn(await world.post({ request })).decision).toBe('approve');
    }
    expect(await world.store.findNode('node-1')).toMatchObject({ uses: 2 });
  });

  test('a path that was never ours is logged without a line break in it', async () => {
    const { post, log } = await start();
    await post({}, { path: `${attestPath}\n{"level":"error"}` });
    expect(log[0]?.path).not.toContain('\n');
  });
});
