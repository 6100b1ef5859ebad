/** Evidence of provider gce, changed at random 100 000 times. HOSTILE_SEED repeats a run. */
import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { runGceCampaign } from '../../../corpus/attestation/gce/mutations.ts';

const seed = Number(process.env['HOSTILE_SEED'] ?? randomInt(2 ** 31));
const count = 100_000;

test(`seed ${seed}: ${count} changed proofs are refused by name, or state what Google signed`, async () => {
  const { refused, accepted, faults, reasons } = await runGceCampaign(seed, count);
  expect(faults).toEqual([]);
  expect(refused).toBeGreaterThan(70_000);
  expect(accepted).toBeGreaterThan(1_000);
  expect(reasons.size).toBeGreaterThan(20);
}, 580_000);
