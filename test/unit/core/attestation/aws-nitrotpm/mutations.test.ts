/** The DATA block of aws-nitrotpm/v1, changed at random: 100 000 times in the deep tier, where HOSTILE_SEED repeats a run. */
import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { runNitroTpmCampaign } from '../../../../corpus/attestation/aws-nitrotpm/mutations.ts';
import { byTier } from '../../../../harness/determinism/tier.ts';

const count = byTier({ default: 1_500, deep: 100_000 });
const seed = Number(process.env['HOSTILE_SEED'] ?? byTier({ default: 1, deep: randomInt(2 ** 31) }));

test(`changed proofs are refused by name, or are still those of the machine`, async () => {
  const { refused, accepted, faults, reasons } = await runNitroTpmCampaign(seed, count);
  expect(faults, `seed ${seed}`).toEqual([]);
  expect(refused).toBeGreaterThan(count * 0.6);
  expect(accepted).toBeGreaterThan(count / 150);
  expect(reasons.size).toBeGreaterThan(15);
}, 580_000);
