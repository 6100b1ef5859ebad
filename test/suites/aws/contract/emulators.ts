/** The two AWS emulators, and DynamoDB by itself: what holds for one adapter holds on each. */
import { afterAll, beforeAll, describe } from 'vitest';
import { startDynamoDbLocal } from '../../../harness/aws/dynamodb-local.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { requireLocalStack, startLocalStack } from '../../../harness/aws/localstack.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { requireTools } from '../../../tools/tools.ts';

const emulators = {
  LocalStack: { start: () => startLocalStack(), ...(await requireLocalStack()) },
  'DynamoDB Local': { start: startDynamoDbLocal, ...(await requireTools('dynamodb-local')) },
  MiniStack: { start: () => startMiniStack({ auth: true }), ...(await requireTools('ministack')) },
};
type Name = keyof typeof emulators;

export const bothEmulators: readonly Name[] = ['LocalStack', 'MiniStack'];

/** Starts each one around the tests that `define` makes; these may ask for it once they run. */
export function describeOnEmulators(
  names: readonly Name[],
  define: (name: Name, emulator: () => Emulator) => void,
): void {
  for (const name of names)
    describe.skipIf(emulators[name].skip)(`on ${name}`, () => {
      let started: Emulator | undefined;
      beforeAll(async () => {
        started = await emulators[name].start();
      });
      afterAll(() => started?.stop());
      define(name, () => {
        if (started === undefined) throw new Error(`${name} was not started`);
        return started;
      });
    });
}

/** An emulator on a busy machine may take its time; how long production waits is not what these suites ask. */
export const patience = { connectionTimeout: 30_000, requestTimeout: 30_000 } as const;
