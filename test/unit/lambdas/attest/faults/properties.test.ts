/** Whatever happens in whatever order: what must always be so (life-invariants.ts) is so after every step. */
import { fc } from '../../../../harness/determinism/properties.ts';
import { expect, test } from 'vitest';
import { byTier } from '../../../../harness/determinism/tier.ts';
import { anyLife, eventful, live } from './random-life.ts';

test('no life, however odd, gives a name to two machines or a certificate to another', async () => {
  const answers = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(anyLife, async (life) => {
      for (const answer of await live(life)) answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }),
    {
      numRuns: byTier({ default: 20, deep: 80 }),
      examples: [[eventful], [{ ...eventful, allowRestart: false }]],
      interruptAfterTimeLimit: 10_000,
    },
  );
  // They came to something.
  const usual = ['approve', 'issued', 'IdentityNotAllowed', 'TofuReuse', 'TofuNodeTaken', 'UidReused', 'Revoked'];
  const states = ['active', 'retired'];
  expect([...usual, ...states].filter((each) => !answers.has(each))).toEqual([]);
});
