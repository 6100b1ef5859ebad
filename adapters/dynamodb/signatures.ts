/**
 * The signatures of the ca function, in the certificates table:
 *
 *     signed#<CA key>#<ULID>    one signature; written before the key signs and again with the KMS request
 *
 * Each is also in the index by expiry, in the partition signed#<day>. The sort key of that index is named notAfter; here it is `at`.
 */
import { PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { integer, object, optional, text } from '../../core/encoding/stored-fields.ts';
import type { Instant } from '../../core/ports/instant.ts';
import type { SignatureLog, SignatureReads, SignatureRecord } from '../../core/ports/signature-log.ts';
import { certificatesTable, itemKey, mapTableErrors } from './table.ts';
import type { TransactionOptions } from './transactions.ts';
import { itemFrom, plainFrom } from './values.ts';
import type { Item } from './values.ts';

const { partitionKey, indexes } = certificatesTable;
const day = 86_400_000;

function partitionOf(at: Instant): string {
  return itemKey('signed', new Date(at).toISOString().slice(0, 10));
}

export function dynamoDbSignatureLog({
  client,
  tableName,
}: Pick<TransactionOptions, 'client' | 'tableName'>): SignatureLog {
  return {
    async put(record) {
      const { id, caKeyId, at } = record;
      const key: Item = { [partitionKey]: { S: itemKey('signed', caKeyId, id) } };
      const item = { ...key, ...itemFrom({ ...record, at: undefined, notAfter: at, expiry: partitionOf(at) }) };
      await mapTableErrors(() => client.send(new PutItemCommand({ TableName: tableName, Item: item })));
    },
  };
}

export function dynamoDbSignatureReads({
  client,
  tableName,
}: Pick<TransactionOptions, 'client' | 'tableName'>): SignatureReads {
  const { name, partitionKey: partition, sortKey } = indexes.expiry;
  return {
    async *list({ from, to }) {
      for (let begin = from - (from % day); begin < to; begin += day) {
        let start: Item | undefined;
        do {
          const query = new QueryCommand({
            TableName: tableName,
            IndexName: name,
            KeyConditionExpression: '#partition = :partition AND #at BETWEEN :from AND :to',
            ExpressionAttributeNames: { '#partition': partition, '#at': sortKey },
            ExpressionAttributeValues: {
              ':partition': { S: partitionOf(begin) },
              ':from': { N: String(from) },
              ':to': { N: String(to - 1) },
            },
            ...(start === undefined ? {} : { ExclusiveStartKey: start }),
          });
          const { Items: items = [], LastEvaluatedKey: next } = await mapTableErrors(() => client.send(query));
          for (const item of items) yield recordFrom(item);
          start = next;
        } while (start !== undefined);
      }
    },
  };
}

const signature = object<SignatureRecord>({
  id: text,
  caKeyId: text,
  ca: text,
  action: text,
  tbsSha256: text,
  at: integer,
  kmsRequestId: optional(text),
});

function recordFrom(item: Item): SignatureRecord {
  const { notAfter: at, ...fields } = plainFrom(item);
  return signature({ ...fields, at });
}
