/** The Compute API and the login to it, over strict fakes of Google and of AWS's STS. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { computeEndpoint } from '../../../../adapters/google/compute.ts';
import { signSubjectToken } from '../../../../adapters/google/subject-token.ts';
import { MisconfigurationError, ThrottledError } from '../../../../core/ports/errors.ts';
import { plain } from '../../../harness/fake-aws/service.ts';
import { startFakeSts } from '../../../harness/fake-aws/sts.ts';
import type { FakeSts } from '../../../harness/fake-aws/sts.ts';
import { sendTo } from '../../../harness/fake-aws/sts-endpoint.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import type { Credential } from '../../../harness/fake-aws/world.ts';
import { startFakeGoogle } from '../../../harness/fake-google/google.ts';
import type { FakeGoogle, FakePool, FakeVm } from '../../../harness/fake-google/google.ts';

const [account, region] = ['111122223333', 'eu-central-1'];
const start = Date.parse('2026-08-30T12:00:00Z');
let ahead = 0;
const now = (): number => start + ahead;
const aws = createFakeAws({ now });
const role = (name: string) => aws.createRole({ arn: `arn:aws:iam::${account}:role/${name}` });
const attest = aws.session(role('attest'), 'function');
const stranger = aws.session(role('stranger'), 'function');

const pool: FakePool = {
  provider: '//iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/aws-pool/providers/countersign',
  account,
  role: `arn:aws:sts::${account}:assumed-role/attest`,
};
const serviceAccount = 'reader@my-nodes.iam.gserviceaccount.com';
const vm: FakeVm = {
  projectNumber: '424242424242',
  projectId: 'my-nodes',
  zone: 'europe-west3-b',
  id: '7318206418127403211',
  name: 'worker-1',
  signingKey: '-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n',
};
const place = { projectNumber: vm.projectNumber, zone: vm.zone, instanceId: vm.id };

let sts: FakeSts;
let direct: FakeGoogle;
let impersonating: FakeGoogle;
beforeAll(async () => {
  sts = await startFakeSts({ aws });
  direct = await startFakeGoogle({ pool, stsPort: sts.port, now });
  impersonating = await startFakeGoogle({ pool: { ...pool, serviceAccount }, stsPort: sts.port, now });
});
beforeEach(() => {
  ahead = 0;
  direct.vms.set(vm.id, vm);
  impersonating.vms.set(vm.id, vm);
});
afterEach(() => {
  direct.mend();
  impersonating.mend();
});
afterAll(async () => {
  await direct.close();
  await impersonating.close();
  await sts.close();
});

interface Asked {
  readonly google?: FakeGoogle;
  readonly credential?: Credential;
  readonly provider?: string;
  readonly serviceAccount?: string;
  readonly timeoutMilliseconds?: number;
}

function endpoint({ google = direct, credential = attest, provider = pool.provider, ...rest }: Asked = {}) {
  const { serviceAccount: become, timeoutMilliseconds } = rest;
  const { accessKeyId, secretAccessKey, sessionToken = '' } = credential;
  return computeEndpoint({
    federation: { provider, ...(become === undefined ? {} : { serviceAccount: become }) },
    region,
    credentials: () => ({ accessKeyId, secretAccessKey, sessionToken }),
    now,
    endpoint: () => google.url,
    ...(timeoutMilliseconds === undefined ? {} : { timeoutMilliseconds }),
  });
}

/** What the fake did since `before`. */
function did(google: FakeGoogle, before: number): readonly string[] {
  return google.calls.slice(before);
}

describe('reading a VM', () => {
  test('as Google describes it', async () => {
    expect(await endpoint().describeInstance(place)).toEqual({
      instanceId: vm.id,
      name: 'worker-1',
      zone: 'europe-west3-b',
      status: 'RUNNING',
      vtpm: true,
      labels: new Map([['role', 'node']]),
      serviceAccounts: ['nodes@my-nodes.iam.gserviceaccount.com'],
      addresses: ['10.156.0.7', '2600:1900:40e0:9c:0:7:0:0', '203.0.113.9', '2600:1900:40e0:ab:0:0:0:0'],
    });
  });

  test('with little in it', async () => {
    const fields = {
      networkInterfaces: undefined,
      serviceAccounts: undefined,
      labels: undefined,
      shieldedInstanceConfig: { enableVtpm: 'true' },
    };
    direct.vms.set(vm.id, { ...vm, fields });
    const described = await endpoint().describeInstance(place);
    expect(described).toMatchObject({ vtpm: false, labels: new Map(), serviceAccounts: [], addresses: [] });
  });

  test.each(['id', 'name', 'zone', 'status'])('an answer without %s is no description', async (field) => {
    direct.vms.set(vm.id, { ...vm, fields: { [field]: undefined } });
    await expect(endpoint().describeInstance(place)).rejects.toThrow('without id, name, zone or status');
  });

  test('the key with which its vTPM signs, or none', async () => {
    expect(await endpoint().signingKey(place)).toEqual({ kind: 'key', pem: vm.signingKey });
    const { signingKey: _, ...ordinary } = vm;
    direct.vms.set(vm.id, ordinary);
    expect(await endpoint().signingKey(place)).toEqual({ kind: 'noKey' });
  });

  test('that does not exist', async () => {
    direct.vms.clear();
    expect(await endpoint().describeInstance(place)).toBe('notFound');
    expect(await endpoint().signingKey(place)).toEqual({ kind: 'notFound' });
  });

  test('only Google itself can say so', async () => {
    const compute = endpoint();
    await compute.describeInstance(place);
    direct.inject({ when: 'before', answer: plain(404, 'no such page'), times: 1 });
    await expect(compute.describeInstance(place)).rejects.toThrow('compute.googleapis.com answered with status 404');
  });

  test('follows no redirect', async () => {
    const compute = endpoint();
    await compute.describeInstance(place);
    const before = direct.received.length;
    direct.inject({ when: 'before', answer: plain(302, '', { location: `${direct.url}/other` }), times: 1 });
    await expect(compute.describeInstance(place)).rejects.toThrow('answered with status 302');
    expect(direct.received.length - before).toBe(1);
  });

  test('reads at most a megabyte', async () => {
    const compute = endpoint();
    await compute.describeInstance(place);
    const padding = 'x'.repeat(1_048_576);
    direct.inject({ when: 'before', answer: plain(200, JSON.stringify({ padding })), times: 1 });
    await expect(compute.describeInstance(place)).rejects.toThrow('did not answer properly');
  });

  test('waits no longer than it was told', async () => {
    const compute = endpoint({ timeoutMilliseconds: 150 });
    await compute.describeInstance(place);
    direct.inject({ delayMs: 400, times: 1 });
    await expect(compute.describeInstance(place)).rejects.toThrow('did not answer properly');
  });

  test.each([
    [429, ThrottledError, 'asks to slow down'],
    [500, Error, 'status 500'],
    [503, Error, 'status 503'],
    [400, Error, 'status 400'],
  ] as const)('status %d is temporary', async (status, kind, message) => {
    const compute = endpoint();
    await compute.describeInstance(place);
    direct.inject({ when: 'before', answer: plain(status, 'secret detail'), times: 1 });
    const error = await compute.describeInstance(place).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(kind);
    expect(error).not.toBeInstanceOf(MisconfigurationError);
    expect((error as Error).message).toContain(message);
    expect((error as Error).message).not.toContain('secret');
  });

  test.each(['compute.instances.get', 'compute.instances.getShieldedInstanceIdentity'])(
    'needs the permission %s, and says so',
    async (permission) => {
      direct.permissions.delete(permission);
      const compute = endpoint();
      const calls = [compute.describeInstance(place), compute.signingKey(place)];
      const settled = await Promise.allSettled(calls);
      direct.permissions.add(permission);
      const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
      expect(refused).toHaveLength(1);
      expect(refused[0]).toBeInstanceOf(MisconfigurationError);
      expect(refused[0]?.message).toContain('does not let this function read VMs (status 403)');
    },
  );
});

describe('the login', () => {
  test('as the identity of the pool, once for many calls', async () => {
    const before = direct.calls.length;
    const compute = endpoint();
    await Promise.all([compute.describeInstance(place), compute.signingKey(place)]);
    await compute.describeInstance(place);
    expect(did(direct, before).filter((call) => call.startsWith('token'))).toEqual([
      `token for arn:aws:sts::${account}:assumed-role/attest/function`,
    ]);
    // A call whose connection was reset is sent once more.
    expect(did(direct, before).length).toBeGreaterThanOrEqual(4);
  });

  test('as a service account', async () => {
    const before = impersonating.calls.length;
    await endpoint({ google: impersonating, serviceAccount }).describeInstance(place);
    expect(did(impersonating, before)).toEqual([
      `token for arn:aws:sts::${account}:assumed-role/attest/function`,
      `token of ${serviceAccount}`,
      `compute.instances.get ${vm.projectNumber}/${vm.zone}/${vm.id}`,
    ]);
  });

  test('is repeated before the token ends', async () => {
    const before = direct.calls.length;
    // A call whose connection was reset is sent once more, so only logins are counted.
    const logins = () => did(direct, before).filter((call) => call.startsWith('token'));
    const compute = endpoint();
    await compute.describeInstance(place);
    ahead = 3_500_000;
    await compute.describeInstance(place);
    expect(logins()).toHaveLength(1);
    ahead = 3_545_000;
    await compute.describeInstance(place);
    expect(logins()).toHaveLength(2);
  });

  test('is repeated after Google refused the token', async () => {
    const compute = endpoint();
    await compute.describeInstance(place);
    direct.revoke();
    await expect(compute.describeInstance(place)).rejects.toThrow('status 401');
    expect(await compute.describeInstance(place)).toMatchObject({ name: 'worker-1' });
  });

  test.each([
    ['of a role that the pool does not admit', { credential: stranger }],
    ['with a wrong secret', { credential: { ...attest, secretAccessKey: 'x'.repeat(40) } }],
    ['for another pool', { provider: pool.provider.replace('aws-pool', 'other-pool') }],
    [
      'as a service account that it may not become',
      { google: 'impersonating', serviceAccount: 'other@my-nodes.iam.gserviceaccount.com' },
    ],
    ['as itself, where only the service account may read', { google: 'impersonating' }],
  ] as const)(
    '%s is refused, without a detail',
    async (_, { google, ...asked }: Omit<Asked, 'google'> & { readonly google?: string }) => {
      const error = await endpoint({ ...asked, google: google === undefined ? direct : impersonating })
        .describeInstance(place)
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(MisconfigurationError);
      expect((error as Error).message).toMatch(
        /see (attestation\.gce-vtpm\.federation|docs\/attestation\/gce-vtpm\.md)$/,
      );
      expect((error as Error).message).not.toContain('secret detail');
    },
  );

  test.each([
    ['no token', {}],
    [
      'a token of another type',
      {
        access_token: 'a',
        token_type: 'mac',
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        expires_in: 60,
      },
    ],
    [
      'another kind of token',
      {
        access_token: 'a',
        token_type: 'Bearer',
        issued_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        expires_in: 60,
      },
    ],
    [
      'a token with a line end',
      {
        access_token: 'a\r\nx: y',
        token_type: 'Bearer',
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        expires_in: 60,
      },
    ],
    [
      'a token of 20 000 characters',
      {
        access_token: 'a'.repeat(20_000),
        token_type: 'Bearer',
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        expires_in: 60,
      },
    ],
    [
      'no end',
      { access_token: 'a', token_type: 'Bearer', issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' },
    ],
  ])('%s in the answer is temporary', async (_, answer) => {
    direct.inject({ when: 'before', answer: plain(200, JSON.stringify(answer)), times: 1 });
    await expect(endpoint().describeInstance(place)).rejects.toThrow('sts.googleapis.com answered without a token');
  });

  test('a service account whose token has no end is temporary', async () => {
    const before = impersonating.received.length;
    impersonating.inject(
      { delayMs: 0, times: 1 },
      { when: 'before', answer: plain(200, JSON.stringify({ accessToken: 'a', expireTime: 'soon' })), times: 1 },
    );
    await expect(endpoint({ google: impersonating, serviceAccount }).describeInstance(place)).rejects.toThrow(
      'iamcredentials.googleapis.com answered without a token',
    );
    expect(impersonating.received.length - before).toBe(2);
  });

  test('a failure does not stop the next login', async () => {
    const compute = endpoint();
    direct.inject({ when: 'before', answer: plain(503, ''), times: 1 });
    await expect(compute.describeInstance(place)).rejects.toThrow('sts.googleapis.com answered with status 503');
    expect(await compute.describeInstance(place)).toMatchObject({ name: 'worker-1' });
  });
});

test('the proof is a request that STS confirms, and names the pool in a signed header', async () => {
  const { accessKeyId, secretAccessKey, sessionToken = '' } = attest;
  const token = await signSubjectToken({
    credentials: { accessKeyId, secretAccessKey, sessionToken },
    region,
    provider: pool.provider,
    now: now(),
  });
  const proof = JSON.parse(decodeURIComponent(token)) as {
    url: string;
    method: string;
    headers: { key: string; value: string }[];
  };
  expect(proof.url).toBe(`https://sts.${region}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15`);
  const headers = Object.fromEntries(proof.headers.map(({ key, value }) => [key, value]));
  expect(Object.keys(headers).sort()).toEqual([
    'authorization',
    'host',
    'x-amz-date',
    'x-amz-security-token',
    'x-goog-cloud-target-resource',
  ]);
  const send = (changed: Record<string, string>) => {
    const { host = '', ...rest } = { ...headers, ...changed };
    return sendTo(sts.port, {
      method: 'POST',
      host,
      path: '/?Action=GetCallerIdentity&Version=2011-06-15',
      headers: { ...rest, accept: 'application/json', 'content-length': '0' },
    });
  };
  expect((await send({})).status).toBe(200);
  expect((await send({ 'x-goog-cloud-target-resource': 'another' })).status).toBe(403);
});
