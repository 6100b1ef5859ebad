/** The attest function's two kinds of event: of a front door, which names its caller, and of sign, without fields of HTTP. */
import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { attestCall, readAttestCall } from '../../../../adapters/lambda/attest-call.ts';
import { checkCaller } from '../../../../adapters/lambda/caller.ts';
import type { HttpAnswer } from '../../../../adapters/lambda/http.ts';
import type { CallLogEntry } from '../../../../adapters/lambda/log.ts';
import type { JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import { createAttestService } from '../../../../lambdas/attest/service.ts';
import { calledBy, contextIn, iamAuthorizer, sessionArn } from '../../../harness/lambda/callers.ts';
import { eventFixture, outcomeOf } from '../sign/stack.ts';
import { attestPath, endpointOf } from './endpoint.ts';
import { createWorld, requestOf } from './world.ts';
import type { World } from './world.ts';

const role = 'countersign-demo-caller';
const check = checkCaller({ cluster: 'demo', role });
const relay = iamAuthorizer(sessionArn(role));
const stranger = iamAuthorizer(sessionArn('deployer', undefined, 'alice'));
const httpEvent = (request: object) =>
  eventFixture({ method: 'POST', path: attestPath, body: JSON.stringify({ request }) });

describe('finding 2: attest, by its front door', () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld();
    world.platform.machines.set('m1', { nodeNames: ['node-1'], addresses: [] });
  });
  afterEach(() => world.close());
  const proved = () => requestOf({ evidence: { machine: 'm1' } });

  test('judges for the caller role', async () => {
    const { handler } = endpointOf(world, { caller: check });
    expect(outcomeOf(await handler(calledBy(httpEvent(proved()), relay), contextIn()))).toBe('verdict');
  });

  test('answers 403 to another role and to no role, records nothing, and logs who it was', async () => {
    const { handler, log } = endpointOf(world, { caller: check });
    const object = proved();
    for (const event of [calledBy(httpEvent(object), stranger), httpEvent(object), object, {}, null]) {
      const answer = await handler(event as never, contextIn());
      expect([answer.statusCode, outcomeOf(answer)]).toEqual([403, 'forbidden']);
    }
    expect(log.map(({ level, caller, callerPrincipal }) => [level, caller, callerPrincipal])).toEqual([
      [
        'warn',
        'arn:aws:sts::111122223333:assumed-role/deployer/alice',
        'arn:aws:sts::111122223333:assumed-role/deployer',
      ],
      ...Array.from({ length: 4 }, () => ['warn', 'unnamed', 'unnamed']),
    ]);
    expect(await world.store.findVerdict(object.metadata.uid, world.clock.now)).toBeUndefined();
  });

  test('judges for sign, by the same rules and into the same record', async () => {
    const { call, log } = endpointOf(world, { caller: check });
    const object = proved();
    expect(await call(attestCall('demo', object))).toEqual({ countersign: 'attest/v1', outcome: 'verdict' });
    expect(await world.store.findVerdict(object.metadata.uid, world.clock.now)).toBeDefined();
    expect(log).toMatchObject([{ outcome: 'verdict', decision: 'approve' }]);
  });

  test('logs which invocation judged, by both ways', async () => {
    const { call, handler, log } = endpointOf(world, { caller: check });
    const object = proved();
    await call(attestCall('demo', object), { ...contextIn(), awsRequestId: 'invocation-1' });
    await handler(httpEvent(object), { ...contextIn(), awsRequestId: 'invocation-2' });
    expect(log.map(({ uid, lambdaRequestId }) => [uid, lambdaRequestId])).toEqual([
      [object.metadata.uid, 'invocation-1'],
      // A caller that is refused is not asked what it posts.
      [undefined, 'invocation-2'],
    ]);
  });

  test('tells sign what keeps it from a verdict', async () => {
    const { call } = endpointOf(world, { caller: check });
    expect(await call(attestCall('other', proved()))).toMatchObject({ outcome: 'invalid' });
    expect(await call(attestCall('demo', { kind: 'Pod' }))).toMatchObject({ outcome: 'invalid' });
    const padded = { ...proved(), padding: 'x'.repeat(2_000_000) };
    expect(await call(attestCall('demo', padded))).toMatchObject({ outcome: 'refused' });
    let deep: JsonObject = {};
    for (let i = 0; i < 200; i++) deep = { deep };
    expect(await call(attestCall('demo', { ...proved(), deep }))).toMatchObject({ outcome: 'invalid' });
    for (let i = 0; i < 20_000; i++) deep = { deep };
    expect(await call(attestCall('demo', { ...proved(), deep }))).toMatchObject({ outcome: 'invalid' });
    const broken = endpointOf(world, { attestation: () => Promise.reject(new Error('away')) });
    expect(await broken.call(attestCall('demo', proved()))).toMatchObject({ outcome: 'busy' });
  });
});

describe('finding 2: sign’s own call of attest', () => {
  const call = attestCall('demo', { kind: 'CertificateSigningRequest' });

  test('is what its schema says, and nothing else', () => {
    expect(readAttestCall(JSON.parse(JSON.stringify(call)))).toEqual(call);
    for (const event of [
      { ...call, countersign: 'attest/v2' },
      { ...call, countersign: undefined },
      { ...call, cluster: 1 },
      { ...call, request: 'x' },
      { ...call, request: [] },
      { ...call, request: null },
      { ...call, context: {} },
      { ...call, requestContext: {} },
      { ...call, rawPath: attestPath },
      { ...call, headers: {} },
      { ...call, body: '' },
      httpEvent({}),
      [],
      null,
      'attest/v1',
    ])
      expect(readAttestCall(event)).toBeUndefined();
  });

  test('with a field of HTTP is HTTP, and has to name its caller', async () => {
    const log: CallLogEntry[] = [];
    const world = await createWorld();
    const serve = createAttestService(
      world.cluster,
      { attestationsTable: 'none' },
      {
        caller: check,
        dynamodb: new DynamoDBClient({ region: 'eu-central-1' }),
        aws: undefined as never,
        challengeKey: undefined as never,
        now: Date.now,
        randomBytes,
        log: (entry) => log.push(entry),
      },
    );
    world.close();
    const mixed = { ...httpEvent({}), ...attestCall('demo', requestOf()) };
    const answer: HttpAnswer = await serve(mixed, contextIn());
    expect([answer.statusCode, outcomeOf(answer)]).toEqual([403, 'forbidden']);
    expect(log).toMatchObject([{ caller: 'unnamed' }]);
  });
});
