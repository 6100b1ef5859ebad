import { randomBytes, randomUUID } from 'node:crypto';
import { DynamoDBClient, GetItemCommand, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { dynamoDbCertificateReads } from '../../../../adapters/dynamodb/certificate-reads.ts';
import { dynamoDbLedger, ledgerClientConfig } from '../../../../adapters/dynamodb/ledger.ts';
import { ThrottledError } from '../../../../core/ports/errors.ts';
import type { CertificateLedger, Intent, LedgerResult } from '../../../../core/ports/certificate-ledger.ts';
import { certificateLedgerContract, intentFixture } from '../../../contract/certificate-ledger.ts';
import { certificateReadsContract, ownDay } from '../../../contract/certificate-reads.ts';
import { startAwsProxy } from '../../../harness/aws/proxy.ts';
import type { AwsFault, AwsProxy } from '../../../harness/aws/proxy.ts';
import { createCertificatesTable } from '../../../harness/aws/tables.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { bothEmulators, describeOnEmulators, patience } from './emulators.ts';

describeOnEmulators(byTier({ default: ['DynamoDB Local'], deep: bothEmulators }), (name, emulator) => {
  certificateLedgerContract(`DynamoDB (${name})`, async () => {
    const clients: DynamoDBClient[] = [];
    const open = (tableName: string) => {
      const client = clientOf(emulator());
      clients.push(client);
      return dynamoDbLedger({ client, tableName, randomBytes });
    };
    const setup = clientOf(emulator());
    clients.push(setup);
    const table = await createCertificatesTable(setup, `a-${randomUUID()}`);
    const otherTable = await createCertificatesTable(setup, `b-${randomUUID()}`);
    return {
      ledger: open(table),
      other: open(otherTable),
      reopen: async () => open(table),
      close: async () => clients.forEach((client) => client.destroy()),
    };
  });

  certificateReadsContract(`DynamoDB (${name})`, async () => {
    const client = clientOf(emulator());
    const tableName = await createCertificatesTable(client, `reads-${randomUUID()}`);
    const otherName = await createCertificatesTable(client, `others-${randomUUID()}`);
    return {
      ledger: dynamoDbLedger({ client, tableName, randomBytes }),
      reads: dynamoDbCertificateReads({ client, tableName }),
      other: dynamoDbCertificateReads({ client, tableName: otherName }),
      close: async () => client.destroy(),
    };
  });

  describe('between it and the SDK', () => {
    let proxy: AwsProxy;
    let client: DynamoDBClient;
    let direct: DynamoDBClient;
    let tableName: string;
    /** Through the proxy, and around it. */
    let ledger: CertificateLedger;
    let other: CertificateLedger;
    beforeAll(async () => {
      proxy = await startAwsProxy(emulator().url);
      direct = clientOf(emulator());
      tableName = await createCertificatesTable(direct, `faults-${randomUUID()}`);
      other = dynamoDbLedger({ client: direct, tableName, randomBytes });
    });
    // A client of its own for each: one that has tried again too often stops doing so.
    beforeEach(() => {
      client = clientOf(emulator(), proxy.url);
      ledger = dynamoDbLedger({ client, tableName, randomBytes });
    });
    afterEach(() => client.destroy());
    afterAll(async () => {
      direct.destroy();
      await proxy.close();
    });

    /** Lets the next calls fail so, one after the other, and gives how many there were, the good ones included. */
    async function callsDuring<T>(
      faults: readonly AwsFault[],
      work: () => Promise<T>,
    ): Promise<{ answer: T; calls: number }> {
      const plan = [...faults];
      const before = proxy.calls.length;
      proxy.inject = () => plan.shift();
      try {
        const answer = await work();
        return { answer, calls: proxy.calls.length - before };
      } finally {
        proxy.inject = () => undefined;
      }
    }

    /** Each write, from a record it applies to, with what it leaves. */
    const writes: readonly (readonly [
      name: string,
      run: (intent: Intent) => Promise<LedgerResult>,
      prepare: (intent: Intent) => Promise<unknown>,
      left: object,
    ])[] = [
      ['open', (intent) => ledger.open(intent), async () => {}, { state: 'intent', attempt: 1 }],
      [
        'open with a fresh key',
        async (intent) => {
          const answer = await ledger.open(intent, { spkiSha256: intent.requestDigest, requestSha256: intent.serial });
          if (answer.kind === 'keyUsed') throw new Error('the key was used');
          return answer;
        },
        async () => {},
        { state: 'intent', attempt: 1 },
      ],
      [
        'takeOver',
        ({ uid }) => ledger.takeOver(uid, 1, 1_700_000_099_000),
        (intent) => other.open(intent),
        { state: 'intent', attempt: 2, leaseUntil: 1_700_000_099_000 },
      ],
      [
        'complete',
        ({ uid }) => ledger.complete(uid, Uint8Array.of(1, 2, 3)),
        (intent) => other.open(intent),
        { state: 'issued', certificate: Uint8Array.of(1, 2, 3) },
      ],
      ['expire', ({ uid }) => ledger.expire(uid, 1), (intent) => other.open(intent), { state: 'expired' }],
    ];

    // In the default tier one write that makes a record and one that ends it: what is tested is the SDK's repetition.
    const essential = writes.filter(([write]) => write === 'open with a fresh key' || write === 'complete');
    describe.each(byTier({ default: essential, deep: writes }))('%s', (_, run, prepare, left) => {
      test.each<readonly [string, readonly AwsFault[]]>([
        ['a call that never arrived is made again', ['lost']],
        ['a call whose answer was lost is made again, and known for what it did', ['answerLost']],
        ['so it is after two lost answers', ['answerLost', 'answerLost']],
        ['and after a lost answer and a lost call', ['answerLost', 'lost']],
        ['a server error is tried again', ['failed']],
      ])('%s', async (__, faults) => {
        const intent = intentFixture();
        await prepare(intent);
        const { answer, calls } = await callsDuring(faults, () => run(intent));
        expect(answer).toEqual({ kind: 'written' });
        expect(calls).toBe(faults.length + 1);
        expect(await other.find(intent.uid)).toMatchObject({ ...left, tbs: intent.tbs });
      });

      test('three lost answers throw, and the effect stays', async () => {
        const intent = intentFixture();
        await prepare(intent);
        await expect(callsDuring(['answerLost', 'answerLost', 'answerLost'], () => run(intent))).rejects.toThrow();
        expect(await other.find(intent.uid)).toMatchObject(left);
      });

      test('throttling that does not end is a ThrottledError, and nothing was written', async () => {
        const intent = intentFixture();
        await prepare(intent);
        const before = await other.find(intent.uid);
        const throttled = callsDuring(['throttled', 'throttled', 'throttled'], () => run(intent));
        await expect(throttled).rejects.toBeInstanceOf(ThrottledError);
        expect(await other.find(intent.uid)).toEqual(before);
      });
    });

    test('the very intent that another worker opened is found, not taken for our own', async () => {
      const intent = intentFixture();
      await other.open(intent);
      const { answer } = await callsDuring(['lost'], () => ledger.open(intent));
      expect(answer).toEqual({ kind: 'found', found: { ...intent, state: 'intent', attempt: 1 } });
    });

    test('an open whose answer was lost, and which another process took over meanwhile, is no longer ours', async () => {
      const intent = intentFixture();
      const first = proxy.calls.length + 1;
      proxy.inject = async ({ number }) => {
        if (number === first) return 'answerLost';
        await other.takeOver(intent.uid, 1, 1_700_000_099_000);
        return undefined;
      };
      const answer = await ledger.open(intent);
      proxy.inject = () => undefined;
      expect(proxy.calls.length).toBe(first + 1);
      expect(answer).toMatchObject({ kind: 'found', found: { attempt: 2, state: 'intent' } });
    });

    test('release bears a lost answer and a lost call', async () => {
      for (const fault of ['answerLost', 'lost'] as const) {
        const intent = intentFixture();
        await other.open(intent);
        await callsDuring([fault], () => ledger.release(intent.uid, 1));
        expect(await other.find(intent.uid)).toMatchObject({ attempt: 1, leaseUntil: 0 });
      }
    });

    test('the table has what is promised and no more: key, indexes, no secret', async () => {
      const intent = intentFixture({
        uid: `a#b%23-${randomUUID()}`,
        serial: '0abc',
        notAfter: 1_830_000_000_123,
        identity: 'aws:i-1',
      });
      await ledger.open(intent);
      await ledger.complete(intent.uid, Uint8Array.of(9), 'request-1');
      const pk = `uid#${intent.uid.replace('%', '%25').replace('#', '%23')}`;
      const { Item: item = {} } = await direct.send(
        new GetItemCommand({ TableName: tableName, Key: { pk: { S: pk } }, ConsistentRead: true }),
      );
      expect(Object.keys(item).toSorted()).toEqual(
        'attempt caKeyId cert expiry identity kmsRequestId leaseUntil notAfter openedAt pk requestDigest serial state tbs uid writer'.split(
          ' ',
        ),
      );
      expect(await ledger.find(intent.uid)).toMatchObject({ uid: intent.uid, state: 'issued' });
      // What an unescaped key would have made of another UID.
      expect(await ledger.find(intent.uid.replace('%23', '#'))).toBeUndefined();
      const query = (index: string, expression: string, values: Record<string, { S: string } | { N: string }>) =>
        direct.send(
          new QueryCommand({
            TableName: tableName,
            IndexName: index,
            KeyConditionExpression: expression,
            ExpressionAttributeValues: values,
          }),
        );
      const bySerial = await query('serial', 'serial = :s', { ':s': { S: '0abc' } });
      const byExpiry = await query('expiry', 'expiry = :e AND notAfter <= :n', {
        ':e': { S: '2027-12-28#c' },
        ':n': { N: '1830000000123' },
      });
      expect([bySerial.Items?.map((found) => found['pk']?.S), byExpiry.Items?.map((found) => found['pk']?.S)]).toEqual([
        [pk],
        [pk],
      ]);
    });

    test('a record is read as it is now, not as some replica has it', async () => {
      const before = proxy.calls.length;
      await ledger.find(randomUUID());
      const bodies = proxy.calls.slice(before).map(({ body }) => JSON.parse(body.toString('utf8')) as object);
      expect(bodies).toMatchObject([{ ConsistentRead: true }]);
    });

    test('a list reads the partitions of one day at a time, and no more pages than its caller uses; CAs are not in it', async () => {
      const from = ownDay();
      const day = 86_400_000;
      const ca = { pk: { S: 'ca#web#aa' }, serial: { S: '0fa5' }, notAfter: { N: String(from) } };
      const expiry = { S: `${new Date(from).toISOString().slice(0, 10)}#5` };
      await direct.send(new PutItemCommand({ TableName: tableName, Item: { ...ca, expiry } }));
      const fives = Array.from({ length: 101 }, (_, i) => intentFixture({ serial: `${i}a5`, notAfter: from + 1 + i }));
      const later = intentFixture({ serial: 'aa', notAfter: from + 2 * day });
      await Promise.all([...fives, later].map((intent) => other.open(intent)));
      const reads = dynamoDbCertificateReads({ client, tableName });
      const list = reads.listByExpiry({ from, to: from + 30 * day })[Symbol.asyncIterator]();
      const first = proxy.calls.length;
      const calls = () => proxy.calls.length - first;
      expect((await list.next()).value).toMatchObject({ uid: fives[0]!.uid });
      expect(calls()).toBe(16);
      for (let i = 1; i < 99; i += 1) await list.next();
      expect(calls()).toBe(16);
      // The CA took a place of the first page.
      expect((await list.next()).value).toMatchObject({ uid: fives[99]!.uid });
      expect((await list.next()).value).toMatchObject({ uid: fives[100]!.uid });
      expect(calls()).toBe(17);
      expect((await list.next()).value).toMatchObject({ uid: later.uid });
      expect(calls()).toBe(17 + 32);
      await list.return?.(undefined);
      expect(calls()).toBe(17 + 32);
      expect(await reads.findSerial('0fa5')).toBeUndefined();
      const bodies = proxy.calls.slice(first).map(({ body }) => JSON.parse(body.toString('utf8')) as object);
      for (const body of bodies.slice(0, 49)) expect(body).toMatchObject({ IndexName: 'expiry', Limit: 100 });
    });

    test('a table that is not there is no throttling', async () => {
      const missing = dynamoDbLedger({ client: direct, tableName: 'missing', randomBytes });
      const failure = await missing.find('x').catch((error: unknown) => error);
      expect(failure).toMatchObject({ name: 'MisconfigurationError' });
    });
  });
});

function clientOf(emulator: Emulator, endpoint = emulator.url): DynamoDBClient {
  return new DynamoDBClient({ ...emulator.client, ...ledgerClientConfig, requestHandler: patience, endpoint });
}
