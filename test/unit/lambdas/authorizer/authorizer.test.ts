import { describe, expect, test } from 'vitest';
import { createAuthorizer } from '../../../../lambdas/authorizer/authorizer.ts';
import type { AuthorizerEvent, AuthorizerLogEntry } from '../../../../lambdas/authorizer/authorizer.ts';
import type { BundledAccess } from '../../../../core/configuration/bundled-configuration.ts';
import { access, eventOf } from './case.ts';
import { cases } from './cases.ts';
import { cluster, jwks, makeToken, now, otherSubject, subject } from './tokens.ts';

async function ask(event: AuthorizerEvent, rules: BundledAccess | undefined) {
  const log: AuthorizerLogEntry[] = [];
  const authorizer = createAuthorizer(rules, {
    now: () => now,
    fetchJwks: () => Promise.reject(new Error('given keys are not fetched')),
    log: (entry) => log.push(entry),
  });
  return { answer: await authorizer(event), log };
}

describe('with the keys given', () => {
  test.each(cases)('$name', async ({ event, access: rules, reason, subject: who }) => {
    const { answer, log } = await ask(event, rules);
    expect(log).toHaveLength(1);
    expect(log[0]?.reason).toBe(reason);
    expect(log[0]?.authorized).toBe(reason === undefined);
    // A refused caller is told nothing at all; context would reach him in the access log at best.
    expect(answer).toEqual(
      reason === undefined ? { isAuthorized: true, context: { cluster, subject: who } } : { isAuthorized: false },
    );
    const said = ['level', 'authorized', 'cluster', 'reason', 'subject', 'requestId', 'detail', 'trouble', 'alarm'];
    expect(said).toEqual(expect.arrayContaining(Object.keys(log[0] ?? {})));
    const told = JSON.stringify(log);
    const header = event.headers?.['authorization'];
    for (const part of typeof header === 'string' ? header.split(/[ .,]/) : [])
      if (part.length > 20) expect(told).not.toContain(part);
  });
});

test('without rules every caller is refused', async () => {
  const { answer, log } = await ask(eventOf(makeToken()), undefined);
  expect(answer).toEqual({ isAuthorized: false });
  expect(log).toMatchObject([{ level: 'error', reason: 'NotConfigured', authorized: false }]);
});

test('a fault of ours is a no, and its message stays here', async () => {
  const token = makeToken();
  const rules = { ...access, jwt: { ...access.jwt } };
  Object.defineProperty(rules.jwt, 'subjects', {
    get: () => {
      throw new TypeError(`secret ${token}`);
    },
  });
  const { answer, log } = await ask(eventOf(token), rules);
  expect(answer).toEqual({ isAuthorized: false });
  expect(log).toMatchObject([{ level: 'error', reason: 'Internal', detail: 'TypeError' }]);
  expect(JSON.stringify(log)).not.toContain('secret');
});

test.each([null, undefined, 'x', {}, { version: '2.0', type: 'REQUEST', rawPath: 1, headers: 'x' }])(
  'an event that is %j is a no',
  async (event) => {
    const { answer } = await ask(event as AuthorizerEvent, access);
    expect(answer).toEqual({ isAuthorized: false });
  },
);

test('the log names the caller, and a token for another cluster is refused', async () => {
  const own = await ask(eventOf(makeToken()), access);
  expect(own.log).toEqual([{ level: 'info', authorized: true, cluster, subject, requestId: 'JKJaXmPLvHcESHA=' }]);
  // The same issuer may serve two clusters' tokens only if their audiences or subjects differ: here both do.
  const theirs: BundledAccess = {
    cluster: 'test',
    jwt: { ...access.jwt, audience: 'countersign.test', subjects: [otherSubject], jwks },
  };
  const event = eventOf(makeToken(), { rawPath: '/v1/clusters/test/sign' });
  expect((await ask(event, theirs)).log).toMatchObject([{ reason: 'AudienceWrong', cluster: 'test', subject }]);
});
