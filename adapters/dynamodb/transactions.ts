/**
 * Transactions. A transaction is written, or fails because a condition does not hold, or conflicts with another
 * transaction. After a conflict it is tried again.
 *
 * The SDK repeats a call whose answer is lost. With the same ClientRequestToken, DynamoDB writes once and answers twice. But
 * it remembers a token for ten minutes only, and some emulators do not. So each writing transaction also stores its token
 * in one of its items (`writer`): a condition that fails against the same token means that this call has written.
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  GetItemCommand,
  TransactGetItemsCommand,
  TransactionCanceledException,
  TransactionInProgressException,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import type { CancellationReason, DynamoDBClient, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { ThrottledError } from '../../core/ports/errors.ts';
import { mapTableErrors, tableError } from './table.ts';
import type { Item } from './values.ts';

export interface TransactionOptions {
  /** Made with `ledgerClientConfig`: the SDK may repeat these writes. */
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** `failed`: for each item in order, the stored item that failed its condition (empty if absent); undefined = it held. */
export type TransactionWrite =
  { readonly kind: 'written' } | { readonly kind: 'conditionFailed'; readonly failed: readonly (Item | undefined)[] };

/** Six tries, with pauses of 20 ms at most before the second and 320 ms before the last: well under a second. */
const maxTries = 6;
const firstPauseMilliseconds = 20;

/** One item, read consistently. */
export async function readItem(
  { client, tableName }: Pick<TransactionOptions, 'client' | 'tableName'>,
  key: Item,
): Promise<Item | undefined> {
  const command = new GetItemCommand({ TableName: tableName, Key: key, ConsistentRead: true });
  return (await mapTableErrors(() => client.send(command))).Item;
}

export function newToken(randomBytes: (count: number) => Uint8Array): string {
  return Buffer.from(randomBytes(16)).toString('base64url');
}

/** Writes all items or none. `token` is new for each call. */
export async function transactWrite(
  { client, randomBytes }: TransactionOptions,
  token: string,
  items: readonly TransactWriteItem[],
): Promise<TransactionWrite> {
  const command = { TransactItems: [...items], ClientRequestToken: token };
  return retryConflicts(randomBytes, async () => {
    try {
      await client.send(new TransactWriteItemsCommand(command));
      return { kind: 'written' };
    } catch (error) {
      const failed = failedConditions(error);
      if (failed === undefined) throw error;
      return { kind: 'conditionFailed', failed };
    }
  });
}

/** Reads items as they were at one moment, in the order asked. */
export async function transactGet(
  { client, tableName, randomBytes }: TransactionOptions,
  keys: readonly Item[],
): Promise<readonly (Item | undefined)[]> {
  const gets = keys.map((key) => ({ Get: { TableName: tableName, Key: key } }));
  const { Responses: responses = [] } = await retryConflicts(randomBytes, () =>
    client.send(new TransactGetItemsCommand({ TransactItems: gets })),
  );
  if (responses.length !== keys.length) throw new Error('DynamoDB returned another number of items than requested');
  return responses.map(({ Item: item }) => item);
}

async function retryConflicts<T>(randomBytes: (count: number) => Uint8Array, send: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await send();
    } catch (error) {
      if (!mayBeRepeated(error)) throw tableError(error);
      if (tries === maxTries)
        throw new ThrottledError('other transactions write the same items of the table', { cause: error });
      // The pause is random, since two transactions that wait equally long would conflict again.
      const jitter = (randomBytes(1)[0] ?? 0) / 256;
      await pause(firstPauseMilliseconds * 2 ** (tries - 1) * jitter);
    }
  }
}

/** The failed conditions of a cancelled transaction, also if other items of it were in conflict. */
function failedConditions(error: unknown): readonly (Item | undefined)[] | undefined {
  const reasons = reasonsOf(error);
  if (!reasons.some(({ Code: code }) => code === 'ConditionalCheckFailed')) return undefined;
  return reasons.map(({ Code: code, Item: item }) => (code === 'ConditionalCheckFailed' ? (item ?? {}) : undefined));
}

const temporary = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);

/** Whether nothing was written and the transaction may be repeated with the same token. */
function mayBeRepeated(error: unknown): boolean {
  if (error instanceof TransactionInProgressException) return true;
  return reasonsOf(error).some(({ Code: code }) => code !== undefined && temporary.has(code));
}

function reasonsOf(error: unknown): readonly CancellationReason[] {
  return error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : [];
}
