/**
 * The CA certificates of one cluster, in its certificates table:
 *
 *     ca#<name>                  the fingerprint of this CA's certificate; never changes
 *     ca#<name>#<fingerprint>    that certificate (SHA-256 of its DER, hex)
 *
 * Both are written in one transaction, only if neither exists, and neither is ever written again.
 */
import { TransactionCanceledException, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { CaRecord, CaStore } from '../../core/ca/authority.ts';
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import { bytes, integer, listOf, object, optional, text } from '../../core/encoding/stored-fields.ts';
import { certificatesTable, expiryPartition, itemKey, tableError } from './table.ts';
import { readItem } from './transactions.ts';
import { itemFrom, plainFrom } from './values.ts';
import type { Item } from './values.ts';

export function dynamoDbCaStore(client: DynamoDBClient, tableName: string): CaStore {
  const { partitionKey } = certificatesTable;
  const keyOf = (...names: string[]): Item => ({ [partitionKey]: { S: itemKey('ca', ...names) } });
  const get = (...names: string[]) => readItem({ client, tableName }, keyOf(...names));

  return {
    async find(name) {
      const fingerprint = (await get(name))?.['fingerprint']?.S;
      if (fingerprint === undefined) return undefined;
      const item = await get(name, fingerprint);
      if (item === undefined) throw new TypeError(`the certificate of CA ${name} is not in the table`);
      return recordFrom(item, name);
    },
    async add(record) {
      const { fingerprintSha256: fingerprint, serial, notAfter } = certificateFacts(record.certificate);
      const put = (key: Item, fields: object) => ({
        Put: {
          TableName: tableName,
          Item: { ...key, ...itemFrom(fields) },
          ConditionExpression: `attribute_not_exists(${partitionKey})`,
        },
      });
      const { name, keyId: caKeyId, certificate: cert, chain, createdAt } = record;
      const expiry = expiryPartition(notAfter, serial);
      const command = new TransactWriteItemsCommand({
        // The SDK adds a token, so that a repetition after a lost answer succeeds like the first call.
        TransactItems: [
          put(keyOf(name), { fingerprint }),
          put(keyOf(name, fingerprint), { name, caKeyId, cert, chain, createdAt, serial, notAfter, expiry }),
        ],
      });
      try {
        await client.send(command);
        return true;
      } catch (error) {
        if (isTaken(error)) return false;
        throw tableError(error);
      }
    },
  };
}

/** True if the CA exists already. A conflict with another transaction does not prove that. */
function isTaken(error: unknown): boolean {
  return (
    error instanceof TransactionCanceledException &&
    error.CancellationReasons?.some(({ Code: code }) => code === 'ConditionalCheckFailed') === true
  );
}

const caItem = object({
  name: text,
  caKeyId: text,
  cert: bytes,
  // CAs of earlier versions, all self-signed, were stored without it.
  chain: optional(listOf(bytes)),
  createdAt: integer,
});

/** Throws for an item that this program did not write. */
function recordFrom(item: Item, name: string): CaRecord {
  const { name: stored, caKeyId: keyId, cert: certificate, chain = [], createdAt } = caItem(plainFrom(item));
  if (stored !== name) throw new TypeError(`the item of CA ${name} names another CA`);
  return { name, keyId, certificate, chain, createdAt };
}
