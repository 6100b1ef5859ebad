/** The DATA block of x509/v1, changed at random 100 000 times. HOSTILE_SEED repeats a run. */
import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { runX509Campaign } from '../../../corpus/attestation/x509/mutations.ts';

const seed = Number(process.env['HOSTILE_SEED'] ?? randomInt(2 ** 31));
const count = 100_000;

test(`seed ${seed}: ${count} changed proofs are refused by name, or read as another reader reads them`, async () => {
  const { refused, accepted, faults, reasons } = await runX509Campaign(seed, count);
  expect(faults).toEqual([]);
  expect(refused).toBeGreaterThan(90_000);
  expect(accepted).toBeGreaterThan(1_000);
  expect(reasons.size).toBeGreaterThan(20);
}, 580_000);
