/** The runner itself: faults made on purpose are each reported by name, and the cases around them go on. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as fc from 'fast-check';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { runCases, type PlantedCase } from './campaign.ts';
import { plants, type Plant } from './messages.ts';
import { openPool, type Pool } from './pool.ts';
import { runProperty } from './property.ts';

const good = makeRequest({ subject: { CN: 'good' } }).bytes;
const bad = Buffer.from('no PEM');

/** What the runner must say of each, and whether the worker is gone afterwards. */
const expected: Readonly<
  Record<Plant, { readonly says: RegExp; readonly request: Buffer; readonly replaced: boolean }>
> = {
  hang: { says: /^HANG: no answer after/, request: good, replaced: true },
  wait: { says: /^HANG: no answer after/, request: good, replaced: true },
  exit: { says: /^CRASH: exit code 7/, request: good, replaced: true },
  throw: { says: /^CRASH: exit code 1.*planted/, request: good, replaced: true },
  reject: { says: /^CRASH: exit code 1.*planted/, request: good, replaced: true },
  heap: { says: /^CRASH: SIGABRT: .*heap out of memory/, request: good, replaced: true },
  buffer: { says: /MEMORY: grew by \d{3} MB/, request: good, replaced: false },
  'server-error': { says: /STATUS 500/, request: bad, replaced: false },
  busy: { says: /STATUS 503/, request: bad, replaced: false },
  unnamed: { says: /code SomethingElse is not in the list/, request: bad, replaced: false },
  nameless: { says: /a refusal without a code/, request: bad, replaced: false },
  unmarked: { says: /no x-countersign-outcome header/, request: bad, replaced: false },
  reflects: { says: /not plainly visible/, request: bad, replaced: false },
  'other-names': { says: /certificate subject: .*somebody-else/, request: good, replaced: false },
};

let pool: Pool;
beforeAll(async () => {
  pool = await openPool({ watchdogMilliseconds: 6_000 });
});
afterAll(() => pool.close());

const ordinary = (id: string): PlantedCase => ({ id, expected: ['issued'], input: () => ({ request: good }) });

test('names each planted fault, replaces the workers it has to, and goes on', async () => {
  const cases = plants.flatMap((plant): PlantedCase[] => [
    { id: plant, plant, expected: ['issued', 'RequestMalformed'], input: () => ({ request: expected[plant].request }) },
    ordinary(`after ${plant}`),
  ]);
  const summary = await runCases(pool, cases);

  expect(summary.cases).toBe(2 * plants.length);
  expect(summary.failures.map(({ id }) => id).toSorted()).toEqual(plants.toSorted());
  for (const { id, faults } of summary.failures) expect(faults.join('; ')).toMatch(expected[id as Plant].says);
  expect(pool.restarts()).toBe(plants.filter((plant) => expected[plant].replaced).length);
  // What was planted in one worker must not have been spared by the other.
  expect(summary.issued).toBeGreaterThanOrEqual(plants.length);
});

test('tells an ending that was not expected', async () => {
  const summary = await runCases(pool, [
    { ...ordinary('issued, and should not have been'), expected: ['RequestMalformed'] },
    { ...ordinary('refused, and should not have been'), input: () => ({ request: bad }) },
  ]);
  // Two workers: either may be through first.
  expect(summary.failures.map(({ id, faults }) => `${id}: ${faults.join()}`).toSorted()).toEqual([
    expect.stringMatching(/^issued.*issued \(200.*expected RequestMalformed/),
    expect.stringMatching(/^refused.*RequestMalformed \(422.*expected issued/),
  ]);
});

test('reduces a failing plan to the smallest one', async () => {
  const property = {
    name: 'planted',
    arbitrary: fc.record({ size: fc.nat(1_000), note: fc.string() }),
    toCase: (id: string, { size }: { size: number; note: string }): PlantedCase => ({
      ...ordinary(id),
      input: () => ({ request: size < 100 ? good : bad }),
    }),
  };
  const summary = await runProperty(pool, property, { seed: 7, runs: 20 });
  expect(summary.failures.length).toBeGreaterThan(0);
  expect(summary.failures[0]?.faults.join()).toContain('smallest plan: {"size":100,"note":""}');
});
