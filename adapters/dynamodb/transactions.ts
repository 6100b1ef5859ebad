/**
 * Transactions, and the three ways in which one ends: done; not done because a condition does not hold; not done because
 * it met another one on the way, which says nothing about what is there and is tried again.
 *
 * The SDK sends a call again when its answer is lost. ClientRequestToken tells DynamoDB that it is the same one, which
 * then is done once and answered twice. DynamoDB remembers a token for ten minutes, and not every stand-in for it does,
 * so each writing transaction also leaves its token in one of its items (`writer`): a condition that fails against our
 * own token means that we have written.
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  TransactGetItemsCommand,
  TransactionCanceledException,
  TransactionInProgressException,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import type { CancellationReason, DynamoDBClient, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { ThrottledError } from '../../core/ports/errors.ts';
import { tableError } from './table.ts';
import type { Item } from './values.ts';

export interface TransactionOptions {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** `failed`: for each item in order, the stored item that failed its condition (empty if absent); undefined = it held. */
export type TransactionWrite =
  { readonly kind: 'written' } | { readonly kind: 'conditionFailed'; readonly failed: readonly (Item | undefined)[] };

/** Six tries, with pauses of 20 ms at most before the second and 320 ms before the last: well under a second. */
const mostTries = 6;
const firstPauseMilliseconds = 20;

export function newToken(randomBytes: (count: number) => Uint8Array): string {
  return Buffer.from(randomBytes(16)).toString('base64url');
}

/** Writes all or nothing. `token` is of this call alone: a caller's second call brings another. */
export async function transactWrite(
  { client, randomBytes }: TransactionOptions,
  token: string,
  items: readonly TransactWriteItem[],
): Promise<TransactionWrite> {
  const command = { TransactItems: [...items], ClientRequestToken: token };
  return persist(randomBytes, async () => {
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
  const { Responses: responses = [] } = await persist(randomBytes, () =>
    client.send(new TransactGetItemsCommand({ TransactItems: gets })),
  );
  if (responses.length !== keys.length) throw new Error('the table answered for other items than were asked for');
  return responses.map(({ Item: item }) => item);
}

async function persist<T>(randomBytes: (count: number) => Uint8Array, send: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await send();
    } catch (error) {
      if (!metAnother(error)) throw tableError(error);
      if (tries === mostTries) throw new ThrottledError('others write the same items of the table', { cause: error });
      // Of random length, or two that met would meet again.
      const chance = (randomBytes(1)[0] ?? 0) / 256;
      await pause(firstPauseMilliseconds * 2 ** (tries - 1) * chance);
    }
  }
}

/** The failed conditions of a cancelled transaction, also if other items of it met another transaction. */
function failedConditions(error: unknown): readonly (Item | undefined)[] | undefined {
  const reasons = reasonsOf(error);
  if (!reasons.some(({ Code: code }) => code === 'ConditionalCheckFailed')) return undefined;
  return reasons.map(({ Code: code, Item: item }) => (code === 'ConditionalCheckFailed' ? (item ?? {}) : undefined));
}

const passing = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);

/** Nothing was done, and it may be tried again as it is: under the same token it is still the same transaction. */
function metAnother(error: unknown): boolean {
  if (error instanceof TransactionInProgressException) return true;
  return reasonsOf(error).some(({ Code: code }) => code !== undefined && passing.has(code));
}

function reasonsOf(error: unknown): readonly CancellationReason[] {
  return error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : [];
}
