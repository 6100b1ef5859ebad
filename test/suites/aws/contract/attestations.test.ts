import { randomBytes, randomUUID } from 'node:crypto';
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { dynamoDbAttestations } from '../../../../adapters/dynamodb/attestations.ts';
import { ledgerClientConfig } from '../../../../adapters/dynamodb/ledger.ts';
import { dynamoDbAttestationAdmin } from '../../../../adapters/dynamodb/attestation-admin.ts';
import type { Claim } from '../../../../core/ports/attestation-store.ts';
import { ThrottledError } from '../../../../core/ports/errors.ts';
import { hour, now, sceneOf, spent } from '../../../contract/attestation-scene.ts';
import type { Scene, StoreUnderTest } from '../../../contract/attestation-scene.ts';
import { attestationStoreContract } from '../../../contract/attestation-store.ts';
import { dynamoDbUnderTest } from '../../../contract/dynamodb-attestations.ts';
import { startAwsProxy } from '../../../harness/aws/proxy.ts';
import type { AwsCall, AwsFault, AwsProxy } from '../../../harness/aws/proxy.ts';
import { createAttestationsTable } from '../../../harness/aws/tables.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { bothEmulators, describeOnEmulators, patience } from './emulators.ts';

const adapter = { dynamoDbAttestations, dynamoDbAttestationAdmin };

describeOnEmulators(byTier({ default: ['DynamoDB Local'], deep: bothEmulators }), (name, emulator) => {
  const config = () => ({ ...emulator().client, ...ledgerClientConfig, requestHandler: patience });
  attestationStoreContract(`DynamoDB (${name})`, () => dynamoDbUnderTest(adapter, config()));

  describe('between it and the SDK', () => {
    let proxy: AwsProxy;
    let client: DynamoDBClient;
    let direct: DynamoDBClient;
    let tableName: string;
    /** Through the proxy. */
    let made: StoreUnderTest;
    /** Around it. */
    let around: StoreUnderTest;
    const open = (through: DynamoDBClient): StoreUnderTest => {
      const options = { client: through, tableName, randomBytes };
      const store = dynamoDbAttestations(options);
      const handles = { store, register: dynamoDbAttestationAdmin(options) };
      return { ...handles, other: store, reopen: async () => handles, close: async () => {} };
    };
    beforeAll(async () => {
      proxy = await startAwsProxy(emulator().url);
      direct = new DynamoDBClient(config());
      tableName = await createAttestationsTable(direct, `faults-${randomUUID()}`);
      around = open(direct);
    });
    // A client of its own for each: one that has tried again too often stops doing so.
    beforeEach(() => {
      client = new DynamoDBClient({ ...config(), endpoint: proxy.url });
      made = open(client);
    });
    afterEach(() => client.destroy());
    afterAll(async () => {
      direct.destroy();
      await proxy.close();
    });

    /** Lets the next calls fail so, one after the other, and gives all that were made. */
    async function during<T>(
      faults: readonly (AwsFault | undefined)[],
      work: () => Promise<T>,
    ): Promise<{ readonly answer: T; readonly calls: readonly AwsCall[] }> {
      const plan = [...faults];
      const before = proxy.calls.length;
      proxy.inject = () => plan.shift();
      try {
        return { answer: await work(), calls: proxy.calls.slice(before) };
      } finally {
        proxy.inject = () => undefined;
      }
    }

    /** Each kind of write, with how it is seen that it was done exactly once. */
    const writes: readonly (readonly [
      name: string,
      prepare: (scene: Scene) => Promise<(through: StoreUnderTest) => Promise<{ readonly kind: string }>>,
      left: object,
    ])[] = [
      [
        'a first use',
        async (scene) => {
          const claim = scene.first({ once: [spent(scene.p)], audit: [scene.audit()] }, { addresses: [scene.x] });
          return ({ store }) => store.claim(claim, now);
        },
        { state: 'active', rev: 1 },
      ],
      [
        'a later use',
        async (scene) => {
          const claim = scene.again(await scene.done(scene.first()), {
            once: [spent(scene.p)],
            audit: [scene.audit()],
          });
          return ({ store }) => store.claim(claim, now);
        },
        { state: 'active', rev: 2, uses: 2 },
      ],
      [
        'a lock',
        async (scene) => {
          const { identity, nodeName } = await scene.done(scene.first());
          const audit = scene.audit({ action: 'lock', nodeName });
          const { id, at, by, reason } = audit;
          return ({ register }) => register.lock({ id, at, by, reason, identity, nodeName }, audit);
        },
        { state: 'active', rev: 1 },
      ],
      [
        'a retirement',
        async (scene) => {
          const record = await scene.done(scene.first({}, { addresses: [scene.x] }));
          const retirement = { nameFreeAt: now + hour, audit: scene.audit({ action: 'retire' }) };
          return ({ store }) => store.retire(record, retirement);
        },
        { state: 'retired', rev: 2, addresses: [], retiredAt: now, nameFreeAt: now + hour },
      ],
      [
        'an adoption',
        async (scene) => {
          const { spkiSha256: _, ...bare } = scene.record();
          const audit = scene.audit({ action: 'adopt' });
          return ({ register }) => register.adopt(bare, audit);
        },
        { state: 'active', rev: 1 },
      ],
      [
        'an entry of a pattern',
        async (scene) => {
          const about = { addresses: [], dnsNames: [], addedAt: now, by: 'eve', reason: 'new' };
          const entry = { ...about, name: `aws#${randomUUID()}*` };
          await scene.done(scene.first());
          const audit = scene.audit({ action: 'allow' });
          return ({ register }) => register.allowMachine(entry, audit);
        },
        { rev: 1 },
      ],
    ];

    // In the default tier a write of the store and one of its administration: what is tested is the SDK's repetition, the same
    // for all writes.
    const essential = writes.filter(([write]) => write === 'a first use' || write === 'a lock');
    const planned = byTier({ default: essential, deep: writes });
    describe.each(planned)('%s', (_, prepare, left) => {
      test.each<readonly [string, readonly AwsFault[]]>([
        ['a call that never arrived is made again', ['lost']],
        ['a call whose answer was lost is made again, and known for what it did', ['answerLost']],
        ['so it is after two lost answers', ['answerLost', 'answerLost']],
        ['and after a lost answer and a lost call', ['answerLost', 'lost']],
        ['a server error is tried again', ['failed']],
        ['one that met another transaction is tried again', ['conflict']],
        ['and once more, and it was done before', ['answerLost', 'conflict', 'conflict']],
        ['one that meets itself waits for its end', ['answerLost', 'inProgress']],
      ])('%s', async (__, faults) => {
        const scene = sceneOf(around);
        const write = await prepare(scene);
        const { answer, calls } = await during(faults, () => write(made));
        expect(answer).toEqual({ kind: 'written' });
        expect(calls.length).toBe(faults.length + 1);
        // One transaction to DynamoDB, however often it was sent.
        expect(new Set(calls.map(({ body }) => body.toString())).size).toBe(1);
        expect(JSON.parse(calls[0]!.body.toString())).toHaveProperty('ClientRequestToken');
        expect(await scene.store.findIdentity(scene.a)).toMatchObject(left);
        expect(await scene.audited()).toHaveLength(1);
      });

      test('three lost answers throw, the effect stays, and the same again writes nothing', async () => {
        const scene = sceneOf(around);
        const write = await prepare(scene);
        await expect(during(['answerLost', 'answerLost', 'answerLost'], () => write(made))).rejects.toThrow();
        expect(await scene.store.findIdentity(scene.a)).toMatchObject(left);
        const before = await scene.state();
        // By another call: a use is told its own verdict, an audit item that is there already throws.
        const again = await write(made).catch(() => undefined);
        expect(again?.kind).not.toBe('written');
        expect(await scene.state()).toEqual(before);
        expect(await scene.audited()).toHaveLength(1);
      });

      test.each<readonly [string, readonly AwsFault[]]>([
        ['throttling', ['throttled', 'throttled', 'throttled']],
        ['meeting other transactions', Array.from({ length: 6 }, () => 'conflict' as const)],
      ])('%s without end is a ThrottledError, and nothing was written', async (__, faults) => {
        const scene = sceneOf(around);
        const write = await prepare(scene);
        const before = await scene.state();
        await expect(during(faults, () => write(made))).rejects.toBeInstanceOf(ThrottledError);
        expect(await scene.state()).toEqual(before);
        expect(await scene.audited()).toHaveLength(0);
      });
    });

    test('the very claim that another worker made is told as its verdict, not taken for our own', async () => {
      const scene = sceneOf(around);
      const claim = scene.first();
      await scene.done(claim);
      const { answer } = await during(['lost'], () => made.store.claim(claim, now));
      expect(answer).toEqual({ kind: 'verdict', found: claim.verdict });
    });

    /** As a stand-in would that knows no tokens, or DynamoDB after ten minutes. */
    test('without the memory of tokens a lost answer is still known by what it wrote', async () => {
      const forgetful = new DynamoDBClient({ ...config(), endpoint: proxy.url });
      forgetful.middlewareStack.add(
        (next) => (args) => {
          const request = args.request as { body: Uint8Array };
          const text = new TextDecoder().decode(request.body);
          const { ClientRequestToken: _, ...body } = JSON.parse(text) as Record<string, unknown>;
          request.body = Buffer.from(JSON.stringify(body));
          return next(args);
        },
        { step: 'build', priority: 'high' },
      );
      const options = { client: forgetful, tableName, randomBytes };
      const [store, register] = [dynamoDbAttestations(options), dynamoDbAttestationAdmin(options)];
      const scene = sceneOf(around);
      const claim = scene.first({ once: [spent(scene.p)] });
      const use = await during(['answerLost'], () => store.claim(claim, now));
      expect(use.answer).toEqual({ kind: 'written' });
      expect(use.calls).toHaveLength(2);
      expect(JSON.parse(use.calls[0]!.body.toString())).not.toHaveProperty('ClientRequestToken');
      const record = (await scene.store.findIdentity(scene.a))!;
      const reset = await during([undefined, 'answerLost'], () => register.reset(record, scene.audit()));
      expect(reset.answer).toEqual({ kind: 'written' });
      expect(await scene.store.findIdentity(scene.a)).toBeUndefined();
      forgetful.destroy();
    });

    test('a look that meets transactions is asked again, and ends', async () => {
      const scene = sceneOf(around);
      await scene.done(scene.first());
      const look = { now, identity: scene.a, nodeName: scene.n, once: [], addresses: [], machines: [] };
      const { answer, calls } = await during(['conflict', 'conflict'], () => made.store.lookup(look));
      expect([answer.identity?.rev, calls.length]).toEqual([1, 3]);
      const without = Array.from({ length: 6 }, () => 'conflict' as const);
      await expect(during(without, () => made.store.lookup(look))).rejects.toBeInstanceOf(ThrottledError);
    });

    test('what is read is read as it is now, and several items at one moment', async () => {
      const scene = sceneOf(around);
      await scene.done(scene.first());
      const look = { now, identity: scene.a, nodeName: scene.n, once: [scene.p], addresses: [], machines: ['aws#i-1'] };
      const { calls } = await during([], async () => {
        await made.store.findVerdict(randomUUID(), now);
        await made.store.findIdentity(scene.a);
        await made.store.findLock(`node#${scene.n}`);
        await made.store.findMachine('tpm#1');
        await made.store.lookup(look);
        await made.store.recall(randomUUID(), { requester: 'x', from: now }, now);
      });
      const recalled = calls.at(-1);
      const [verdict, identity, lock, machine, ...looks] = calls.slice(0, -1);
      expect(recalled?.operation).toBe('DynamoDB_20120810.BatchGetItem');
      expect(JSON.parse(recalled!.body.toString())).toMatchObject({
        RequestItems: { [tableName]: { ConsistentRead: true } },
      });
      for (const call of [verdict!, identity!, lock!, machine!])
        expect(JSON.parse(call.body.toString())).toMatchObject({ ConsistentRead: true });
      expect(looks.map(({ operation }) => operation)).toEqual(['DynamoDB_20120810.TransactGetItems']);
      const { TransactItems: items } = JSON.parse(looks[0]!.body.toString()) as {
        readonly TransactItems: readonly { readonly Get: { readonly Key: { readonly pk: { readonly S: string } } } }[];
      };
      expect(items.map(({ Get: { Key: key } }) => key.pk.S).toSorted()).toEqual(
        [
          `id#${scene.a}`,
          `lock#id#${scene.a}`,
          `node#${scene.n}`,
          `once#sts#${scene.p.id}`,
          'machine#aws#i-1',
          'machine#*',
        ].toSorted(),
      );
    });

    test('the table has what is promised and no more: keys, and a time to live where something expires', async () => {
      const scene = sceneOf(around);
      const nodeName = `a#b%23-${randomUUID()}`;
      const claim: Claim = scene.first(
        { once: [spent(scene.p, 'aa', now + hour)], audit: [scene.audit()] },
        { nodeName, addresses: [scene.x] },
      );
      await scene.done(claim);
      const attributesOf = async (pk: string) => {
        const get = new GetItemCommand({ TableName: tableName, Key: { pk: { S: pk } }, ConsistentRead: true });
        const { Item: item = {} } = await direct.send(get);
        return Object.fromEntries(
          Object.entries(item).map(([key, value]) => [key, Object.values(value)[0] as unknown]),
        );
      };
      const node = `node#${nodeName.replace('%', '%25').replace('#', '%23')}`;
      expect(await attributesOf(node)).toEqual({ pk: node, identity: scene.a, nodeName });
      const identity = await attributesOf(`id#${scene.a}`);
      expect(identity).toMatchObject({ identity: scene.a, nodeName, state: 'active', rev: '1', firstSeen: `${now}` });
      const once = `once#sts#${scene.p.id}`;
      const seconds = (instant: number) => `${instant / 1000 + 3_600}`;
      expect(await attributesOf(once)).toEqual({
        pk: once,
        ...scene.p,
        requestSha256: 'aa',
        expiresAt: `${now + hour}`,
        ttl: seconds(now + hour),
      });
      const address = `once#address#${scene.x}`;
      expect(await attributesOf(address)).toEqual({ pk: address, identity: scene.a, address: scene.x });
      const verdict = await attributesOf(`verdict#${claim.verdict.uid}`);
      expect(verdict).toMatchObject({ decision: 'approve', ttl: seconds(claim.verdict.expiresAt) });
      const audit = await attributesOf(`audit#${claim.audit[0]!.id}`);
      expect(audit).toMatchObject({ action: 'reset', subject: scene.a });
      for (const item of [identity, audit]) expect(item).not.toHaveProperty('ttl');
    });

    test('a table that is not there is no throttling', async () => {
      const missing = dynamoDbAttestations({ client: direct, tableName: 'missing', randomBytes });
      const scene = sceneOf(around);
      const wrong = { name: 'MisconfigurationError' };
      await expect(missing.findNode('x')).rejects.toMatchObject(wrong);
      await expect(missing.findVerdict('x', now)).rejects.toMatchObject(wrong);
      const count = { requester: 'x', from: now };
      await expect(missing.recall('x', count, now)).rejects.toMatchObject(wrong);
      await expect(missing.countRefusal(count)).rejects.toMatchObject(wrong);
      await expect(missing.claim(scene.first(), now)).rejects.toMatchObject(wrong);
    });
  });
});
