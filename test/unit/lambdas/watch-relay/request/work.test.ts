import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../../../core/ports/kubernetes-api.ts';
import type { SignAnswer } from '../../../../../core/ports/signing-endpoint.ts';
import type { SignerPolicy } from '../../../../../lambdas/watch-relay/settings/options.ts';
import { createAskedOnce } from '../../../../../lambdas/watch-relay/request/asked-once.ts';
import { relayRequest } from '../../../../../lambdas/watch-relay/request/work.ts';
import { approved, caPem, denied, goodPem, object, otherPem, signerName } from '../fixtures.ts';
import { createSimulatedApi } from '../simulated-api.ts';
import type { Fault } from '../simulated-api.ts';
import { createSimulatedEndpoint, issued, refusal } from '../simulated-endpoint.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';

/** Nothing is attested, and another approver decides. */
const undecided = { policies: new Map<string, SignerPolicy>(), asked: createAskedOnce(1) };

const failed = { ...approved, type: 'Failed' };

interface Case {
  readonly answer?: SignAnswer | Error;
  /** What the calls meet, in order; the rest goes well. */
  readonly puts?: readonly (Fault | undefined)[];
  readonly gets?: readonly (Fault | undefined)[];
  /** Happens while the sign function works. */
  readonly meanwhile?: (server: ReturnType<typeof createSimulatedApi>) => void;
  readonly conditions?: readonly JsonObject[];
  readonly passedBy?: boolean;
}

/** One try of one request. */
async function attempt({ answer = issued, puts = [], gets = [], meanwhile, conditions, passedBy = true }: Case) {
  const clock = createVirtualClock();
  const faults = { updateStatus: [...puts], get: [...gets] } as Partial<Record<string, (Fault | undefined)[]>>;
  const server = createSimulatedApi({ clock, fault: (verb) => faults[verb]?.shift() });
  server.create(object('r', conditions === undefined ? {} : { conditions }));
  const given = server.find('r');
  const endpoint = createSimulatedEndpoint({
    clock,
    answer: () => {
      meanwhile?.(server);
      return answer;
    },
  });
  const key = { uid: 'uid-r', name: 'r', signerName };
  const ports = { ...undecided, api: server.api, signer: endpoint.endpoint, clock };
  const running = relayRequest(key, passedBy ? given : undefined, ports, new AbortController().signal);
  let ended = false;
  void running.then(() => (ended = true));
  await clock.until(() => ended);
  const result = await running;
  const status = server.find('r')?.status as { certificate?: string; conditions?: readonly JsonObject[] } | undefined;
  return {
    result: result.kind === 'done' ? result.end : result.cause,
    full: result,
    server,
    signCalls: endpoint.total(),
    puts: server.count('updateStatus'),
    gets: server.count('get'),
    certificate: Buffer.from(status?.certificate ?? '', 'base64').toString('utf8'),
    conditions: status?.conditions ?? [],
  };
}

describe('the straight way', () => {
  test('one sign call, one PUT, nothing else, and only the certificate is new', async () => {
    const done = await attempt({});
    expect(done).toMatchObject({ result: 'issued', signCalls: 1, puts: 1, gets: 0, certificate: goodPem });
    expect(done.conditions).toEqual([approved]);
    expect(done.server.crimes).toEqual([]);
  });

  test('the object is read if it did not come by', async () => {
    expect(await attempt({ passedBy: false })).toMatchObject({ result: 'issued', puts: 1, gets: 1 });
  });

  test('a refusal becomes a Failed condition with the first code and all messages, beside those that were there', async () => {
    const other = { ...approved, type: 'example.com/Seen', status: 'Unknown' };
    const done = await attempt({ answer: refusal, conditions: [other, approved] });
    expect(done).toMatchObject({ result: 'refused', signCalls: 1, puts: 1, gets: 0, certificate: '' });
    expect(done.conditions).toMatchObject([
      other,
      approved,
      {
        type: 'Failed',
        status: 'True',
        reason: 'SignerValidationFailure',
        message: 'subject organization is not system:nodes; RSA 1024 is too short',
        lastUpdateTime: '2026-01-01T00:00:00Z',
      },
    ]);
    expect(done.server.crimes).toEqual([]);
  });
});

test.each<[string, readonly JsonObject[]]>([
  ['pending', []],
  ['denied', [denied]],
  ['denied after approval', [approved, denied]],
  ['failed', [approved, failed]],
  ['approved with status False', [{ ...approved, status: 'False' }]],
])('a request that is %s is not even shown to the sign function', async (_, conditions) => {
  const result = conditions.length === 0 ? 'left' : 'settled';
  for (const passedBy of [true, false])
    expect(await attempt({ conditions, passedBy })).toMatchObject({ result, signCalls: 0, puts: 0 });
});

test.each<[string, SignAnswer, string]>([
  ['ignored', { kind: 'ignored' }, 'ignored'],
  ['invalid', { kind: 'invalid' }, 'invalid'],
  ['busy', { kind: 'busy', retryAfterSeconds: 3 }, 'EndpointBusy'],
  ['throttled', { kind: 'busy', why: 'Throttled' }, 'EndpointBusy'],
  ['without what it needs', { kind: 'busy', why: 'Unavailable' }, 'EndpointFailing'],
  ['broken', { kind: 'busy', why: 'Internal' }, 'EndpointFailing'],
  ['without its function', { kind: 'functionFailed', status: 500 }, 'EndpointFunctionFailed'],
  ['at it already', { kind: 'busy', why: 'InProgress' }, 'InProgress'],
  ['403', { kind: 'unauthorized', message: 'HTTP 403' }, 'EndpointUnauthorized'],
  ['a proxy', { kind: 'unexpected', status: 404, message: 'not ours' }, 'EndpointUnexpected'],
  ['a certificate for another key', { kind: 'issued', certificatePem: otherPem }, 'CertificateUnusable'],
  ['a CA certificate', { kind: 'issued', certificatePem: caPem }, 'CertificateUnusable'],
  ['no certificate', { kind: 'issued', certificatePem: 'thank you for your patience' }, 'CertificateUnusable'],
])('the answer of %s writes nothing', async (_, answer, result) => {
  expect(await attempt({ answer })).toMatchObject({ result, puts: 0, signCalls: 1 });
});

test('busy carries on what the far side asks for', async () => {
  const { full } = await attempt({ answer: { kind: 'busy', retryAfterSeconds: 3 } });
  expect(full).toMatchObject({ kind: 'retry', afterSeconds: 3 });
});

test('a status that is accepted and not stored is no success', async () => {
  const clock = createVirtualClock();
  const server = createSimulatedApi({ clock });
  server.create(object('r'));
  const given = server.find('r')!;
  const api = { ...server.api, updateStatus: () => Promise.resolve({ ok: true as const, value: given }) };
  for (const answer of [issued, refusal]) {
    const { endpoint: signer } = createSimulatedEndpoint({ clock, answer: () => answer });
    const key = { uid: 'uid-r', name: 'r', signerName };
    const running = relayRequest(key, given, { ...undecided, api, signer, clock }, new AbortController().signal);
    await clock.advance(100);
    expect(await running).toMatchObject({ kind: 'retry', cause: 'ApiRejected' });
  }
});

test('no answer is tried again', async () => {
  expect(await attempt({ answer: new Error('socket hang up') })).toMatchObject({
    result: 'EndpointUnreachable',
    puts: 0,
  });
});

describe('the write meets', () => {
  test.each<[string, Case, object]>([
    ['a lost answer, not done', { puts: ['before'] }, { result: 'issued', puts: 2, gets: 1 }],
    ['a lost answer, done', { puts: ['after'] }, { result: 'issued', puts: 1, gets: 1 }],
    ['a lost answer of a refusal, done', { puts: ['after'], answer: refusal }, { result: 'refused', puts: 1, gets: 1 }],
    ['a lost answer of a refusal, not done', { puts: ['before'], answer: refusal }, { result: 'refused', puts: 2 }],
    [
      'lost answers of PUT and GET',
      { puts: ['after'], gets: ['before'] },
      { result: 'ApiUnreachable', puts: 1, gets: 1 },
    ],
    ['an outage', { puts: ['before', 'before', 'before'] }, { result: 'ApiUnreachable', puts: 3, gets: 3 }],
    ['throttling', { puts: ['throttled'] }, { result: 'ApiBusy', puts: 1, gets: 0 }],
    ['a missing right', { puts: ['Forbidden'] }, { result: 'ApiForbidden', puts: 1, gets: 0 }],
    ['an expired login', { puts: ['Unauthorized'] }, { result: 'ApiForbidden', puts: 1 }],
    ['a rejection', { puts: ['Invalid'] }, { result: 'ApiRejected', puts: 1, gets: 1, certificate: '' }],
    [
      'an object that does not fit',
      { puts: ['TooLarge'] },
      { result: 'ObjectTooLarge', puts: 1, gets: 0, certificate: '' },
    ],
    ['nothing but conflicts', { puts: ['Conflict', 'Conflict', 'Conflict'] }, { result: 'ApiConflict', puts: 3 }],
  ])('%s', async (_, options, expected) => {
    const done = await attempt(options);
    expect(done).toMatchObject({ ...expected, signCalls: 1 });
    expect(done.server.crimes).toEqual([]);
  });

  test('a harmless change: judged anew, written without asking again', async () => {
    const done = await attempt({
      meanwhile: (server) =>
        server.change('r', (old) => ({ ...old, metadata: { ...old.metadata, labels: { a: 'b' } } })),
    });
    expect(done).toMatchObject({ result: 'issued', puts: 2, gets: 1, signCalls: 1, certificate: goodPem });
    expect(done.server.find('r')?.metadata['labels']).toEqual({ a: 'b' });
  });

  test.each([issued, refusal])('a denial meanwhile: what was $kind is thrown away', async (answer) => {
    const done = await attempt({ answer, meanwhile: (server) => server.addCondition('r', denied) });
    expect(done).toMatchObject({ result: 'settled', puts: 1, certificate: '', conditions: [approved, denied] });
    expect(done.server.crimes).toEqual([]);
  });

  test.each([issued, refusal])('another signer that was faster: its certificate stays ($kind)', async (answer) => {
    const theirs = Buffer.from(otherPem).toString('base64');
    const done = await attempt({
      answer,
      meanwhile: (server) => server.change('r', (old) => ({ ...old, status: { ...old.status, certificate: theirs } })),
    });
    expect(done).toMatchObject({ result: 'settled', certificate: otherPem, conditions: [approved] });
  });

  test('a deletion', async () => {
    expect(await attempt({ meanwhile: (server) => server.delete('r') })).toMatchObject({
      result: 'gone',
      puts: 1,
      gets: 0,
    });
  });

  test('a later request under the same name: it is left alone', async () => {
    const done = await attempt({
      meanwhile: (server) => {
        server.delete('r');
        server.create(object('r', { uid: 'uid-later' }));
      },
    });
    expect(done).toMatchObject({ result: 'gone', certificate: '' });
  });
});

test.each<[Fault | undefined, string]>([
  ['NotFound', 'gone'],
  ['before', 'ApiUnreachable'],
  ['throttled', 'ApiBusy'],
  ['Forbidden', 'ApiForbidden'],
  ['TooLarge', 'ObjectTooLarge'],
])('reading meets %s: %s', async (fault, result) => {
  expect(await attempt({ passedBy: false, gets: [fault] })).toMatchObject({ result, signCalls: 0 });
});
