/**
 * The ledger of one cluster in its DynamoDB table. Each method is one call, conditional on what the record must be, and
 * asks for the record that stands in the way (ReturnValuesOnConditionCheckFailure), so that a lost race needs no second
 * read.
 *
 * The SDK sends a call again when its answer is lost. The second one then fails its own condition: against what the
 * first one wrote. Every write therefore leaves a token of its call in the record, and a condition that fails against
 * the token of the same call means: written. A second call of the caller has another token and gets the usual answer.
 */
import {
  ConditionalCheckFailedException,
  GetItemCommand,
  PutItemCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBClient, DynamoDBClientConfig, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type {
  CertificateLedger,
  FreshKey,
  Intent,
  IssuingRecord,
  LedgerWrite,
  OpenWrite,
} from '../../core/ports/certificate-ledger.ts';
import { certificatesTable, expiryPartition, itemKey, tableError } from './table.ts';
import { newToken, transactWrite } from './transactions.ts';
import type { Item } from './values.ts';

/**
 * For the client that is given to the ledger. Its writes bear repetition, so the SDK may: a lost connection or a hot
 * partition is gone a moment later. A call ends after 9 s at worst: two of them and a signature fit into the function's
 * 25 s.
 */
export const ledgerClientConfig = {
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 1_000, requestTimeout: 2_000, throwOnRequestTimeout: true },
} as const satisfies DynamoDBClientConfig;

export interface DynamoDbLedgerOptions {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly randomBytes: (count: number) => Uint8Array;
}

export function dynamoDbLedger(options: DynamoDbLedgerOptions): CertificateLedger {
  const { client, tableName, randomBytes } = options;
  const keyOf = (uid: string): Item => ({ [certificatesTable.partitionKey]: { S: itemKey('uid', uid) } });

  /** Changes a record that is still an intent, and of exactly this attempt if one is given. */
  function change(uid: string, set: string, values: Item, attempt?: number): Promise<LedgerWrite> {
    const token = newToken(randomBytes);
    const command = new UpdateItemCommand({
      TableName: tableName,
      Key: keyOf(uid),
      UpdateExpression: `SET ${set}, writer = :token`,
      ConditionExpression: `#state = :intent${attempt === undefined ? '' : ' AND attempt = :attempt'}`,
      ExpressionAttributeNames: { '#state': 'state' },
      ExpressionAttributeValues: {
        ':intent': { S: 'intent' },
        ':token': { S: token },
        ...(attempt === undefined ? {} : { ':attempt': { N: String(attempt) } }),
        ...values,
      },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    return write(uid, token, () => client.send(command));
  }

  function open(intent: Intent): Promise<LedgerWrite>;
  function open(intent: Intent, freshKey: FreshKey | undefined): Promise<OpenWrite>;
  async function open(intent: Intent, freshKey?: FreshKey): Promise<OpenWrite> {
    const token = newToken(randomBytes);
    const put = {
      TableName: tableName,
      Item: { ...keyOf(intent.uid), ...itemOf(intent), writer: { S: token } },
      ConditionExpression: `attribute_not_exists(${certificatesTable.partitionKey})`,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
    };
    if (freshKey === undefined) return write(intent.uid, token, () => client.send(new PutItemCommand(put)));
    const answer = await transactWrite(options, token, [{ Put: put }, keyMark(freshKey, intent)]);
    if (answer.kind === 'written') return answer;
    const [standing] = answer.failed;
    if (standing === undefined) return { kind: 'keyUsed' };
    if (standing['writer']?.S === token) return { kind: 'written' };
    return { kind: 'found', found: recordFrom(standing, intent.uid) };
  }

  /** An existing mark never changes, so that it has an identity from the start or never: NULL means none. */
  function keyMark({ spkiSha256, requestSha256, identity }: FreshKey, intent: Intent): TransactWriteItem {
    const own = identity === undefined ? '' : ' OR #identity = :allowed';
    const marks = ['requestSha256 = if_not_exists(requestSha256, :request)', 'uid = if_not_exists(uid, :uid)'];
    return {
      Update: {
        TableName: tableName,
        Key: { [certificatesTable.partitionKey]: { S: itemKey('spki', spkiSha256) } },
        UpdateExpression: `SET ${marks.join(', ')}, #identity = if_not_exists(#identity, :identity)`,
        ConditionExpression: `attribute_not_exists(${certificatesTable.partitionKey}) OR requestSha256 = :request${own}`,
        ExpressionAttributeNames: { '#identity': 'identity' },
        ExpressionAttributeValues: {
          ':request': { S: requestSha256 },
          ':uid': { S: intent.uid },
          ':identity': intent.identity === undefined ? { NULL: true } : { S: intent.identity },
          ...(identity === undefined ? {} : { ':allowed': { S: identity } }),
        },
      },
    };
  }

  return {
    async find(uid) {
      const command = new GetItemCommand({ TableName: tableName, Key: keyOf(uid), ConsistentRead: true });
      const { Item: item } = await mapTableErrors(() => client.send(command));
      return item === undefined ? undefined : recordFrom(item, uid);
    },
    open,
    takeOver(uid, attempt, leaseUntil) {
      const values = { ':one': { N: '1' }, ':lease': { N: String(leaseUntil) } };
      return change(uid, 'attempt = attempt + :one, leaseUntil = :lease', values, attempt);
    },
    async release(uid, attempt) {
      try {
        await change(uid, 'leaseUntil = :lease', { ':lease': { N: '0' } }, attempt);
      } catch (error) {
        if (!(error instanceof NoRecordError)) throw error;
      }
    },
    complete(uid, certificate, kmsRequestId) {
      const values = { ':issued': { S: 'issued' }, ':cert': { B: certificate } };
      if (kmsRequestId === undefined) return change(uid, '#state = :issued, cert = :cert', values);
      const set = '#state = :issued, cert = :cert, kmsRequestId = :request';
      return change(uid, set, { ...values, ':request': { S: kmsRequestId } });
    },
    expire(uid, attempt) {
      return change(uid, '#state = :expired', { ':expired': { S: 'expired' } }, attempt);
    },
  };
}

/** The caller changes a record that it has not opened. */
class NoRecordError extends Error {
  override readonly name = 'NoRecordError';
}

async function write(uid: string, token: string, send: () => Promise<unknown>): Promise<LedgerWrite> {
  try {
    await mapTableErrors(send);
    return { kind: 'written' };
  } catch (error) {
    if (!(error instanceof ConditionalCheckFailedException)) throw error;
    if (error.Item === undefined) throw new NoRecordError(`the ledger has no record of ${uid}`);
    if (error.Item['writer']?.S === token) return { kind: 'written' };
    return { kind: 'found', found: recordFrom(error.Item, uid) };
  }
}

async function mapTableErrors<T>(send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    throw tableError(error);
  }
}

function itemOf(intent: Intent): Item {
  const { requestDigest, caKeyId, tbs, serial, notAfter, openedAt, leaseUntil, identity } = intent;
  return {
    uid: { S: intent.uid },
    requestDigest: { S: requestDigest },
    state: { S: 'intent' },
    caKeyId: { S: caKeyId },
    tbs: { B: tbs },
    serial: { S: serial },
    notAfter: { N: String(notAfter) },
    expiry: { S: expiryPartition(notAfter, serial) },
    openedAt: { N: String(openedAt) },
    leaseUntil: { N: String(leaseUntil) },
    attempt: { N: '1' },
    ...(identity === undefined ? {} : { identity: { S: identity } }),
  };
}

/** An item that is not what this program writes is a fault, never a guess. */
function recordFrom(item: Item, uid: string): IssuingRecord {
  const state = text(item, 'state');
  if (state !== 'intent' && state !== 'issued' && state !== 'expired')
    throw new TypeError(`the ledger holds an unknown state for ${uid}`);
  if (text(item, 'uid') !== uid) throw new TypeError(`the ledger holds another record under the key of ${uid}`);
  const { cert, identity, kmsRequestId } = item;
  return {
    uid,
    requestDigest: text(item, 'requestDigest'),
    state,
    caKeyId: text(item, 'caKeyId'),
    tbs: bytes(item, 'tbs'),
    serial: text(item, 'serial'),
    notAfter: integer(item, 'notAfter'),
    openedAt: integer(item, 'openedAt'),
    attempt: integer(item, 'attempt'),
    leaseUntil: integer(item, 'leaseUntil'),
    ...(identity === undefined ? {} : { identity: text(item, 'identity') }),
    ...(cert === undefined ? {} : { certificate: bytes(item, 'cert') }),
    ...(kmsRequestId === undefined ? {} : { kmsRequestId: text(item, 'kmsRequestId') }),
  };
}

function text(item: Item, attribute: string): string {
  const value = item[attribute]?.S;
  if (value === undefined) throw new TypeError(`ledger attribute ${attribute} is not a string`);
  return value;
}

function integer(item: Item, attribute: string): number {
  const value = Number(item[attribute]?.N);
  if (!Number.isSafeInteger(value)) throw new TypeError(`ledger attribute ${attribute} is not an integer`);
  return value;
}

function bytes(item: Item, attribute: string): Uint8Array {
  const value = item[attribute]?.B;
  if (value === undefined) throw new TypeError(`ledger attribute ${attribute} is not bytes`);
  return value;
}
