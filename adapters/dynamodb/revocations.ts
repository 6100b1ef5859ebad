/**
 * Revocations and CRLs of one cluster, in its certificates table:
 *
 *     revoked#<CA key>#<serial>     one revocation; never changes. Also in the index by expiry, in the partition revoked#<CA key>
 *     crl#<CA key>                  the latest CRL without its body: number, times, and where its body is
 *     crl#<CA key>#body#<digest>#<n>  a part of the body: an item holds 400 KB, and a CRL of 10 000 entries with its list is larger
 *
 * The parts are written first, then the head, which only replaces the head with the number before. The body of the CRL before
 * stays for readers that have just read its head; the one before that is deleted.
 */
import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { DeleteItemCommand, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { bytes, integer, object, optional, text } from '../../core/encoding/stored-fields.ts';
import type { CrlStore, Revocation, RevocationStore } from '../../core/ports/revocations.ts';
import { crlHeadFrom, decodeCrlBody, encodeCrlBody, revocationFrom } from '../../core/revocation/stored-revocations.ts';
import { certificatesTable, itemKey, mapTableErrors } from './table.ts';
import { newToken, readItem, transactWrite } from './transactions.ts';
import type { TransactionOptions } from './transactions.ts';
import { itemFrom, plainFrom } from './values.ts';
import type { Item } from './values.ts';

const { partitionKey, indexes } = certificatesTable;

function keyOf(kind: 'revoked' | 'crl', ...values: readonly string[]): Item {
  return { [partitionKey]: { S: itemKey(kind, ...values) } };
}

export function dynamoDbRevocations(options: TransactionOptions): RevocationStore {
  const { client, tableName } = options;
  const find: RevocationStore['find'] = async (caKeyId, serial) => {
    const item = await readItem(options, keyOf('revoked', caKeyId, serial));
    return item === undefined ? undefined : recordFrom(item);
  };
  return {
    find,
    async add(revocation) {
      const { caKeyId, serial } = revocation;
      const command = new PutItemCommand({
        TableName: tableName,
        // Its attribute is not named `serial`: the index by serial number finds requests and CAs.
        Item: {
          ...keyOf('revoked', caKeyId, serial),
          ...itemFrom({ ...revocation, serial: undefined, revokedSerial: serial }),
          expiry: { S: itemKey('revoked', caKeyId) },
        },
        ConditionExpression: `attribute_not_exists(${partitionKey})`,
      });
      try {
        await mapTableErrors(() => client.send(command));
        return revocation;
      } catch (error) {
        if (!(error instanceof Error) || error.name !== 'ConditionalCheckFailedException') throw error;
        const stored = await find(caKeyId, serial);
        if (stored === undefined) throw new Error(`the revocation of ${serial} was deleted`, { cause: error });
        return stored;
      }
    },
    async *list(caKeyId, now) {
      const { name, partitionKey: partition, sortKey } = indexes.expiry;
      let start: Item | undefined;
      do {
        const query = new QueryCommand({
          TableName: tableName,
          IndexName: name,
          KeyConditionExpression: '#partition = :partition AND #notAfter > :now',
          ExpressionAttributeNames: { '#partition': partition, '#notAfter': sortKey },
          ExpressionAttributeValues: {
            ':partition': { S: itemKey('revoked', caKeyId) },
            ':now': { N: String(now) },
          },
          ...(start === undefined ? {} : { ExclusiveStartKey: start }),
        });
        const { Items: items = [], LastEvaluatedKey: next } = await mapTableErrors(() => client.send(query));
        for (const item of items) yield recordFrom(item);
        start = next;
      } while (start !== undefined);
    },
  };
}

function recordFrom(item: Item): Revocation {
  const { revokedSerial: serial, ...fields } = plainFrom(item);
  return revocationFrom({ ...fields, serial });
}

interface Body {
  /** SHA-256 of all parts together, hex. */
  readonly digest: string;
  readonly parts: number;
}

const bodyPlace = object<Body>({ digest: text, parts: integer });
const headItem = object<{ readonly body: Body; readonly before: Body | undefined }>({
  body: bodyPlace,
  before: optional(bodyPlace),
});

/** Below the 400 KB of an item. */
const partBytes = 380_000;
/** Between the read of a head and of its parts, two CRLs may be stored, and the parts deleted. */
const maxReads = 3;

export function dynamoDbCrls(options: TransactionOptions): CrlStore {
  const { client, tableName, randomBytes } = options;
  const partKey = (caKeyId: string, digest: string, part: number): Item =>
    keyOf('crl', caKeyId, 'body', digest, String(part));

  async function readBody(caKeyId: string, { digest, parts }: Body): Promise<Buffer | undefined> {
    const items = await Promise.all(
      Array.from({ length: parts }, (_, part) => readItem(options, partKey(caKeyId, digest, part))),
    );
    if (items.includes(undefined)) return undefined;
    const body = Buffer.concat(items.map((item) => bytes(item?.['data']?.B, 'data')));
    if (createHash('sha256').update(body).digest('hex') !== digest) throw new TypeError('a stored CRL is damaged');
    return body;
  }

  async function remove(caKeyId: string, { digest, parts }: Body): Promise<void> {
    for (let part = 0; part < parts; part += 1)
      await mapTableErrors(() =>
        client.send(new DeleteItemCommand({ TableName: tableName, Key: partKey(caKeyId, digest, part) })),
      );
  }

  return {
    async findHead(caKeyId) {
      const head = await readItem(options, keyOf('crl', caKeyId));
      return head === undefined ? undefined : crlHeadFrom(plainFrom(head));
    },
    async findCrl(caKeyId) {
      for (let reads = 0; reads < maxReads; reads += 1) {
        const head = await readItem(options, keyOf('crl', caKeyId));
        if (head === undefined) return undefined;
        const plain = plainFrom(head);
        const body = await readBody(caKeyId, headItem(plain).body);
        if (body !== undefined) return { ...crlHeadFrom(plain), ...decodeCrlBody(gunzipSync(body).toString('utf8')) };
      }
      throw new Error('CRLs are stored faster than one can be read');
    },
    async putCrl(crl) {
      const { der: _, revoked: __, ...head } = crl;
      const { caKeyId, number } = head;
      const old = await readItem(options, keyOf('crl', caKeyId));
      const before = old === undefined ? undefined : headItem(plainFrom(old));
      const data = gzipSync(encodeCrlBody(crl));
      const body: Body = {
        digest: createHash('sha256').update(data).digest('hex'),
        parts: Math.ceil(data.length / partBytes),
      };
      for (let part = 0; part < body.parts; part += 1) {
        const slice = data.subarray(part * partBytes, (part + 1) * partBytes);
        const item = { ...partKey(caKeyId, body.digest, part), data: { B: slice } };
        await mapTableErrors(() => client.send(new PutItemCommand({ TableName: tableName, Item: item })));
      }
      // Now the parts are stored and no head names them. A crash here leaves them unused.
      const token = newToken(randomBytes);
      const fields = itemFrom({ ...head, body, before: before?.body, writer: token });
      const answer = await transactWrite(options, token, [
        put(keyOf('crl', caKeyId), fields, number === 1 ? undefined : number - 1),
      ]);
      const written = answer.kind === 'written' || answer.failed[0]?.['writer']?.S === token;
      const unused = written ? before?.before : body;
      if (unused !== undefined) await remove(caKeyId, unused);
      return written;
    },
  };

  /** Only if no item has the key, or if the item has this number. */
  function put(key: Item, fields: Item, replaced: number | undefined): TransactWriteItem {
    const about = { TableName: tableName, Item: { ...key, ...fields } };
    const onFailure = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const };
    if (replaced === undefined)
      return { Put: { ...about, ConditionExpression: `attribute_not_exists(${partitionKey})`, ...onFailure } };
    const names = { ExpressionAttributeNames: { '#number': 'number' } };
    const values = { ExpressionAttributeValues: { ':replaced': { N: String(replaced) } } };
    return { Put: { ...about, ConditionExpression: '#number = :replaced', ...names, ...values, ...onFailure } };
  }
}
