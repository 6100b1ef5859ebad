import { noRevocations } from '../../../harness/stack/no-crls.ts';
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { embeddedSigner, generateKey, publicKeyInfo } from '../../../../adapters/embedded/signer.ts';
import type { ResourceResponse } from '../../../../adapters/aws/cloudformation-response.ts';
import type { CaKey, CaRecord, CaStore } from '../../../../core/ca/authority.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { certificateFacts } from '../../../../core/x509/read-certificate.ts';
import { extensionType } from '../../../../core/x509/model.ts';
import { MisconfigurationError } from '../../../../core/ports/errors.ts';
import { createCaHandler } from '../../../../lambdas/ca/handler.ts';
import type { CaHandler } from '../../../../lambdas/ca/handler.ts';
import type { OperatorLogEntry } from '../../../../adapters/lambda/operator-call.ts';
import type { CaAnswer, OperatorAnswer } from '../../../../lambdas/ca/actions/cas.ts';
import type { CaPorts } from '../../../../lambdas/ca/actions/ports.ts';
import { createFaults, visitEveryFault } from '../../../contract/faulty.ts';
import type { Faults } from '../../../contract/faulty.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { createBarrier } from '../../../harness/stack/barrier.ts';

const parsed = parseConfiguration(
  `version: 1
clusters:
  prod:
    cas:
      nodes: {subject: {commonName: prod nodes}, validity: 100d}
      web: {subject: {commonName: prod web, organization: Example}, keySpec: P-384, pathLen: 1}
    profiles:
      kubernetes.io/kubelet-serving: {ca: nodes}
`,
  'countersign.yaml',
);
if (!parsed.ok) throw new Error('the configuration of this test is wrong');
const { cas, profiles } = parsed.value.configuration.clusters.get('prod')!;
const now = Date.parse('2026-06-01T12:00:00Z');

/** A table and keys that outlive the function. */
interface World {
  readonly records: Map<string, CaRecord>;
  readonly keys: ReadonlyMap<string, CaKey>;
  signatures: number;
}

const nodesKey = await generateKey('P-256');
const webKey = await generateKey('P-384');

function newWorld(change: Partial<Record<string, CaKey>> = {}): World {
  const world: World = { records: new Map(), keys: new Map(), signatures: 0 };
  const keyOf = (key: typeof nodesKey): CaKey => {
    const signer = embeddedSigner(key);
    return {
      keyId: signer.keyId,
      publicKey: async () => ({ spki: publicKeyInfo(key), algorithms: [signer.algorithm, 'SOMETHING_NEW'] }),
      signer: (algorithm) => ({
        ...signer,
        algorithm,
        sign: (tbs) => {
          world.signatures++;
          return signer.sign(tbs);
        },
      }),
    };
  };
  const keys = { nodes: keyOf(nodesKey), web: keyOf(webKey), ...change };
  return Object.assign(world, { keys: new Map(Object.entries(keys)) });
}

function storeOf({ records }: World): CaStore {
  return {
    find: async (name) => records.get(name),
    add: async (record) => {
      if (records.has(record.name)) return false;
      records.set(record.name, record);
      return true;
    },
  };
}

interface Run {
  readonly handler: CaHandler;
  readonly responses: ResourceResponse[];
  readonly log: OperatorLogEntry[];
  readonly waited: number[];
}

function start(world: World, faults: Faults = createFaults(), change: Partial<CaPorts> = {}): Run {
  const responses: ResourceResponse[] = [];
  const log: OperatorLogEntry[] = [];
  const waited: number[] = [];
  const ports: CaPorts = {
    ...noRevocations,
    cluster: 'prod',
    cas,
    profiles,
    key: (ca) => {
      const key = world.keys.get(ca)!;
      const { publicKey } = faults.wrap('key', { publicKey: () => key.publicKey() });
      return { keyId: key.keyId, publicKey, signer: (algorithm) => faults.wrap('signer', key.signer(algorithm)) };
    },
    store: faults.wrap('store', storeOf(world)),
    signatures: faults.wrap('signatures', noRevocations.signatures),
    origin: () => ({ now, randomBytes }),
    ...change,
  };
  const cloudFormation = faults.wrap('cloudFormation', {
    respond: async (url: string, response: ResourceResponse) => {
      expect(url).toBe('https://bucket.example/secret');
      responses.push(response);
    },
  });
  const handler = createCaHandler({
    connect: () => ports,
    respond: cloudFormation.respond,
    wait: async (milliseconds) => void waited.push(milliseconds),
    log: (entry) => log.push(entry),
  });
  return { handler, responses, log, waited };
}

const event = (RequestType: string, more: object = {}) => ({
  RequestType,
  ResponseURL: 'https://bucket.example/secret',
  StackId: 'arn:aws:cloudformation:eu-central-1:111122223333:stack/countersign-prod/1',
  RequestId: 'r-1',
  LogicalResourceId: 'Cas',
  ResourceType: 'Custom::CountersignCas',
  ...more,
});

const operator = async (run: Run, request: object): Promise<readonly CaAnswer[]> =>
  ((await run.handler(request)) as OperatorAnswer).cas;

describe('an operator', () => {
  test('makes all CAs with one call, or one by name, each as the configuration says', async () => {
    const world = newWorld();
    const run = start(world);
    const [nodes] = await operator(run, { action: 'init', ca: 'nodes' });
    if (nodes?.ok !== true) throw new Error('no CA');
    expect(nodes).toMatchObject({ name: 'nodes', created: true, signatureAlgorithm: 'ECDSA_SHA_256' });
    const certificate = new X509Certificate(nodes.certificatePem);
    expect(certificate.subject).toBe('CN=prod nodes');
    expect(certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey) && certificate.ca).toBe(
      true,
    );
    expect(certificate.publicKey.export({ type: 'spki', format: 'der' })).toEqual(Buffer.from(publicKeyInfo(nodesKey)));
    expect([certificate.validFromDate, certificate.validToDate].map((date) => date.toISOString())).toEqual([
      '2026-06-01T11:55:00.000Z',
      '2026-09-09T12:00:00.000Z',
    ]);
    expect([...world.records.keys()]).toEqual(['nodes']);

    const all = await operator(run, { action: 'init' });
    expect(all.map((ca) => [ca.name, ca.ok && ca.created])).toEqual([
      ['nodes', false],
      ['web', true],
    ]);
    expect(all[0]).toEqual({ ...nodes, created: false });
    expect(world.signatures).toBe(2);
    expect(run.log).toEqual([
      { level: 'info', action: 'init', cluster: 'prod', cas: { nodes: 'made' }, daysLeft: { nodes: 100 } },
      {
        level: 'info',
        action: 'init',
        cluster: 'prod',
        cas: { nodes: 'there', web: 'made' },
        daysLeft: { nodes: 100, web: 3650 },
      },
    ]);
  });

  test('sees what is there, and what is not', async () => {
    const run = start(newWorld());
    expect(await operator(run, { action: 'show', ca: 'web' })).toMatchObject([{ ok: false, why: 'Missing' }]);
    expect(await operator(run, { action: 'show', ca: 'x' })).toMatchObject([{ ok: false, why: 'UnknownCa' }]);
    const made = await operator(run, { action: 'init' });
    expect(await operator(run, { action: 'show' })).toEqual(made.map((ca) => ({ ...ca, created: false })));
  });

  test.each([
    {},
    null,
    'init',
    { action: 'delete' },
    { action: 'init', ca: 1 },
    { action: 'rotate' },
    { action: 'init', ca: 'web', requestContext: {} },
    event('Rotate'),
  ])('with any other call gets nothing: %j', async (request) => {
    const world = newWorld();
    await expect(start(world).handler(request)).rejects.toThrow(TypeError);
    expect(world.records.size).toBe(0);
  });
});

test('of invocations at the same time one creates the CA, and all return its certificate', async () => {
  const world = newWorld();
  const store = storeOf(world);
  const everyoneSawNone = createBarrier(5);
  const late: CaStore = {
    find: async (name) => {
      const found = await store.find(name);
      if (found === undefined) await everyoneSawNone.pass();
      return found;
    },
    add: (record) => store.add(record),
  };
  const answers = await Promise.all(
    Array.from({ length: 5 }, () =>
      operator(start(world, createFaults(), { store: late }), { action: 'init', ca: 'nodes' }),
    ),
  );
  const cas = answers.map(([ca]) => ca).filter((ca) => ca?.ok === true);
  expect(cas.filter(({ created }) => created)).toHaveLength(1);
  expect(cas).toHaveLength(5);
  expect(new Set(cas.map(({ certificatePem }) => certificatePem)).size).toBe(1);
  expect(world.signatures).toBe(5);
});

test('two Regions with replicas of one key: who trusts the one CA trusts the certificates of the other', async () => {
  const facts = [];
  for (const world of [newWorld(), newWorld()]) {
    await start(world).handler({ action: 'init', ca: 'nodes' });
    facts.push(certificateFacts(world.records.get('nodes')!.certificate));
  }
  const [here, there] = facts;
  // A verifier finds the issuer by its name and the key's identifier, and verifies by its key.
  expect(there!.subjectName).toEqual(here!.subjectName);
  expect(there!.spki).toEqual(here!.spki);
  const identifier = extensionType.subjectKeyIdentifier;
  expect(there!.extensions.get(identifier)).toEqual(here!.extensions.get(identifier));
  expect(there!.extensions.get(identifier)).toBeDefined();
  expect(there!.fingerprintSha256).not.toBe(here!.fingerprintSha256);
});

describe('what is there is never replaced, and not used unless it fits', () => {
  async function afterInit(change: (record: CaRecord) => CaRecord): Promise<World> {
    const world = newWorld();
    await start(world).handler({ action: 'init' });
    world.records.set('nodes', change(world.records.get('nodes')!));
    return world;
  }
  test.each([
    ['a CA made with another key', (record: CaRecord) => ({ ...record, keyId: 'embedded:other' }), 'OtherKey'],
    [
      'a certificate of another key',
      (record: CaRecord) => record,
      'CertificateMismatch',
      async () => ({ spki: publicKeyInfo(await generateKey('P-256')), algorithms: ['ECDSA_SHA_256'] }),
    ],
    [
      'a key that signs otherwise',
      (record: CaRecord) => record,
      'AlgorithmMismatch',
      async () => ({ spki: publicKeyInfo(nodesKey), algorithms: ['ECDSA_SHA_384'] }),
    ],
    [
      'bytes that are no certificate',
      (record: CaRecord) => ({ ...record, certificate: Uint8Array.of(1) }),
      'CertificateMismatch',
    ],
    [
      'a certificate somebody changed',
      (record: CaRecord) => {
        const certificate = Uint8Array.from(record.certificate);
        certificate[certificate.length - 20]! ^= 1;
        return { ...record, certificate };
      },
      'CertificateMismatch',
    ],
  ] as const)('%s', async (_, change, why, publicKey?: CaKey['publicKey']) => {
    const world = await afterInit(change);
    const before = [...world.records];
    const [key, signatures] = [world.keys.get('nodes')!, world.signatures];
    if (publicKey !== undefined) (world.keys as Map<string, CaKey>).set('nodes', { ...key, publicKey });
    for (const action of ['init', 'show'])
      expect(await operator(start(world), { action, ca: 'nodes' })).toMatchObject([{ ok: false, why }]);
    const deployed = start(world);
    await deployed.handler(event('Update', { PhysicalResourceId: 'countersign-cas' }));
    expect(deployed.responses).toMatchObject([{ Status: 'FAILED' }]);
    expect(deployed.log.at(-1)).toMatchObject({ level: 'error' });
    expect([...world.records]).toEqual(before);
    expect(world.signatures).toBe(signatures);
  });

  test('a key that cannot sign as configured makes no CA', async () => {
    const key = newWorld().keys.get('nodes')!;
    const other = { spki: publicKeyInfo(nodesKey), algorithms: ['RSASSA_PSS_SHA_256'] };
    const world = newWorld({ nodes: { ...key, publicKey: async () => other } });
    expect(await operator(start(world), { action: 'init', ca: 'nodes' })).toMatchObject([{ why: 'AlgorithmMismatch' }]);
    expect([world.records.size, world.signatures]).toEqual([0, 0]);
  });
});

describe('CloudFormation', () => {
  test('is told the fingerprints, on creation and on each update, under one id for good', async () => {
    const world = newWorld();
    const run = start(world);
    await run.handler(event('Create'));
    await run.handler(event('Update', { PhysicalResourceId: 'countersign-cas' }));
    const fingerprint = (name: string) =>
      createHash('sha256').update(world.records.get(name)!.certificate).digest('hex');
    const told = {
      Status: 'SUCCESS',
      PhysicalResourceId: 'countersign-cas',
      StackId: 'arn:aws:cloudformation:eu-central-1:111122223333:stack/countersign-prod/1',
      RequestId: 'r-1',
      LogicalResourceId: 'Cas',
      Data: { nodes: fingerprint('nodes'), web: fingerprint('web') },
    };
    expect(run.responses).toEqual([told, told]);
    expect(world.signatures).toBe(2);
  });

  test('may delete its resource; the CAs stay', async () => {
    const world = newWorld();
    const run = start(world);
    await run.handler(event('Create'));
    const faults = createFaults();
    const gone = start(world, faults);
    await gone.handler(event('Delete', { PhysicalResourceId: 'countersign-cas' }));
    expect(gone.responses).toMatchObject([{ Status: 'SUCCESS', PhysicalResourceId: 'countersign-cas' }]);
    expect(faults.calls.map(({ port }) => port)).toEqual(['cloudFormation']);
    expect(world.records.size).toBe(2);
  });

  test('waits while a new role is not known everywhere', async () => {
    const world = newWorld();
    const there = storeOf(world);
    let denied = 6;
    const store: CaStore = {
      ...there,
      find: (name) => (denied-- > 0 ? Promise.reject(new MisconfigurationError('AccessDenied')) : there.find(name)),
    };
    const run = start(world, createFaults(), { store });
    await run.handler(event('Create'));
    expect(run.responses).toMatchObject([{ Status: 'SUCCESS' }]);
    expect(run.waited).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 20_000]);
  });

  test('hears of a failure, with the reason, when it does not end', async () => {
    const faults = createFaults({ call: 1, time: 'before', kind: 'crash' });
    const responses: ResourceResponse[] = [];
    const handler = createCaHandler({
      connect: () => ({
        ...noRevocations,
        cluster: 'prod',
        cas,
        profiles,
        key: () => newWorld().keys.get('nodes')!,
        store: faults.wrap('store', storeOf(newWorld())),
        origin: () => ({ now, randomBytes }),
      }),
      respond: async (_, response) => void responses.push(response),
      wait: async () => {},
      log: () => {},
    });
    await handler(event('Create'));
    expect(responses).toMatchObject([{ Status: 'FAILED', Reason: expect.stringContaining('InjectedFault') as string }]);
  });

  test('hears of a function that was not put together right', async () => {
    const { responses } = start(newWorld());
    const log: OperatorLogEntry[] = [];
    const handler = createCaHandler({
      connect: () => {
        throw new MisconfigurationError('COUNTERSIGN_CLUSTER is not prod');
      },
      respond: async (_, response) => void responses.push(response),
      wait: async () => {},
      log: (entry) => log.push(entry),
    });
    await handler(event('Create'));
    expect(responses).toMatchObject([
      { Status: 'FAILED', Reason: 'MisconfigurationError: COUNTERSIGN_CLUSTER is not prod' },
    ]);
    expect(log).toMatchObject([{ level: 'error' }]);
    expect(JSON.stringify(log)).not.toContain('secret');
    await expect(handler({ action: 'show' })).rejects.toThrow('COUNTERSIGN_CLUSTER');
  });
});

test('whatever call fails or is the last of its process: in the end there is one CA, and only one that anybody saw', async () => {
  for (const request of [{ action: 'init', ca: 'nodes' }, event('Create')]) {
    const visited = await visitEveryFault(
      async (faults) => {
        const world = newWorld();
        const seen = new Set<string>();
        const note = () => {
          const record = world.records.get('nodes');
          if (record !== undefined) seen.add(Buffer.from(record.certificate).toString('hex'));
        };
        // CloudFormation and operators call again; a dead process is followed by one that works.
        for (let attempt = 0; attempt < 4; attempt++) {
          const failed = await start(world, faults.crashed ? createFaults() : faults)
            .handler(request)
            .then(
              () => false,
              () => true,
            );
          note();
          if (!failed && !faults.crashed) break;
        }
        const last = start(world);
        const [nodes] = await operator(last, { action: 'init', ca: 'nodes' });
        note();
        expect(nodes).toMatchObject({ ok: true, created: false });
        expect(seen.size).toBe(1);
        const perCa = 'ResponseURL' in request ? cas.size : 1;
        expect(world.signatures).toBeLessThanOrEqual(perCa + faults.injected.length);
      },
      { depth: byTier({ default: 1, deep: 2 }) },
    );
    const points = new Set(visited.flat().map(({ port, method }) => `${port}.${method}`));
    expect([...points].toSorted()).toEqual([
      ...('ResponseURL' in request ? ['cloudFormation.respond'] : []),
      'key.publicKey',
      'signatures.put',
      'signer.sign',
      'store.add',
      'store.find',
    ]);
  }
});

test('two at once make one CA, and both are given it', async () => {
  const world = newWorld();
  const answers = await Promise.all([1, 2, 3].map(() => operator(start(world), { action: 'init', ca: 'nodes' })));
  const made = answers.flat().map((ca) => (ca.ok ? ca : undefined));
  expect(made.filter((ca) => ca?.created === true)).toHaveLength(1);
  expect(new Set(made.map((ca) => ca?.certificatePem)).size).toBe(1);
});
