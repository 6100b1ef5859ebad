/** One function of Lambda: its environments, warm and cold, its reserved concurrency and the account's. */
import type { Account, World } from './account.ts';
import { lambda } from '../numbers.ts';
import { createQuota } from './quota.ts';

/** One call at a time. */
export interface Environment {
  /** It has what it reads once. */
  loaded: boolean;
}

/** Undefined where no environment is to be had: Lambda throttles. */
export type Invoke = <T>(serve: (environment: Environment) => Promise<T>) => Promise<T | undefined>;

export function createEnvironments(
  { timeline }: Pick<World, 'timeline'>,
  account: Account,
  reservedConcurrency: number,
): Invoke {
  const calls = createQuota(timeline, reservedConcurrency * lambda.callsPerSecondEach);
  const starts = createQuota(timeline, lambda.startsPerTenSeconds / 10, lambda.startsPerTenSeconds);
  const idle: Environment[] = [];
  let started = 0;

  return async (serve) => {
    account.counts.lambda.calls += 1;
    const warm = idle.at(-1);
    const room = warm !== undefined || started < reservedConcurrency;
    if (!room || !calls.take() || (warm === undefined && !starts.take()) || !account.enter()) {
      account.counts.lambda.throttled += 1;
      return undefined;
    }
    const environment = idle.pop() ?? { loaded: false };
    const begun = timeline.now();
    if (warm === undefined) {
      started += 1;
      await account.wait(account.within(lambda.coldMilliseconds));
    }
    try {
      return await serve(environment);
    } finally {
      account.leave(timeline.now() - begun);
      idle.push(environment);
    }
  };
}
