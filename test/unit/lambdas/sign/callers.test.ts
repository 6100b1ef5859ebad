/** The sign handler with the check of a deployed function before it. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkCaller } from '../../../../adapters/lambda/caller.ts';
import { interpretSign } from '../../../../adapters/signing-api/answers.ts';
import { calledBy, contextIn, iamAuthorizer, sessionArn } from '../../../harness/lambda/callers.ts';
import { csrFixture, errorIn, eventFixture, outcomeOf, startStack } from './stack.ts';
import type { Stack } from './stack.ts';

const role = 'countersign-demo-caller';
const relay = iamAuthorizer(sessionArn(role));
const stranger = iamAuthorizer(sessionArn('deployer', undefined, 'alice'));

describe('finding 2: sign, called through a front door that admits every principal of the account', () => {
  let stack: Stack;
  beforeEach(async () => {
    stack = await startStack({ caller: checkCaller({ cluster: 'demo', role }) });
  });
  afterEach(() => stack.close());

  const signEvent = (object: unknown = csrFixture()) =>
    eventFixture({ method: 'POST', path: '/v1/clusters/demo/sign', body: JSON.stringify(object) });

  test('issues for the caller role', async () => {
    const answer = await stack.handler(calledBy(signEvent(), relay), contextIn());
    expect(outcomeOf(answer)).toBe('issued');
  });

  test('answers 403 to another role, signs nothing, records nothing, and logs who it was', async () => {
    const object = csrFixture();
    const answer = await stack.handler(calledBy(signEvent(object), stranger), contextIn());
    expect(answer.statusCode).toBe(403);
    expect(outcomeOf(answer)).toBe('forbidden');
    expect(errorIn(answer)).toMatchObject({
      kind: 'Status',
      reason: 'Forbidden',
      code: 403,
      error: { code: 403, status: 'PERMISSION_DENIED' },
    });
    expect(stack.signatures()).toBe(0);
    expect(stack.log).toEqual([
      {
        level: 'warn',
        outcome: 'forbidden',
        status: 403,
        durationMilliseconds: expect.any(Number) as unknown,
        cluster: 'demo',
        caller: 'arn:aws:sts::111122223333:assumed-role/deployer/alice',
        callerPrincipal: 'arn:aws:sts::111122223333:assumed-role/deployer',
        trouble: 'callers-refused',
        alarm: 'unexpected-refusals',
      },
    ]);
    // Brought by the relay, the same request is issued: nothing was spent.
    expect(outcomeOf(await stack.handler(calledBy(signEvent(object), relay), contextIn()))).toBe('issued');
  });

  test('does not read what such a caller sends', async () => {
    const event = { ...signEvent(), headers: { 'content-type': 'text/plain' }, body: '{', isBase64Encoded: false };
    expect((await stack.handler(calledBy(event, stranger), contextIn())).statusCode).toBe(403);
    expect((await stack.handler(calledBy(event, relay), contextIn())).statusCode).toBe(415);
  });

  test('answers 403 to an event without a caller, and to one that no front door sends', async () => {
    for (const event of [
      signEvent(),
      { ...csrFixture() },
      { body: JSON.stringify(csrFixture()) },
      { ...calledBy(signEvent(), relay), isBase64Encoded: 'no' },
      { ...calledBy(signEvent(), relay), headers: null },
      { ...calledBy(signEvent(), relay), headers: { a: 1 } },
      { ...calledBy(signEvent(), relay), body: {} },
      { countersign: 'attest/v1', cluster: 'demo', request: csrFixture() },
      { action: 'show' },
      {},
      null,
      'sign',
    ]) {
      const answer = await stack.handler(event as never, contextIn());
      expect([answer.statusCode, outcomeOf(answer)]).toEqual([403, 'forbidden']);
    }
    expect(stack.log.every(({ caller }) => caller === 'unnamed')).toBe(true);
    expect(stack.signatures()).toBe(0);
  });

  test('gives CA certificates and health to every caller that the front door admits: both are public', async () => {
    for (const path of ['/v1/clusters/demo/trust-bundle', '/v1/clusters/demo/healthz'])
      expect((await stack.handler(calledBy(eventFixture({ path }), stranger), contextIn())).statusCode).toBe(200);
  });

  test('leaves the request alone in the cluster: the relay reports an alarm and never a Failed condition', async () => {
    const { statusCode, headers, body } = await stack.handler(calledBy(signEvent(), stranger), contextIn());
    const read = interpretSign({ status: statusCode, headers, body: Buffer.from(body) });
    expect(read).toMatchObject({ kind: 'unauthorized' });
    expect(read.kind === 'unauthorized' ? read.message : '').toContain('neither this role nor this service account');
  });
});
