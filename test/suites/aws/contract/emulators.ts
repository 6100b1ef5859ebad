/** The two AWS emulators: what holds for one adapter holds on both. */
import { afterAll, beforeAll, describe } from 'vitest';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { requireLocalStack, startLocalStack } from '../../../harness/aws/localstack.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { requireTools } from '../../../tools/tools.ts';

const emulators = [
  { name: 'LocalStack', start: () => startLocalStack(), ...(await requireLocalStack()) },
  { name: 'MiniStack', start: () => startMiniStack({ auth: true }), ...(await requireTools('ministack')) },
];

/** Starts each one around the tests that `define` makes; these may ask for it once they run. */
export function describeOnEmulators(define: (name: string, emulator: () => Emulator) => void): void {
  for (const { name, start, skip } of emulators)
    describe.skipIf(skip)(`on ${name}`, () => {
      let started: Emulator | undefined;
      beforeAll(async () => {
        started = await start();
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
