/** What operators read of the ledger, by its two indexes. No call reads the whole table. */
import { QueryCommand } from '@aws-sdk/client-dynamodb';
import type { QueryCommandInput } from '@aws-sdk/client-dynamodb';
import type { IssuingRecord } from '../../core/ports/certificate-ledger.ts';
import type { CertificateReads, ExpiryCursor } from '../../core/ports/certificate-reads.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { recordFrom } from './ledger.ts';
import { certificatesTable, expiryDigits, expiryPartition, itemKey, mapTableErrors } from './table.ts';
import { readItem } from './transactions.ts';
import type { TransactionOptions } from './transactions.ts';
import type { Item } from './values.ts';

/** At about 3 KB a record, a page stays below the 1 MB at which DynamoDB ends one itself. */
const pageSize = 100;
const day = 86_400_000;

export function dynamoDbCertificateReads({
  client,
  tableName,
}: Pick<TransactionOptions, 'client' | 'tableName'>): CertificateReads {
  const { serial: bySerial, expiry: byExpiry } = certificatesTable.indexes;
  const query = (input: Omit<QueryCommandInput, 'TableName'>) =>
    mapTableErrors(() => client.send(new QueryCommand({ TableName: tableName, ...input })));

  /** The records of one partition, by notAfter. `to` is in the range. */
  async function* partition(name: string, from: Instant, to: Instant, after?: Item): AsyncGenerator<IssuingRecord> {
    // DynamoDB refuses a range whose end is before its beginning.
    if (from > to) return;
    let start = after;
    do {
      const { Items: items = [], LastEvaluatedKey: next } = await query({
        IndexName: byExpiry.name,
        KeyConditionExpression: '#partition = :partition AND #notAfter BETWEEN :from AND :to',
        ExpressionAttributeNames: { '#partition': byExpiry.partitionKey, '#notAfter': byExpiry.sortKey },
        ExpressionAttributeValues: {
          ':partition': { S: name },
          ':from': { N: String(from) },
          ':to': { N: String(to) },
        },
        Limit: pageSize,
        ...(start === undefined ? {} : { ExclusiveStartKey: start }),
      });
      for (const item of items) {
        // The CAs of the cluster are in this index too.
        const uid = item['uid']?.S;
        if (uid !== undefined) yield recordFrom(item, uid);
      }
      start = next;
    } while (start !== undefined);
  }

  /**
   * One day, its sixteen partitions merged. Records of one instant are in the order of their partitions, and those of one partition in
   * DynamoDB's order, so a cursor is the key of the index in its own partition, and an instant in the others.
   */
  function oneDay(begin: Instant, from: Instant, to: Instant, after?: ExpiryCursor): AsyncGenerator<IssuingRecord> {
    const cursorPartition = after === undefined ? '' : expiryPartition(after.notAfter, after.serial);
    return merged(
      expiryDigits.map((digit) => {
        const name = expiryPartition(begin, digit);
        const last = Math.min(to, begin + day) - 1;
        if (after === undefined || after.notAfter < Math.max(from, begin)) return partition(name, from, last);
        if (name === cursorPartition) return partition(name, after.notAfter, last, indexKey(after));
        return partition(name, name < cursorPartition ? after.notAfter + 1 : after.notAfter, last);
      }),
    );
  }

  return {
    async findSerial(serial) {
      const { Items: items = [] } = await query({
        IndexName: bySerial.name,
        KeyConditionExpression: '#serial = :serial',
        ExpressionAttributeNames: { '#serial': bySerial.partitionKey },
        ExpressionAttributeValues: { ':serial': { S: serial } },
      });
      const uid = items.map((item) => item['uid']?.S).find((each) => each !== undefined);
      if (uid === undefined) return undefined;
      // The index may still have an earlier state of the record.
      const item = await readItem({ client, tableName }, keyOf(uid));
      return item === undefined ? undefined : recordFrom(item, uid);
    },
    async *listByExpiry({ from, to, after }) {
      const first = Math.max(from, after?.notAfter ?? from);
      for (let begin = first - (first % day); begin < to; begin += day)
        yield* oneDay(begin, Math.max(from, begin), to, after);
    },
  };
}

function keyOf(uid: string): Item {
  return { [certificatesTable.partitionKey]: { S: itemKey('uid', uid) } };
}

function indexKey({ uid, serial, notAfter }: ExpiryCursor): Item {
  const { partitionKey, sortKey } = certificatesTable.indexes.expiry;
  const place = { [partitionKey]: { S: expiryPartition(notAfter, serial) }, [sortKey]: { N: String(notAfter) } };
  return { ...keyOf(uid), ...place };
}

/** Merges streams that are in order each. Of equal heads that of the earlier stream is first. */
async function* merged(streams: readonly AsyncGenerator<IssuingRecord>[]): AsyncGenerator<IssuingRecord> {
  const next = async (stream: AsyncGenerator<IssuingRecord>) => {
    const result = await stream.next();
    return result.done === true ? [] : [{ stream, head: result.value }];
  };
  const open = (await Promise.all(streams.map(next))).flat();
  for (;;) {
    const [first] = open;
    if (first === undefined) return;
    const least = open.reduce((a, b) => (b.head.notAfter < a.head.notAfter ? b : a), first);
    yield least.head;
    open.splice(open.indexOf(least), 1, ...(await next(least.stream)));
  }
}
