/** DynamoDB's SDK as the functions use it: a throttled call is made again, later each time, until its tries are over. */
import type { Random } from '../../random.ts';
import { Throttled } from './account.ts';
import type { Account } from './account.ts';
import { dynamodb } from '../numbers.ts';

/** `take` is what the table does with the call, in the middle of its time; false where a quota says no. */
export function createAsking(account: Account, chance: Pick<Random, 'next'>) {
  return async (take: () => boolean): Promise<void> => {
    for (let attempt = 1; ; attempt += 1) {
      const milliseconds = account.within(dynamodb.milliseconds);
      await account.wait(milliseconds / 2);
      const letThrough = take();
      await account.wait(milliseconds / 2);
      try {
        account.counted('dynamodb', letThrough);
        return;
      } catch (error) {
        if (!(error instanceof Throttled) || attempt === dynamodb.attempts) throw error;
        await account.wait(chance.next() * dynamodb.throttledDelayMilliseconds * 2 ** (attempt - 1));
      }
    }
  };
}
