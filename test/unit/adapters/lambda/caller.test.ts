/** Which callers a deployed sign or attest function accepts for its cluster, by what the front door writes into the event. */
import { describe, expect, test } from 'vitest';
import { checkCaller } from '../../../../adapters/lambda/caller.ts';
import type { LambdaContext } from '../../../../adapters/lambda/http.ts';
import { calledBy, contextIn, iamAuthorizer, sessionArn, tokenAuthorizer } from '../../../harness/lambda/callers.ts';
import { eventFixture } from '../../lambdas/sign/stack.ts';

const role = 'countersign-demo-caller';
const subject = 'system:serviceaccount:countersign-system:countersign-watch-relay';
const both = checkCaller({ cluster: 'demo', role, subjects: [subject] });
const event = eventFixture({ method: 'POST', path: '/v1/clusters/demo/sign' });
const decide = (authorizer: unknown, context: LambdaContext | undefined = contextIn(), check = both) =>
  check(calledBy(event, authorizer), context);

describe('finding 2: the caller of a deployed function', () => {
  test('is the caller role, whatever its session is called', () => {
    for (const session of ['countersign-relay-0', 'eks-shop-relay-6f3b', 'i-0123456789abcdef0', 'a@b.example', 'xy'])
      expect(decide(iamAuthorizer(sessionArn(role, undefined, session)))).toEqual({ kind: 'allowed' });
  });

  test('is the caller role with the other blocks left empty', () => {
    const authorizer = { ...iamAuthorizer(sessionArn(role)), lambda: null, jwt: null };
    expect(decide(authorizer)).toEqual({ kind: 'allowed' });
    expect(decide({ ...tokenAuthorizer(subject), iam: null })).toEqual({ kind: 'allowed' });
    expect(decide({ iam: null, lambda: null, jwt: null })).toMatchObject({ kind: 'refused' });
  });

  test('is the caller role in the partition of the function', () => {
    const arn = sessionArn(role).replace('arn:aws:', 'arn:aws-us-gov:');
    expect(decide(iamAuthorizer(arn), contextIn(undefined, 'aws-us-gov'))).toEqual({ kind: 'allowed' });
    expect(decide(iamAuthorizer(arn))).toMatchObject({ kind: 'refused' });
  });

  test('is a service account whose token the authorizer of this cluster accepted', () => {
    expect(decide(tokenAuthorizer(subject))).toEqual({ kind: 'allowed' });
  });

  test.each<[string, unknown, string]>([
    ['another role of the account', iamAuthorizer(sessionArn('deployer')), 'assumed-role/deployer'],
    ['a role whose name begins like it', iamAuthorizer(sessionArn(`${role}-2`)), `assumed-role/${role}-2`],
    ['a role whose name ends like it', iamAuthorizer(sessionArn(`x-${role}`)), `assumed-role/x-${role}`],
    ['a session called like it', iamAuthorizer(sessionArn('other', undefined, role)), 'assumed-role/other'],
    ['a session with a slash', iamAuthorizer(sessionArn(role, undefined, 'a/b')), `assumed-role/${role}`],
    [
      'that role of another account',
      iamAuthorizer(sessionArn(role, '999999999999')),
      `arn:aws:sts::999999999999:assumed-role/${role}`,
    ],
    ['that role, with another account beside it', iamAuthorizer(sessionArn(role), '999999999999'), role],
    ['a user of its name', iamAuthorizer(`arn:aws:iam::111122223333:user/${role}`), `user/${role}`],
    ['the role itself, which never calls', iamAuthorizer(`arn:aws:iam::111122223333:role/${role}`), `role/${role}`],
    ['the account', iamAuthorizer('arn:aws:iam::111122223333:root'), ':root'],
    [
      'an instance by its own role',
      iamAuthorizer('arn:aws:sts::111122223333:assumed-role/aws:ec2-instance/i-0123456789abcdef0'),
      'assumed-role/aws:ec2-instance',
    ],
    ['a federated user', iamAuthorizer(`arn:aws:sts::111122223333:federated-user/${role}`), 'federated-user'],
    ['another service account', tokenAuthorizer(`${subject}-2`), `${subject}-2`],
    ['the token of another cluster', tokenAuthorizer(subject, 'other'), subject],
    ['a role and a token at once', { ...iamAuthorizer(sessionArn(role)), ...tokenAuthorizer(subject) }, role],
    ['a kind of authorizer that no stack of ours has', { ...iamAuthorizer(sessionArn(role)), jwt: {} }, role],
    ['claims of a JWT authorizer', { jwt: { claims: { sub: subject } } }, 'unnamed'],
    ['no caller', undefined, 'unnamed'],
    ['null', null, 'unnamed'],
    ['a text', 'arn:aws:sts::111122223333:assumed-role/countersign-demo-caller/x', 'unnamed'],
    ['an empty block', { iam: {} }, 'unnamed'],
    ['a block that is null', { iam: null }, 'unnamed'],
    ['a list of ARNs', { iam: { userArn: [sessionArn(role)], accountId: '111122223333' } }, 'unnamed'],
    ['a subject list', { lambda: { cluster: 'demo', subject: [subject] } }, 'unnamed'],
  ])('is not %s', (_, authorizer, named) => {
    const decision = decide(authorizer);
    expect(decision).toMatchObject({ kind: 'refused' });
    if (decision.kind === 'refused') expect(decision.principal).toContain(named);
  });

  test('is refused where Lambda does not name the account of the function', () => {
    const authorizer = iamAuthorizer(sessionArn(role));
    expect(both(calledBy(event, authorizer), undefined)).toMatchObject({ kind: 'refused' });
    expect(decide(authorizer, { invokedFunctionArn: 'countersign-demo-sign' })).toMatchObject({ kind: 'refused' });
  });

  test('comes only by the ways that access has', () => {
    const byRole = checkCaller({ cluster: 'demo', role });
    expect(decide(iamAuthorizer(sessionArn(role)), contextIn(), byRole)).toEqual({ kind: 'allowed' });
    expect(decide(tokenAuthorizer(subject), contextIn(), byRole)).toMatchObject({ kind: 'refused' });
    const byToken = checkCaller({ cluster: 'demo', subjects: [subject] });
    expect(decide(tokenAuthorizer(subject), contextIn(), byToken)).toEqual({ kind: 'allowed' });
    expect(decide(iamAuthorizer(sessionArn(role)), contextIn(), byToken)).toMatchObject({ kind: 'refused' });
    expect(decide(iamAuthorizer(sessionArn('undefined')), contextIn(), byToken)).toMatchObject({ kind: 'refused' });
  });

  test('is named in full for the log, and without the session for the metric', () => {
    const session = 'alice@example.com';
    expect(decide(iamAuthorizer(sessionArn('deployer', undefined, session)))).toEqual({
      kind: 'refused',
      caller: `arn:aws:sts::111122223333:assumed-role/deployer/${session}`,
      principal: 'arn:aws:sts::111122223333:assumed-role/deployer',
    });
  });

  test('is not named in words of a forged event: line ends, other characters, length', () => {
    for (const forged of [
      `${sessionArn('deployer')}\n{"level":"error"}`,
      `${sessionArn('deployer')}\u202e`,
      'x'.repeat(10_000),
      `arn:aws:sts::111122223333:assumed-role/${'x'.repeat(10_000)}/y`,
    ])
      expect(decide(iamAuthorizer(forged))).toMatchObject({ kind: 'refused', caller: 'unnamed', principal: 'unnamed' });
    const long = decide(iamAuthorizer(sessionArn('a'.repeat(300))));
    expect(long.kind === 'allowed' ? 0 : long.caller.length).toBe(256);
  });
});
