import { AssumeRoleCommand, GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { request as httpsRequest } from 'node:https';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { presign, type PresignOptions } from '../../../harness/fake-aws/protocol/presign.ts';
import { connectSts, sendTo } from '../../../harness/fake-aws/sts-endpoint.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';

const region = 'eu-central-1';
const host = `sts.${region}.amazonaws.com`;
const id = 'csr-attest/v1/prod/0a1b';
let now = Date.parse('2026-03-01T12:00:00Z');
const aws = createFakeAws({ now: () => now });
const machine = aws.launch({ region, roleName: 'node' });
const other = aws.launch({ region });
const credential = aws.identityCredential(machine.instanceId);

let sts: FakeSts;
beforeAll(async () => (sts = await startFakeSts({ aws })));
afterEach(() => sts.mend());
afterAll(() => sts.close());

const usual = (): PresignOptions => ({ credential, region, id, at: now });

/** Sends a presigned URL as STS gets it from us. */
function ask(url: string, headers: Record<string, string> = {}, method = 'GET', body?: string) {
  const { host: named, pathname, search } = new URL(url);
  const sent = { accept: 'application/json', 'x-k8s-aws-id': id, ...headers };
  const path = pathname + search;
  return sendTo(sts.port, { method, host: named, path, headers: sent, ...(body === undefined ? {} : { body }) });
}

describe('GetCallerIdentity of the fake STS', () => {
  test('names the instance by its identity role, in JSON of AWS’s shape', async () => {
    const { status, contentType, body } = await ask(presign(usual()));
    expect({ status, contentType }).toEqual({ status: 200, contentType: 'application/json' });
    const identity = {
      Account: '111122223333',
      Arn: `arn:aws:sts::111122223333:assumed-role/aws:ec2-instance/${machine.instanceId}`,
      UserId: `111122223333:aws:ec2-instance:${machine.instanceId}`,
    };
    expect(JSON.parse(body)).toEqual({
      GetCallerIdentityResponse: {
        GetCallerIdentityResult: identity,
        ResponseMetadata: { RequestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown },
      },
    });
    expect(sts.calls.at(-1)).toEqual({
      action: 'GetCallerIdentity',
      signedBy: credential.accessKeyId,
      region,
      host,
      presigned: true,
      signedHeaders: ['host', 'x-k8s-aws-id'],
      k8sAwsId: id,
      parameters: {},
    });
  });

  test('answers in XML unless the request asks for JSON, errors too', async () => {
    const { status, contentType, body } = await ask(presign(usual()), { accept: '*/*' });
    expect({ status, contentType }).toEqual({ status: 200, contentType: 'text/xml' });
    expect(body).toMatch(/^<GetCallerIdentityResponse xmlns="https:\/\/sts\.amazonaws\.com\/doc\/2011-06-15\/">/);
    expect(body).toContain(`<UserId>111122223333:aws:ec2-instance:${machine.instanceId}</UserId>`);
    const refused = await ask(presign({ ...usual(), id: 'another' }), { accept: '*/*' });
    expect(refused).toMatchObject({ status: 403, contentType: 'text/xml' });
    expect(refused.body).toMatch(/^<ErrorResponse [^]*<Code>SignatureDoesNotMatch<\/Code>/);
  });

  test('goes by X-Amz-Date, and not by X-Amz-Expires', async () => {
    const url = presign({ ...usual(), at: now - 899_000, expires: 1 });
    expect(await ask(url)).toMatchObject({ status: 200 });
  });

  test('knows the session of a role and a user apart', async () => {
    const role = aws.profileCredential(machine.instanceId);
    const user = aws.createUser('111122223333', 'alice');
    const arns = [role, user].map(async (signer) => {
      const { body } = await ask(presign({ ...usual(), credential: signer }));
      return /"Arn":"([^"]+)"/.exec(body)?.[1];
    });
    expect(await Promise.all(arns)).toEqual([
      `arn:aws:sts::111122223333:assumed-role/node/${machine.instanceId}`,
      'arn:aws:iam::111122223333:user/alice',
    ]);
  });

  const { sessionToken = '', ...withoutToken } = credential;
  const expired = aws.session(aws.createRole({ arn: 'arn:aws:iam::111122223333:role/old' }), 'x-x', -1);
  const noUrl = 'sts.eu-central-1.amazonaws.com.evil.example';
  test.each<[string, Partial<PresignOptions>, string, Record<string, string>?]>([
    ['another value of x-k8s-aws-id', {}, 'SignatureDoesNotMatch', { 'x-k8s-aws-id': `${id}0` }],
    ['a header of X-Amz that is not signed', {}, 'SignatureDoesNotMatch', { 'x-amz-target': 'x' }],
    ['a host that is not AWS’s', { host: noUrl }, 'NotThisHost'],
    ['another service’s host', { host: `ec2.${region}.amazonaws.com` }, 'NotThisHost'],
    ['another partition’s domain', { host: `sts.${region}.amazonaws.com.cn` }, 'NotThisHost'],
    ['another region’s host', { host: 'sts.us-east-1.amazonaws.com' }, 'SignatureDoesNotMatch'],
    ['the global host', { host: 'sts.amazonaws.com' }, 'SignatureDoesNotMatch'],
    ['another service', { service: 's3' }, 'SignatureDoesNotMatch'],
    ['a date of 15 minutes ago', { at: now - 901_000 }, 'SignatureDoesNotMatch'],
    ['a date to come', { at: now + 301_000 }, 'SignatureDoesNotMatch'],
    ['a temporary key without its token', { credential: withoutToken }, 'InvalidClientTokenId'],
    [
      'another session’s token',
      { credential: { ...credential, sessionToken: aws.identityCredential(other.instanceId).sessionToken ?? '' } },
      'InvalidClientTokenId',
    ],
    [
      'a token with a long-lived key',
      { credential: { ...aws.createUser('111122223333', 'bob'), sessionToken } },
      'InvalidClientTokenId',
    ],
    ['an unknown key', { credential: { ...credential, accessKeyId: 'ASIANOBODY' } }, 'InvalidClientTokenId'],
    ['another secret', { credential: { ...credential, secretAccessKey: 'x' } }, 'SignatureDoesNotMatch'],
    ['a session that is over', { credential: expired }, 'ExpiredToken'],
    ['a signature over another method', { method: 'POST' }, 'SignatureDoesNotMatch'],
    ['a signature over a body', { body: 'x' }, 'SignatureDoesNotMatch'],
    ['another path', { path: '/x' }, 'MalformedQueryString'],
    ['another version', { parameters: { Version: '2010-05-08' } }, 'InvalidAction'],
    ['no such action', { parameters: { Action: 'GetFederationTokens' } }, 'InvalidAction'],
    ['a name of Object’s', { parameters: { Action: 'constructor' } }, 'InvalidAction'],
    ['a parameter more', { parameters: { WebIdentityToken: 'x' } }, 'ValidationError'],
    ['the action twice, in another case', { parameters: { action: 'AssumeRole' } }, 'MalformedQueryString'],
  ])('refuses %s', async (_, options, code, headers) => {
    const before = sts.calls.length;
    const { status, body } = await ask(presign({ ...usual(), ...options }), headers);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(JSON.parse(body)).toMatchObject({ Error: { Code: code } });
    expect(sts.calls.length).toBe(before);
  });

  test('refuses a signature cut off, and one in the header beside that in the query', async () => {
    const url = presign(usual());
    expect(await ask(url.replace(/&X-Amz-Signature=.*/, ''))).toMatchObject({ status: 400 });
    expect(await ask(url, { authorization: 'AWS4-HMAC-SHA256 x' })).toMatchObject({ status: 400 });
    expect(await ask(`https://${host}/?Action=GetCallerIdentity&Version=2011-06-15`)).toMatchObject({ status: 403 });
  });

  test('serves TLS under AWS’s names, from a CA of its own', async () => {
    const secure = await startFakeSts({ aws, tls: [region] });
    const { pathname, search } = new URL(presign(usual()));
    const sent = { 'x-k8s-aws-id': id, host };
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const options = { host: '127.0.0.1', port: secure.port, servername: host, ca: secure.caPem, agent: false };
      httpsRequest({ ...options, path: pathname + search, headers: sent }, (message) => {
        message.resume().on('end', () => resolve(message.statusCode));
      })
        .on('error', reject)
        .end();
    });
    await secure.close();
    expect(status).toBe(200);
  });
});

describe('faults of the fake STS', () => {
  const roleArn = 'arn:aws:iam::444455556666:role/reader';
  aws.createRole({ arn: roleArn, trusts: ['arn:aws:iam::111122223333:user/relay'] });
  const relay = aws.createUser('111122223333', 'relay');
  const stranger = aws.createUser('111122223333', 'stranger');
  const client = (signer = relay, more = {}) =>
    new STSClient({ region, endpoint: sts.url, credentials: signer, maxAttempts: 1, ...more });
  const assume = new AssumeRoleCommand({ RoleArn: roleArn, RoleSessionName: 'attest' });

  // The SDK signs with the clock of the machine.
  beforeAll(() => (now = Date.now()));

  test('do not occur for the real SDK unless the test injects them', async () => {
    const identity = await client().send(new GetCallerIdentityCommand({}));
    expect(identity).toMatchObject({ Arn: 'arn:aws:iam::111122223333:user/relay', Account: '111122223333' });
    const { Credentials: given, AssumedRoleUser: user } = await client().send(assume);
    expect(user?.Arn).toBe('arn:aws:sts::444455556666:assumed-role/reader/attest');
    expect(aws.credential(given?.AccessKeyId ?? '')).toMatchObject({ secretAccessKey: given?.SecretAccessKey });
    expect(given?.Expiration?.getTime()).toBeGreaterThan(now);
    expect(sts.calls.at(-1)).toMatchObject({ action: 'AssumeRole', signedBy: relay.accessKeyId, presigned: false });
  });

  test('are not what a missing right is: no role, no trust, a wrong secret', async () => {
    await expect(client(stranger).send(assume)).rejects.toThrow(/is not authorized to perform: sts:AssumeRole on/);
    const nowhere = new AssumeRoleCommand({ RoleArn: `${roleArn}s`, RoleSessionName: 'attest' });
    await expect(client().send(nowhere)).rejects.toMatchObject({ name: 'AccessDenied' });
    const wrong = client({ ...relay, secretAccessKey: 'x' });
    await expect(wrong.send(assume)).rejects.toMatchObject({ name: 'SignatureDoesNotMatch' });
  });

  test('come before or after the credentials were given', async () => {
    const given = () => sts.calls.length;
    const before = given();
    sts.fail(500, 'InternalFailure', 'x', { times: 1 });
    await expect(client().send(assume)).rejects.toMatchObject({ name: 'InternalFailure' });
    expect(given()).toBe(before);
    sts.fail(500, 'InternalFailure', 'x', { when: 'after', times: 1 });
    await expect(client().send(assume)).rejects.toMatchObject({ name: 'InternalFailure' });
    expect(given()).toBe(before + 1);
    sts.inject({ when: 'before', times: 1 }, { when: 'after', times: 1 });
    await expect(client().send(assume)).rejects.toThrow();
    expect(given()).toBe(before + 1);
    await expect(client().send(assume)).rejects.toThrow();
    expect(given()).toBe(before + 2);
    await client().send(assume);
    expect(given()).toBe(before + 3);
  });

  test('throttle in AWS’s words, which the SDK takes for what they are', async () => {
    sts.fail(400, 'Throttling', 'Rate exceeded', { times: 2 });
    const before = sts.received.length;
    await client(relay, { maxAttempts: 3 }).send(assume);
    expect(sts.received.length).toBe(before + 3);
  });

  test('redirect, lie, delay and break off in the middle', async () => {
    const endpoint = connectSts(sts);
    const {
      host: named,
      pathname,
      search,
    } = new URL(presign({ ...usual(), credential: aws.identityCredential(machine.instanceId) }));
    const get = () => endpoint({ host: named, path: pathname + search, headers: { 'x-k8s-aws-id': id } });
    const redirect = { status: 302, contentType: 'text/html', body: '', headers: { location: sts.url } };
    const lie = { status: 200, contentType: 'application/json', body: '{"GetCallerIdentityResponse":{}}' };
    sts.inject({ times: 1, answer: redirect }, { times: 1, answer: lie }, { times: 1, truncateAt: 10 });
    const reached = sts.received.length;
    expect(await get()).toMatchObject({ status: 302 });
    expect(sts.received.length).toBe(reached + 1);
    expect(await get()).toMatchObject({ status: 200, body: lie.body });
    await expect(get()).rejects.toThrow();
    sts.inject({ times: 1, delayMs: 30 }, { times: 1, answer: { ...lie, status: 429 } });
    const started = performance.now();
    expect(await get()).toMatchObject({ status: 200, contentType: 'text/xml' });
    expect(performance.now() - started).toBeGreaterThanOrEqual(29);
    await expect(get()).rejects.toThrow('STS answered 429');
    expect(await get()).toMatchObject({ status: 200 });
  });
});
