/** Requests of gke-exec-auth-plugin, changed at random 100 000 times. HOSTILE_SEED repeats a run. */
import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { runVmCampaign } from '../../../corpus/attestation/gce-vtpm/mutations.ts';

const seed = Number(process.env['HOSTILE_SEED'] ?? randomInt(2 ** 31));
const count = 100_000;

test(`seed ${seed}: ${count} changed requests are refused by name, or state what the vTPM signed`, async () => {
  const { refused, accepted, faults, reasons } = await runVmCampaign(seed, count);
  expect(faults).toEqual([]);
  expect(refused).toBeGreaterThan(70_000);
  expect(accepted).toBeGreaterThan(1_000);
  expect(reasons.size).toBeGreaterThan(40);
}, 580_000);
