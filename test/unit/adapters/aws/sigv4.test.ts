import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectSigner } from '../../../../adapters/signing-api/client.ts';
import { createSigV4, endpointOf, sessionNameOf } from '../../../../adapters/aws/sigv4.ts';
import { regionName } from '../../../../core/ports/region-name.ts';
import { verifySigV4 } from '../../../harness/aws/sigv4-verifier.ts';
import { projectedToken, startPodIdentityAgent } from '../../../harness/fake-aws/machine/pod-identity.ts';
import type { PodIdentity } from '../../../harness/fake-aws/machine/pod-identity.ts';
import { startFakeSts } from '../../../harness/fake-aws/sts.ts';
import type { FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import type { Credential, FakeAws } from '../../../harness/fake-aws/world.ts';

const roleArn = 'arn:aws:iam::111122223333:role/prod-caller';
const podRoleArn = 'arn:aws:iam::111122223333:role/pod';
const irsaRoleArn = 'arn:aws:iam::111122223333:role/irsa';
const never = new AbortController().signal;

/** What the relay's role may do by the policy that a page has the operator attach. */
function relayActionsOf(page: string): readonly string[] {
  const text = readFileSync(join(import.meta.dirname, '../../../../docs', page), 'utf8');
  const [, document = ''] = /--policy-name call-countersign --policy-document '([^']+)'/.exec(text) ?? [];
  const [statement] = (JSON.parse(document) as { Statement: { Action: string | string[] }[] }).Statement;
  return [statement!.Action].flat();
}

describe('what the relay sends', () => {
  let aws: FakeAws;
  let base: Credential;
  let sts: FakeSts;
  let agent: PodIdentity;
  const kept = { ...process.env };
  beforeEach(async () => {
    aws = createFakeAws();
    base = aws.createUser('111122223333', 'relay');
    for (const arn of [roleArn, irsaRoleArn]) aws.createRole({ arn });
    aws.createRole({ arn: podRoleArn, allows: relayActionsOf('eks.md') });
    sts = await startFakeSts({ aws, webIdentityTokens: [projectedToken] });
    agent = await startPodIdentityAgent(aws, podRoleArn);
    for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
    Object.assign(process.env, {
      AWS_ENDPOINT_URL_STS: sts.url,
      AWS_ACCESS_KEY_ID: base.accessKeyId,
      AWS_SECRET_ACCESS_KEY: base.secretAccessKey,
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    });
  });
  const closes: (() => void)[] = [];
  afterEach(async () => {
    for (const name of Object.keys(process.env)) if (!(name in kept)) delete process.env[name];
    Object.assign(process.env, kept);
    for (const close of closes.splice(0)) close();
    await Promise.all([sts.close(), agent.close()]);
  });
  /** Of the sessions that STS and the agent gave: access key ids in that order. */
  const sessionOf = (accessKeyId: unknown) => aws.credential(String(accessKeyId))?.principal.arn;

  /** A front door that verifies what it gets, by the keys STS gave. */
  async function frontDoor(host = '127.0.0.1') {
    const verdicts: unknown[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url: target = '', headers } = request;
        const received = { method, target, headers: headers as Record<string, string>, body: Buffer.concat(chunks) };
        verdicts.push(verifySigV4(received, (id) => aws.secretOf(id), Date.now()));
        response.writeHead(409, { 'x-countersign-outcome': 'ignored' }).end('{}');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closes.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return { url: `http://${host}:${(server.address() as AddressInfo).port}/v1/clusters/prod`, verdicts };
  }

  function relay(url: string, region?: string) {
    const authorize = createSigV4({
      url,
      roleArn,
      sessionName: 'countersign-relay-7d9c',
      ...(region === undefined ? {} : { region }),
    });
    const endpoint = connectSigner({ url, connections: 2, authorize });
    closes.push(() => endpoint.close());
    return endpoint;
  }

  test.each([
    ['a.execute-api.eu-central-1.localhost', undefined, 'execute-api', 'eu-central-1'],
    ['u.lambda-url.eu-west-3.localhost', 'us-west-2', 'lambda', 'eu-west-3'],
    ['a.execute-api.localhost', 'us-gov-west-1', 'execute-api', 'us-gov-west-1'],
    ['127.0.0.1', 'eu-central-1', 'execute-api', 'eu-central-1'],
  ])('to %s is signed as the front door wants it', async (host, configured, service, region) => {
    const door = await frontDoor(host);
    const endpoint = relay(door.url, configured);
    const objects = [{ spec: { x: 'ü', y: '"' } }, {}, { big: 'x'.repeat(100_000) }];
    for (const object of objects) expect(await endpoint.sign(object, never)).toEqual({ kind: 'ignored' });
    const signedHeaders = ['content-type', 'host', 'x-amz-content-sha256', 'x-amz-date', 'x-amz-security-token'];
    const { accessKeyId = '' } = door.verdicts[0] as { accessKeyId?: string };
    expect(sessionOf(accessKeyId)).toBe('arn:aws:sts::111122223333:assumed-role/prod-caller/countersign-relay-7d9c');
    const { sessionToken } = aws.credential(accessKeyId) ?? {};
    expect(door.verdicts).toMatchObject(
      objects.map(() => ({ accessKeyId, service, region, signedHeaders, sessionToken, presigned: false })),
    );
    // One role, assumed once, for all calls. CloudTrail names the caller and the session.
    expect(sts.calls).toHaveLength(1);
    expect(sts.calls).toMatchObject([{ action: 'AssumeRole', signedBy: base.accessKeyId, region }]);
    expect(sts.calls[0]?.parameters).toEqual({
      RoleArn: roleArn,
      RoleSessionName: 'countersign-relay-7d9c',
      DurationSeconds: '3600',
    });
  });

  test('is signed by new credentials before the old ones end', async () => {
    sts.lifetimeSeconds = 900;
    let now = Date.now();
    const authorize = createSigV4(
      { url: 'https://a.execute-api.eu-west-1.amazonaws.com/v1/clusters/c', roleArn, sessionName: 's-s' },
      { now: () => now },
    );
    const url = new URL('https://a.execute-api.eu-west-1.amazonaws.com/v1/clusters/c/sign');
    const who = async () => {
      const answer = await authorize({ method: 'POST', url, headers: {}, body: Buffer.from('{}') });
      return answer.ok ? /Credential=(\w+)/.exec(answer.value['authorization'] ?? '')?.[1] : answer.problem;
    };
    const first = await who();
    expect(sessionOf(first)).toBe('arn:aws:sts::111122223333:assumed-role/prod-caller/s-s');
    now += 590_000;
    expect(await who()).toBe(first);
    expect(sts.calls).toHaveLength(1);
    now += 260_000; // 50 s are left: wait for the new ones
    const second = await who();
    expect(second).not.toBe(first);
    expect(sessionOf(second)).toBe(sessionOf(first));
  });

  test.each<[string, Parameters<FakeSts['fail']>, RegExp | undefined]>([
    [
      'AccessDenied',
      [403, 'AccessDenied', `User: x is not authorized to perform: sts:AssumeRole on resource: ${roleArn}`],
      /AccessDenied: User: x is not authorized/,
    ],
    [
      'a wrong signature',
      [403, 'SignatureDoesNotMatch', 'The Canonical String should have been SECRET-TOKEN'],
      /SignatureDoesNotMatch$/,
    ],
    ['an expired login', [400, 'ExpiredTokenException', 'SECRET-TOKEN expired'], /ExpiredTokenException$/],
    ['no such role', [400, 'ValidationError', 'SECRET-TOKEN'], /ValidationError$/],
    ['throttling', [400, 'Throttling', 'Rate exceeded'], undefined],
    ['a fault of STS', [500, 'InternalFailure', 'x'], undefined],
    ['STS away', [503, 'ServiceUnavailable', 'x'], undefined],
  ])('is nothing after %s', async (_, failure, message) => {
    const door = await frontDoor('a.execute-api.eu-central-1.localhost');
    const endpoint = relay(door.url);
    sts.fail(...failure);
    const answer = endpoint.sign({}, never);
    if (message === undefined) await expect(answer).rejects.toThrow(/^assuming the caller role: \w+$/);
    else {
      const said = await answer;
      expect(said).toEqual({ kind: 'unauthorized', message: expect.stringMatching(message) as unknown });
      expect(JSON.stringify(said)).not.toContain('SECRET-TOKEN');
    }
    expect(door.verdicts).toEqual([]);
    sts.mend();
    expect(await endpoint.sign({}, never)).toEqual({ kind: 'ignored' });
    expect(door.verdicts).toMatchObject([{ service: 'execute-api' }]);
  });

  test('is nothing without credentials to begin with', async () => {
    delete process.env['AWS_ACCESS_KEY_ID'];
    delete process.env['AWS_SECRET_ACCESS_KEY'];
    const door = await frontDoor('a.execute-api.eu-central-1.localhost');
    const answer = await relay(door.url).sign({}, never);
    expect(answer).toEqual({ kind: 'unauthorized', message: 'no AWS credentials found' });
    expect([...door.verdicts, ...sts.calls]).toEqual([]);
  });

  test('is signed by the role that EKS gave the pod, in either of its ways, as who assumes the caller role', async () => {
    delete process.env['AWS_ACCESS_KEY_ID'];
    delete process.env['AWS_SECRET_ACCESS_KEY'];
    const door = await frontDoor('a.execute-api.eu-central-1.localhost');
    // IRSA: a projected token, exchanged for a role.
    Object.assign(process.env, {
      AWS_ROLE_ARN: irsaRoleArn,
      AWS_WEB_IDENTITY_TOKEN_FILE: agent.tokenFile,
      AWS_REGION: 'eu-central-1',
    });
    expect(await relay(door.url).sign({}, never)).toEqual({ kind: 'ignored' });
    expect(sts.calls).toMatchObject([
      { action: 'AssumeRoleWithWebIdentity', parameters: { RoleArn: irsaRoleArn } },
      { action: 'AssumeRole', parameters: { RoleArn: roleArn } },
    ]);
    expect(sessionOf(sts.calls[1]?.signedBy)).toMatch(/:assumed-role\/irsa\//);
    // Pod Identity: an agent on the node.
    delete process.env['AWS_ROLE_ARN'];
    delete process.env['AWS_WEB_IDENTITY_TOKEN_FILE'];
    process.env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = agent.url;
    process.env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'] = agent.tokenFile;
    expect(await relay(door.url).sign({}, never)).toEqual({ kind: 'ignored' });
    expect(sts.calls.at(-1)).toMatchObject({ action: 'AssumeRole', parameters: { RoleArn: roleArn } });
    expect(sessionOf(sts.calls.at(-1)?.signedBy)).toBe('arn:aws:sts::111122223333:assumed-role/pod/eks-prod-pod');
    const signers = door.verdicts.map((verdict) => (verdict as { accessKeyId: string }).accessKeyId);
    expect(new Set(signers).size).toBe(2);
    for (const id of signers) expect(sessionOf(id)).toMatch(/:assumed-role\/prod-caller\/countersign-relay-7d9c$/);
  });

  test('is nothing with the session tags of Pod Identity, if the role of the pod may not pass them on', async () => {
    delete process.env['AWS_ACCESS_KEY_ID'];
    delete process.env['AWS_SECRET_ACCESS_KEY'];
    Object.assign(process.env, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: agent.url,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: agent.tokenFile,
    });
    const door = await frontDoor('a.execute-api.eu-central-1.localhost');
    aws.createRole({ arn: podRoleArn, allows: ['sts:AssumeRole'] });
    const said = await relay(door.url).sign({}, never);
    expect(said).toMatchObject({ kind: 'unauthorized', message: expect.stringContaining('sts:TagSession') as unknown });
    aws.createRole({ arn: podRoleArn, allows: relayActionsOf('deploy.md') });
    expect(await relay(door.url).sign({}, never)).toEqual({ kind: 'ignored' });
  });
});

test.each([
  ['abc123.execute-api.eu-central-1.amazonaws.com', { service: 'execute-api', region: 'eu-central-1' }],
  ['abc123.execute-api.cn-north-1.amazonaws.com.cn', { service: 'execute-api', region: 'cn-north-1' }],
  ['vpce-1.execute-api.us-gov-east-1.vpce.amazonaws.com', { service: 'execute-api', region: 'us-gov-east-1' }],
  ['abc.lambda-url.ap-southeast-2.on.aws', { service: 'lambda', region: 'ap-southeast-2' }],
  ['abc.execute-api.eusc-de-east-1.amazonaws.eu', { service: 'execute-api', region: 'eusc-de-east-1' }],
  ['abc.lambda-url.eusc-de-east-1.on.amazonwebservices.eu', { service: 'lambda', region: 'eusc-de-east-1' }],
  ['abc.execute-api.localhost', { service: 'execute-api' }],
  ['sign.example.com', { service: 'execute-api' }],
  ['lambda.eu-central-1.example.com', { service: 'execute-api' }],
])('%s is %o', (host, expected) => {
  expect(endpointOf(host)).toEqual(expected);
});

test('the chart takes the Regions that the relay finds in host names', () => {
  const schema = readFileSync(join(import.meta.dirname, '../../../../deploy/chart/values.schema.json'), 'utf8');
  const source = regionName.source.replaceAll('\\', '\\\\');
  expect(schema).toContain(`"pattern": "^$|${source}"`);
});

test('without a region nothing can be signed, and that is said at once', () => {
  expect(() => createSigV4({ url: 'https://sign.example.com/v1/clusters/c', roleArn, sessionName: 's' })).toThrow(
    /AWS_REGION must be set: https:\/\/sign\.example\.com/,
  );
});

test('the session is named after the pod, as far as STS allows', () => {
  expect(sessionNameOf('countersign-watch-relay-7d9c5b6f4-x2x9z')).toBe(
    'countersign-countersign-watch-relay-7d9c5b6f4-x2x9z',
  );
  const long = sessionNameOf(`${'a'.repeat(240)}/ü-x2x9z`);
  expect(long).toMatch(/^countersign-a+---x2x9z$/);
  expect(long).toHaveLength(64);
});

/** What a process loads, told by the loader itself. */
function loadedBy(code: string): string[] {
  const hooks = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { console.log(url); return next(url, context); } });`;
  const imports = ['--import', `data:text/javascript,${encodeURIComponent(hooks)}`];
  const output = execFileSync(process.execPath, [...imports, '--input-type=module', '-e', code], { encoding: 'utf8' });
  return output.split('\n').filter((url) => /node_modules\/@(aws|smithy)/.test(url));
}

test('the SDK is loaded for the first call, and not before', () => {
  const sigv4 = JSON.stringify(join(import.meta.dirname, '../../../../adapters/aws/sigv4.ts'));
  const made = `import { createSigV4 } from ${sigv4};
    const sign = createSigV4({ url: 'https://a.execute-api.eu-west-1.amazonaws.com/', roleArn: 'r', sessionName: 's' },
      { now: Date.now, assume: async () => ({ accessKeyId: 'a', secretAccessKey: 's' }) });`;
  expect(loadedBy(made)).toEqual([]);
  const called = `${made} await sign({ method: 'POST', url: new URL('https://a.example/'), headers: {}, body: Buffer.from('') });`;
  expect(loadedBy(called).length).toBeGreaterThan(2);
});
