/** The ca and the sign function over real KMS keys and a real table: made once, checked at start, and never trusted blindly. */
import { noRevocations } from '../../../harness/stack/no-crls.ts';
import { randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import {
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
} from '@aws-sdk/client-dynamodb';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { CreateKeyCommand, DisableKeyCommand, EnableKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import type { KeySpec } from '@aws-sdk/client-kms';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { dynamoDbCaStore } from '../../../../adapters/dynamodb/ca.ts';
import { ledgerClientConfig } from '../../../../adapters/dynamodb/ledger.ts';
import { kmsClientConfig } from '../../../../adapters/aws/kms-client.ts';
import { kmsKey } from '../../../../adapters/aws/kms-signer.ts';
import type { HttpAnswer } from '../../../../adapters/lambda/http.ts';
import { loopbackCaller } from '../../../../dev/serve/loopback-caller.ts';
import { createAuthority } from '../../../../core/ca/create-authority.ts';
import type { CaRecord } from '../../../../core/ca/authority.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import type { CaConfiguration, ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { createCaHandler } from '../../../../lambdas/ca/handler.ts';
import type { CaHandler } from '../../../../lambdas/ca/handler.ts';
import type { OperatorAnswer } from '../../../../lambdas/ca/actions/cas.ts';
import type { CallLogEntry } from '../../../../adapters/lambda/log.ts';
import { createSignService } from '../../../../lambdas/sign/service.ts';
import { startAwsProxy } from '../../../harness/aws/proxy.ts';
import type { AwsProxy } from '../../../harness/aws/proxy.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { createAttestationsTable, createCertificatesTable } from '../../../harness/aws/tables.ts';
import { csrFixture, eventFixture } from '../../../unit/lambdas/sign/stack.ts';
import { bothEmulators, describeOnEmulators, patience } from './emulators.ts';

const cluster = clusterOf('{subject: {commonName: prod}}');

function clusterOf(ca: string): ClusterConfiguration {
  const parsed = parseConfiguration(
    `{version: 1, clusters: {prod: {cas: {ca: ${ca}}, profiles: {kubernetes.io/kube-apiserver-client-kubelet: {}}}}}`,
    'countersign.yaml',
  );
  if (!parsed.ok) throw new Error(parsed.problem.map(({ message }) => message).join('; '));
  return parsed.value.configuration.clusters.get('prod')!;
}

describeOnEmulators(byTier({ default: ['MiniStack'], deep: bothEmulators }), (_, emulator) => {
  let proxy: AwsProxy;
  let dynamodb: DynamoDBClient;
  let kms: KMSClient;
  beforeAll(async () => {
    proxy = await startAwsProxy(emulator().url);
    const options = { ...emulator().client, endpoint: proxy.url };
    dynamodb = new DynamoDBClient({ ...options, ...ledgerClientConfig, requestHandler: patience });
    kms = new KMSClient({ ...options, ...kmsClientConfig, requestHandler: patience });
  });
  afterAll(async () => {
    dynamodb.destroy();
    kms.destroy();
    await proxy.close();
  });

  let table: string;
  let attestationsTable: string;
  let keyArn: string;
  beforeEach(async () => {
    proxy.inject = () => undefined;
    table = await createCertificatesTable(dynamodb, `service-${randomUUID()}`);
    attestationsTable = await createAttestationsTable(dynamodb, `service-${randomUUID()}`);
    keyArn = await createKey('ECC_NIST_P256');
  });

  async function createKey(spec: KeySpec): Promise<string> {
    const made = await kms.send(new CreateKeyCommand({ KeySpec: spec, KeyUsage: 'SIGN_VERIFY' }));
    return made.KeyMetadata!.Arn!;
  }

  /** As in a new process. */
  function caFunction(of: ClusterConfiguration = cluster, arn = keyArn): CaHandler {
    return createCaHandler({
      connect: () => ({
        ...noRevocations,
        cluster: of.name,
        cas: of.cas,
        profiles: of.profiles,
        key: () => kmsKey(kms, arn),
        store: dynamoDbCaStore(dynamodb, table),
        origin: () => ({ now: Date.now(), randomBytes }),
      }),
      respond: async () => {},
      wait: async () => {},
      log: () => {},
    });
  }
  const initialise = async (...given: Parameters<typeof caFunction>) =>
    ((await caFunction(...given)({ action: 'init' })) as OperatorAnswer).cas[0]!;

  // No profile here demands a proof.
  const noLambda = (): never => {
    throw new Error('this test allows no invocation of attest');
  };

  /** As in a new process, with what it logs. */
  function signFunction(of: ClusterConfiguration = cluster, arn = keyArn) {
    const log: CallLogEntry[] = [];
    const handler = createSignService(
      of,
      { certificatesTable: table, attestationsTable, caKeys: new Map([...of.cas.keys()].map((name) => [name, arn])) },
      {
        caller: loopbackCaller,
        dynamodb,
        kms,
        lambda: noLambda,
        now: Date.now,
        randomBytes,
        log: (entry) => log.push(entry),
      },
    );
    const post = (object: object): Promise<HttpAnswer> =>
      handler(eventFixture({ method: 'POST', path: '/v1/clusters/prod/sign', body: JSON.stringify(object) }));
    const get = (path: string): Promise<HttpAnswer> => handler(eventFixture({ path }));
    return { log, post, get };
  }

  test('a CA that awaits its import holds up neither what is published nor the CA that it replaces', async () => {
    const made = await initialise();
    if (!made.ok) throw new Error(made.message);
    const { name: replaces, keySpec, signatureAlgorithm, subject, pathLen } = cluster.cas.get('ca')!;
    const next: CaConfiguration = {
      name: 'next',
      replaces,
      keySpec,
      signatureAlgorithm,
      subject,
      pathLen,
      kind: 'imported',
      keyMaterial: 'kms',
    };
    const sign = signFunction({ ...cluster, cas: new Map([...cluster.cas, ['next', next]]) });
    for (const path of ['trust-bundle', 'trust-bundles', 'revoked', 'healthz'])
      expect([path, (await sign.get(`/v1/clusters/prod/${path}`)).statusCode]).toEqual([path, 200]);
    expect((await sign.get('/v1/clusters/prod/trust-bundle')).body).toBe(made.certificatePem);
    expect((await sign.get('/v1/clusters/prod/trust-bundle/next')).statusCode).toBe(503);
    expect((await sign.post(csrFixture())).statusCode).toBe(200);
  });

  test('a CA is made, shown, trusted, and signs', async () => {
    const made = await initialise();
    if (!made.ok) throw new Error(made.message);
    const ca = new X509Certificate(made.certificatePem);
    const sign = signFunction();
    expect((await sign.get('/v1/clusters/prod/trust-bundle')).body).toBe(made.certificatePem);

    const object = csrFixture();
    const before = proxy.count('TrentService.Sign');
    const answers = [await sign.post(object), await sign.post(object), await signFunction().post(object)];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
    const [leaf, again, elsewhere] = answers.map(certificateIn);
    expect([again?.raw, elsewhere?.raw]).toEqual([leaf?.raw, leaf?.raw]);
    expect(leaf?.checkIssued(ca) === true && leaf.verify(ca.publicKey)).toBe(true);
    expect(proxy.count('TrentService.Sign') - before).toBe(1);

    const reads = proxy.calls.filter(({ operation }) => operation.endsWith('.GetItem'));
    expect(reads.map(({ body }) => JSON.parse(body.toString('utf8')) as object)).toEqual(
      reads.map(() => expect.objectContaining({ ConsistentRead: true }) as object),
    );

    const { Items: items = [] } = await dynamodb.send(new ScanCommand({ TableName: table, ConsistentRead: true }));
    expect(items.map((item) => item['pk']?.S ?? '').toSorted()).toEqual([
      'ca#ca',
      `ca#ca#${ca.fingerprint256.replaceAll(':', '').toLowerCase()}`,
      `uid#${object.metadata.uid}`,
    ]);
  });

  test('a process asks for its CA once, and again only after a failure', async () => {
    const sign = signFunction();
    const object = csrFixture();
    expect((await sign.post(object)).statusCode).toBe(503);
    expect(sign.log.at(-1)).toMatchObject({
      level: 'error',
      why: 'Internal',
      error: { message: 'there is no CA ca yet' },
    });
    await initialise();
    expect((await sign.post(object)).statusCode).toBe(200);
    const before = proxy.count('TrentService.GetPublicKey');
    for (let i = 0; i < 3; i++) expect((await sign.post(csrFixture())).statusCode).toBe(200);
    expect(proxy.count('TrentService.GetPublicKey') - before).toBe(0);
  });

  test('many at once in one new process load the CA once', async () => {
    await initialise();
    const sign = signFunction();
    const before = proxy.count('TrentService.GetPublicKey');
    const objects = Array.from({ length: 8 }, () => csrFixture());
    const answers = await Promise.all(objects.map((object) => sign.post(object)));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(objects.map(() => 200));
    expect(proxy.count('TrentService.GetPublicKey') - before).toBe(1);
  });

  describe('nothing is signed, and an alarm is raised,', () => {
    /** Changes the CA item in the table, as an attacker who may write it could. */
    async function tamper(change: (item: Record<string, AttributeValue>) => void): Promise<void> {
      const pk = `ca#ca#${new X509Certificate(certificateOf(await initialise())).fingerprint256.replaceAll(':', '').toLowerCase()}`;
      const { Item: item } = await dynamodb.send(new GetItemCommand({ TableName: table, Key: { pk: { S: pk } } }));
      change(item!);
      await dynamodb.send(new PutItemCommand({ TableName: table, Item: item! }));
    }

    /** A CA certificate that is right in itself, for another key. */
    async function foreignCertificate(): Promise<Uint8Array> {
      const kept: CaRecord[] = [];
      const add = async (record: CaRecord) => kept.push(record) > 0;
      const store = { find: async () => kept[0], add };
      const key = kmsKey(kms, await createKey('ECC_NIST_P256'));
      const origin = () => ({ now: Date.now(), randomBytes });
      await createAuthority(cluster.cas.get('ca')!, { cas: cluster.cas, key: () => key, store, origin });
      return kept[0]!.certificate;
    }

    test.each<readonly [string, () => Promise<ReturnType<typeof signFunction>>, RegExp]>([
      [
        'when the certificate is another key’s',
        async () => {
          const cert = await foreignCertificate();
          await tamper((item) => (item['cert'] = { B: cert }));
          return signFunction();
        },
        /its key is not the CA key/,
      ],
      [
        'when the CA was made with another key than the configured one',
        async () => {
          await initialise();
          return signFunction(cluster, await createKey('ECC_NIST_P256'));
        },
        /was made with another key/,
      ],
      [
        'when the configured key is another, and an attacker wrote that one into the record',
        async () => {
          const other = await createKey('ECC_NIST_P256');
          await tamper((item) => (item['caKeyId'] = { S: other }));
          return signFunction(cluster, other);
        },
        /its key is not the CA key/,
      ],
      [
        'when the key does not sign as configured',
        async () => {
          await initialise();
          return signFunction(clusterOf('{subject: {commonName: prod}, keySpec: P-384}'));
        },
        /does not sign with ECDSA_SHA_384/,
      ],
      [
        'when the bytes are no certificate',
        async () => {
          await tamper((item) => (item['cert'] = { B: Uint8Array.of(0x30, 0) }));
          return signFunction();
        },
        /cannot be used/,
      ],
      [
        'when the record cannot be read',
        async () => {
          await tamper((item) => delete item['caKeyId']);
          return signFunction();
        },
        /cannot be read/,
      ],
      [
        'when the certificate is gone',
        async () => {
          await tamper(() => {});
          const { Items: items = [] } = await dynamodb.send(new ScanCommand({ TableName: table }));
          const pk = items.map((item) => item['pk']!).find(({ S: key }) => key!.startsWith('ca#ca#'))!;
          await dynamodb.send(new DeleteItemCommand({ TableName: table, Key: { pk } }));
          return signFunction();
        },
        /is not in the table/,
      ],
      [
        'when the table is not there',
        async () => {
          await initialise();
          table = 'missing';
          return signFunction();
        },
        /the table cannot be used/,
      ],
    ])('%s', async (__, prepare, message) => {
      const sign = await prepare();
      const before = proxy.count('TrentService.Sign');
      const object = csrFixture();
      for (let attempt = 1; attempt <= 2; attempt++) {
        const answer = await sign.post(object);
        expect([answer.statusCode, answer.headers['x-countersign-outcome']]).toEqual([503, 'busy']);
        expect(answer.body).not.toMatch(/CERTIFICATE|arn:/);
        expect(sign.log).toHaveLength(attempt);
        expect(sign.log.at(-1)).toMatchObject({ level: 'error', why: 'Internal' });
        expect(JSON.stringify(sign.log.at(-1)?.error)).toMatch(message);
      }
      expect((await sign.get('/v1/clusters/prod/trust-bundle')).statusCode).toBe(503);
      expect(proxy.count('TrentService.Sign') - before).toBe(0);
    });

    test('when the key is disabled, until it is enabled again', async () => {
      await initialise();
      await kms.send(new DisableKeyCommand({ KeyId: keyArn }));
      const sign = signFunction();
      const object = csrFixture();
      expect((await sign.post(object)).statusCode).toBe(503);
      expect(sign.log.at(-1)).toMatchObject({ level: 'error', why: 'Internal' });
      await kms.send(new EnableKeyCommand({ KeyId: keyArn }));
      expect((await sign.post(object)).statusCode).toBe(200);
    });
  });

  test('slowing down and passing faults raise no alarm, and the next delivery signs', async () => {
    await initialise();
    for (const [fault, why] of [
      ['throttled', 'Throttled'],
      ['failed', 'Unavailable'],
    ] as const) {
      const sign = signFunction();
      const object = csrFixture();
      let faults = 0;
      proxy.inject = ({ operation }) => (operation === 'TrentService.Sign' && faults++ === 0 ? fault : undefined);
      const before = proxy.count('TrentService.Sign');
      expect((await sign.post(object)).statusCode).toBe(503);
      expect(sign.log.at(-1)).toMatchObject({ why, level: why === 'Unavailable' ? 'warn' : 'info' });
      expect((await sign.post(object)).statusCode).toBe(200);
      // One for the certificate, one for the fault.
      expect(proxy.count('TrentService.Sign') - before).toBe(2);
    }
  });

  test('a call that was reset is repeated in the same delivery', async () => {
    await initialise();
    for (const fault of ['lost', 'answerLost'] as const) {
      let faults = 0;
      proxy.inject = ({ operation }) => (operation === 'TrentService.Sign' && faults++ === 0 ? fault : undefined);
      const before = proxy.count('TrentService.Sign');
      expect((await signFunction().post(csrFixture())).statusCode).toBe(200);
      expect(proxy.count('TrentService.Sign') - before).toBe(2);
    }
  });

  test('a CA is made once by many who try at once, whatever answers are lost', async () => {
    let count = 0;
    const faults = ['answerLost', undefined, 'lost', undefined, 'throttled'] as const;
    proxy.inject = ({ operation }) => (operation.endsWith('.TransactWriteItems') ? faults[count++ % 5] : undefined);
    const tries = await Promise.allSettled(Array.from({ length: 6 }, () => initialise()));
    proxy.inject = () => undefined;
    const last = await initialise();
    const given = tries.flatMap((settled) => (settled.status === 'fulfilled' ? [certificateOf(settled.value)] : []));
    expect(given.length).toBeGreaterThan(0);
    expect(new Set([...given, certificateOf(last)]).size).toBe(1);
    expect(last).toMatchObject({ ok: true, created: false });
  });

  test('a second key under the name of a CA changes nothing', async () => {
    const first = await initialise();
    const second = await createKey('ECC_NIST_P256');
    expect(await initialise(cluster, second)).toMatchObject({ ok: false, why: 'OtherKey' });
    expect(await initialise()).toEqual({ ...first, created: false });
  });
});

function certificateIn({ body }: HttpAnswer): X509Certificate {
  const { status } = JSON.parse(body) as { status: { certificate: string } };
  return new X509Certificate(Buffer.from(status.certificate, 'base64'));
}

function certificateOf(ca: OperatorAnswer['cas'][number]): string {
  if (!ca.ok) throw new Error(ca.message);
  return ca.certificatePem;
}
