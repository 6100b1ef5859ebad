/** As test/suites/adversarial/hostile/gce-vtpm-requests.test.ts, with fewer changes. */
import { expect, test } from 'vitest';
import { runVmCampaign } from '../../../../corpus/attestation/gce-vtpm/mutations.ts';

test('1 500 changed requests are refused by name, or state what the vTPM signed', async () => {
  const { refused, accepted, faults, reasons } = await runVmCampaign(1, 1_500);
  expect(faults).toEqual([]);
  expect(refused).toBeGreaterThan(1_000);
  expect(accepted).toBeGreaterThan(10);
  expect(reasons.size).toBeGreaterThan(30);
});
