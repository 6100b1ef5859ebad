/**
 * The CA certificates of one cluster, in its certificates table:
 *
 *     ca#<name>                  which certificate is this CA's, for good
 *     ca#<name>#<fingerprint>    that certificate (SHA-256 of its DER, hex)
 *
 * Both are written in one transaction on the condition that neither is there, and neither is ever written again.
 */
import { GetItemCommand, TransactionCanceledException, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import type { AttributeValue, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { CaRecord, CaStore } from '../../core/ca/authority.ts';
import { certificateFacts } from '../../core/x509/read-certificate.ts';
import { certificatesTable, expiryPartition, itemKey, tableError } from './table.ts';

type Item = Record<string, AttributeValue>;

export function dynamoDbCaStore(client: DynamoDBClient, tableName: string): CaStore {
  const { partitionKey } = certificatesTable;

  async function get(...names: string[]): Promise<Item | undefined> {
    const key = { [partitionKey]: { S: itemKey('ca', ...names) } };
    const command = new GetItemCommand({ TableName: tableName, Key: key, ConsistentRead: true });
    try {
      return (await client.send(command)).Item;
    } catch (error) {
      throw tableError(error);
    }
  }

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
      const put = (key: string, item: Item) => ({
        Put: {
          TableName: tableName,
          Item: { [partitionKey]: { S: key }, ...item },
          ConditionExpression: `attribute_not_exists(${partitionKey})`,
        },
      });
      const command = new TransactWriteItemsCommand({
        // The SDK adds a token, by which a repetition after a lost answer is known for one: it succeeds like the first.
        TransactItems: [
          put(itemKey('ca', record.name), { fingerprint: { S: fingerprint } }),
          put(itemKey('ca', record.name, fingerprint), {
            name: { S: record.name },
            caKeyId: { S: record.keyId },
            cert: { B: record.certificate },
            createdAt: { N: String(record.createdAt) },
            serial: { S: serial },
            notAfter: { N: String(notAfter) },
            expiry: { S: expiryPartition(notAfter, serial) },
          }),
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

/** As opposed to a transaction that met another one, which says nothing of what is there. */
function isTaken(error: unknown): boolean {
  return (
    error instanceof TransactionCanceledException &&
    error.CancellationReasons?.some(({ Code: code }) => code === 'ConditionalCheckFailed') === true
  );
}

/** An item that is not what this program writes is a fault, never a guess. */
function recordFrom(item: Item, name: string): CaRecord {
  const [keyId, certificate, createdAt] = [item['caKeyId']?.S, item['cert']?.B, Number(item['createdAt']?.N)];
  if (item['name']?.S !== name || keyId === undefined || certificate === undefined || !Number.isSafeInteger(createdAt))
    throw new TypeError(`the item of CA ${name} cannot be read`);
  return { name, keyId, certificate, createdAt };
}
