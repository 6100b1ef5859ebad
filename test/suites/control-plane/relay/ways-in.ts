import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createAuthorizer } from '../../../../lambdas/authorizer/authorizer.ts';
import { projectedToken } from '../../../harness/fake-aws/machine/pod-identity.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws, type Credential } from '../../../harness/fake-aws/world.ts';
import { verifySigV4 } from '../../../harness/aws/sigv4-verifier.ts';
import { startConnectProxy } from '../../../harness/processes/connect-proxy.ts';
import { startRelay, type Relay } from '../../../harness/stack/stack.ts';
import { approve, createClientRequests, eventually, settled } from '../../../harness/stack/requests.ts';
import { startTestEndpoint, type TestEndpoint } from './endpoint.ts';
import { startFrontDoor, type FrontDoor } from './front-door.ts';
import type { InstalledRelay } from './installed-relay.ts';

const roleArn = 'arn:aws:iam::111122223333:role/demo-caller';
const podRoleArn = 'arn:aws:iam::111122223333:role/pod';
const audience = 'countersign.demo';

/** The relay's own process, a real API server, and a front door that refuses every caller it cannot verify. */
export function waysIn(installed: () => InstalledRelay): void {
  let plane: InstalledRelay['plane'];
  let identity: InstalledRelay['identity'];
  let endpoint: TestEndpoint;
  let batch = 0;
  const closes: (() => Promise<void> | void)[] = [];

  beforeAll(async () => {
    ({ plane, identity } = installed());
    endpoint = await startTestEndpoint();
  });
  afterEach(async () => {
    for (const close of closes.splice(0).toReversed()) await close();
  });
  afterAll(() => endpoint?.close());

  async function relayTo(
    door: Pick<FrontDoor, 'url' | 'caPem'>,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ) {
    const caFile = join(plane.dir, `door-${++batch}.pem`);
    writeFileSync(caFile, door.caPem);
    const relay = await startRelay({
      kubeconfig: identity.kubeconfig(),
      endpoint: door.url,
      args: ['--endpoint-ca', caFile, ...args],
      env,
    });
    closes.push(() => relay.stop());
    return relay;
  }

  async function approvedRequests(count: number): Promise<string[]> {
    const names = (await createClientRequests(plane, `w${++batch}`, count)).map(({ name }) => name);
    await approve(plane, ...names);
    return names;
  }

  const certificatesOf = async (names: readonly string[]) =>
    [...(await settled(plane, names)).values()].filter(({ status }) => status.certificate !== undefined).length;

  function details(relay: Relay): unknown[] {
    return relay
      .logged('request tried again: needs attention')
      .filter(({ cause }) => cause === 'EndpointUnauthorized')
      .map(({ detail }) => detail);
  }

  test('comes in with a token of its service account, and with the next one when that is replaced', async () => {
    const log: unknown[] = [];
    const jwks = JSON.parse(await plane.kubectl(['get', '--raw', '/openid/v1/jwks'])) as { keys: [] };
    const jwt = { issuer: 'https://kubernetes.default.svc', audience, subjects: [identity.user], jwks };
    const authorizer = createAuthorizer(
      { cluster: 'demo', jwt },
      {
        now: () => Date.now(),
        fetchJwks: () => Promise.reject(new Error('given')),
        log: (entry) => log.push(entry),
      },
    );
    const door = await startFrontDoor(endpoint.url, async ({ target, headers }) => {
      const answer = await authorizer({ version: '2.0', type: 'REQUEST', rawPath: target, headers });
      return answer.isAuthorized || (log.at(-1) as { reason?: string }).reason;
    });
    closes.push(() => door.close());

    // kubelet's own call for a projected volume.
    const tokenFor = async (forWhom: string) => {
      const args = ['create', 'token', identity.name, '-n', identity.namespace, `--audience=${forWhom}`];
      return (await plane.kubectl([...args, '--duration=10m'])).trim();
    };
    const tokenFile = join(plane.dir, 'token');
    const tokens = [await tokenFor('vault'), await tokenFor(audience), await tokenFor(audience)];
    writeFileSync(tokenFile, tokens[0]!);
    const relay = await relayTo(door, ['--token-file', tokenFile]);
    const names = await approvedRequests(3);
    await eventually(() => details(relay).includes('HTTP 403'), 'the relay is turned away');
    expect(new Set(door.verdicts)).toEqual(new Set(['AudienceWrong']));
    await expect.poll(async () => (await relay.ready()).text).toContain('not authorized: sign endpoint');

    for (const token of tokens.slice(1)) {
      writeFileSync(tokenFile, `${token}\n`);
      const more = await approvedRequests(2);
      expect(await certificatesOf(more)).toBe(2);
      expect(door.verdicts.at(-1)).toBe(true);
    }
    expect(await certificatesOf(names)).toBe(3);
    await eventually(async () => (await relay.ready()).status === 200, 'ready again');

    writeFileSync(tokenFile, '');
    const [late] = await approvedRequests(1);
    await eventually(() => details(relay).includes(`token file ${tokenFile}: holds no token`), 'it says what is wrong');
    writeFileSync(tokenFile, tokens[2]!);
    expect(await certificatesOf([late!])).toBe(1);
    const everything = readFileSync(relay.process.logPath, 'utf8');
    for (const token of tokens) expect(everything).not.toContain(token.split('.')[2]);
  });

  test('comes in by the caller role, and waits while it may not assume it', async () => {
    const aws = createFakeAws();
    aws.createRole({ arn: roleArn });
    const base = aws.createUser('111122223333', 'relay');
    const sts: FakeSts = await startFakeSts({ aws });
    const sessionName = 'countersign-watch-relay-0';
    let session: Credential | undefined;
    closes.push(() => sts.close());
    const door = await startFrontDoor(endpoint.url, (request) => {
      const who = verifySigV4(request, (id) => aws.secretOf(id), Date.now());
      if (typeof who === 'string') return who;
      session = aws.credential(who.accessKeyId);
      if (session?.principal.arn !== `arn:aws:sts::111122223333:assumed-role/demo-caller/${sessionName}`)
        return session;
      return (
        who.sessionToken === session.sessionToken && who.service === 'execute-api' && who.region === 'eu-central-1'
      );
    });
    closes.push(() => door.close());
    sts.fail(403, 'AccessDenied', `User: arn:aws:sts::1:assumed-role/n/i is not authorized to perform: sts:AssumeRole`);
    const relay = await relayTo(door, [], {
      COUNTERSIGN_CALLER_ROLE: roleArn,
      POD_NAME: 'watch-relay-0',
      AWS_REGION: 'eu-central-1',
      AWS_ENDPOINT_URL_STS: sts.url,
      AWS_ACCESS_KEY_ID: base.accessKeyId,
      AWS_SECRET_ACCESS_KEY: base.secretAccessKey,
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    });
    const names = await approvedRequests(5);
    await eventually(() => details(relay).length > 0, 'the relay may not');
    expect(details(relay)[0]).toMatch(/^the caller role cannot be assumed: AccessDenied: User: .* sts:AssumeRole$/);
    expect(door.verdicts).toEqual([]);
    sts.fail(503, 'ServiceUnavailable', 'x');
    await eventually(
      () =>
        relay.logged('request tried again').some(({ detail }) => String(detail).includes('assuming the caller role')),
      'STS is away',
    );
    sts.mend();
    expect(await certificatesOf(names)).toBe(5);
    expect(door.verdicts).toEqual(names.map(() => true));
    expect(sts.calls).toMatchObject([
      { signedBy: base.accessKeyId, parameters: { RoleArn: roleArn, RoleSessionName: sessionName } },
    ]);
    const everything = readFileSync(relay.process.logPath, 'utf8');
    for (const secret of [base.secretAccessKey, session!.secretAccessKey, session!.sessionToken!, 'AWS4-HMAC'])
      expect(everything).not.toContain(secret);
  });

  test('comes in through a forward proxy, to STS and to the endpoint, which no other way leads to', async () => {
    const region = 'eu-central-1';
    const host = 'sign.countersign.invalid';
    const aws = createFakeAws();
    for (const arn of [roleArn, podRoleArn]) aws.createRole({ arn });
    const sts = await startFakeSts({ aws, tls: [region], webIdentityTokens: [projectedToken] });
    closes.push(() => sts.close());
    const check: Parameters<typeof startFrontDoor>[1] = (request) => {
      const who = verifySigV4(request, (id) => aws.secretOf(id), Date.now());
      return typeof who === 'string' ? who : request.headers['host'] === host;
    };
    const door = await startFrontDoor(endpoint.url, check, [host]);
    closes.push(() => door.close());
    const proxy = await startConnectProxy({ [`${host}:443`]: door.url, [`sts.${region}.amazonaws.com:443`]: sts.url });
    closes.push(() => proxy.close());
    const [tokenFile, trusted] = [join(plane.dir, 'web-identity'), join(plane.dir, 'fake-aws.pem')];
    writeFileSync(tokenFile, projectedToken);
    writeFileSync(trusted, sts.caPem ?? '');
    const withPassword = new URL(proxy.url);
    [withPassword.username, withPassword.password] = ['relay', 'proxy-password'];
    proxy.refuse = 407;
    const relay = await relayTo({ ...door, url: `https://${host}` }, [], {
      COUNTERSIGN_CALLER_ROLE: roleArn,
      AWS_REGION: region,
      AWS_ROLE_ARN: podRoleArn,
      AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      HTTPS_PROXY: withPassword.href,
      NODE_EXTRA_CA_CERTS: trusted,
    });
    const names = await approvedRequests(5);
    await eventually(() => relay.logged('request tried again').length > 0, 'the proxy refuses');
    expect(relay.logged('request tried again')[0]).toMatchObject({ cause: 'EndpointUnreachable' });
    expect([door.verdicts, sts.calls]).toEqual([[], []]);
    proxy.refuse = undefined;
    expect(await certificatesOf(names)).toBe(5);
    expect(sts.calls.map(({ action }) => action)).toEqual(['AssumeRoleWithWebIdentity', 'AssumeRole']);
    expect(door.verdicts).toEqual(names.map(() => true));
    // Not the API server, which is on this machine, and nothing that a proxy could read.
    expect(new Set(proxy.tunnels)).toEqual(new Set([`${host}:443`, `sts.${region}.amazonaws.com:443`]));
    expect(proxy.others).toEqual([]);
    const login = `Basic ${Buffer.from('relay:proxy-password').toString('base64')}`;
    expect(new Set(proxy.logins)).toEqual(new Set([login]));
    const everything = readFileSync(relay.process.logPath, 'utf8');
    expect(everything).toContain(`"proxy":"${new URL(proxy.url).host}"`);
    for (const secret of ['proxy-password', login, projectedToken]) expect(everything).not.toContain(secret);

    // A host of NO_PROXY is called directly; this name does not lead to the endpoint.
    const before = proxy.tunnels.filter((place) => place.startsWith(host)).length;
    const direct = await relayTo({ ...door, url: `https://${host}` }, ['--token-file', tokenFile], {
      HTTPS_PROXY: proxy.url,
      NO_PROXY: '.countersign.invalid',
    });
    await relay.stop();
    await approvedRequests(1);
    await eventually(() => direct.logged('request tried again').length > 0, 'no way leads there');
    expect(proxy.tunnels.filter((place) => place.startsWith(host))).toHaveLength(before);
  });
}
