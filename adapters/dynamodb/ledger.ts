/**
 * The ledger of one cluster in its DynamoDB table. Each method is one conditional call. If the condition fails, the call
 * returns the existing record (ReturnValuesOnConditionCheckFailure), so that a lost race needs no second read.
 *
 * The SDK repeats a call whose answer is lost, and the repetition then fails its own condition. So every write stores a
 * token of its call in the record: if the condition fails and the record has the same token, the write has succeeded.
 */
import { ConditionalCheckFailedException, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBClientConfig, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type {
  CertificateLedger,
  FreshKey,
  Intent,
  IssuingRecord,
  LedgerResult,
  OpenResult,
} from '../../core/ports/certificate-ledger.ts';
import { issuingRecordFrom } from '../../core/issuing-record.ts';
import { idleConnections } from '../http/stale-connections.ts';
import { certificatesTable, expiryPartition, itemKey, mapTableErrors } from './table.ts';
import { newToken, readItem, transactWrite } from './transactions.ts';
import type { TransactionOptions } from './transactions.ts';
import { itemFrom, plainFrom } from './values.ts';
import type { Item } from './values.ts';

/**
 * Settings of the ledger's client. The SDK may repeat its writes (see above). A call ends after at most 9 s, so
 * two calls and a signature fit into the function's 25 s.
 */
export const ledgerClientConfig = {
  maxAttempts: 3,
  requestHandler: {
    connectionTimeout: 1_000,
    requestTimeout: 2_000,
    throwOnRequestTimeout: true,
    ...idleConnections(2),
  },
} as const satisfies DynamoDBClientConfig;

export function dynamoDbLedger(options: TransactionOptions): CertificateLedger {
  const { client, tableName, randomBytes } = options;
  const keyOf = (uid: string): Item => ({ [certificatesTable.partitionKey]: { S: itemKey('uid', uid) } });

  /** Changes a record that is still an intent, and whose current attempt is `attempt` if that is given. */
  function change(uid: string, set: string, values: Item, attempt?: number, remove = ''): Promise<LedgerResult> {
    const token = newToken(randomBytes);
    const command = new UpdateItemCommand({
      TableName: tableName,
      Key: keyOf(uid),
      UpdateExpression: `SET ${set}, writer = :token${remove}`,
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

  function open(intent: Intent): Promise<LedgerResult>;
  function open(intent: Intent, freshKey: FreshKey | undefined): Promise<OpenResult>;
  async function open(intent: Intent, freshKey?: FreshKey): Promise<OpenResult> {
    const { uid, notAfter, serial } = intent;
    const token = newToken(randomBytes);
    const initial = { state: 'intent', attempt: 1, expiry: expiryPartition(notAfter, serial) };
    const put = {
      TableName: tableName,
      Item: { ...keyOf(uid), ...itemFrom({ ...intent, ...initial }), writer: { S: token } },
      ConditionExpression: `attribute_not_exists(${certificatesTable.partitionKey})`,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
    };
    if (freshKey === undefined) return write(uid, token, () => client.send(new PutItemCommand(put)));
    const answer = await transactWrite(options, token, [{ Put: put }, keyMark(freshKey, intent)]);
    if (answer.kind === 'written') return answer;
    const [existing] = answer.failed;
    if (existing === undefined) return { kind: 'keyUsed' };
    if (existing['writer']?.S === token) return { kind: 'written' };
    return { kind: 'found', found: recordFrom(existing, uid) };
  }

  /** Marks the key as used by this request. An existing mark never changes. Its identity is NULL if its request had none. */
  function keyMark({ spkiSha256, requestSha256, identity }: FreshKey, intent: Intent): TransactWriteItem {
    const orIdentity = identity === undefined ? '' : ' OR #identity = :allowed';
    const marks = ['requestSha256 = if_not_exists(requestSha256, :request)', 'uid = if_not_exists(uid, :uid)'];
    return {
      Update: {
        TableName: tableName,
        Key: { [certificatesTable.partitionKey]: { S: itemKey('spki', spkiSha256) } },
        UpdateExpression: `SET ${marks.join(', ')}, #identity = if_not_exists(#identity, :identity)`,
        ConditionExpression: `attribute_not_exists(${certificatesTable.partitionKey}) OR requestSha256 = :request${orIdentity}`,
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
      const item = await readItem(options, keyOf(uid));
      return item === undefined ? undefined : recordFrom(item, uid);
    },
    open,
    takeOver(uid, attempt, leaseUntil, lambdaRequestId) {
      const values = { ':one': { N: '1' }, ':lease': { N: String(leaseUntil) } };
      const set = 'attempt = attempt + :one, leaseUntil = :lease';
      if (lambdaRequestId === undefined) return change(uid, set, values, attempt, ' REMOVE lambdaRequestId');
      const invocation = { ':invocation': { S: lambdaRequestId } };
      return change(uid, `${set}, lambdaRequestId = :invocation`, { ...values, ...invocation }, attempt);
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

/** The record to change does not exist. */
class NoRecordError extends Error {
  override readonly name = 'NoRecordError';
}

async function write(uid: string, token: string, send: () => Promise<unknown>): Promise<LedgerResult> {
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

/** Throws for an item that this program did not write. */
export function recordFrom(item: Item, uid: string): IssuingRecord {
  const { cert: certificate, ...record } = plainFrom(item);
  return issuingRecordFrom({ ...record, certificate }, uid);
}
