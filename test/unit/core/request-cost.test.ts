/** What one request can cost at most, counted in steps of core/: docs/internals/performance.md states the numbers. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { countedSteps } from '../../harness/determinism/steps.ts';

const counts = countedSteps(join(import.meta.dirname, 'request-cost-program.ts'));
const steps = (name: string): number => counts[name] ?? Number.NaN;

/** As stated in docs/internals/performance.md. */
const budget = 8_000_000;

test('finding 6: the most expensive request that passes every cap stays within the budget, in sign and in the relay', () => {
  for (const name of ['sign: worst', 'relay: worst']) {
    expect(steps(name)).toBeLessThan(budget);
    // Should this ever be small, the request is not the most expensive one any more.
    expect(steps(name)).toBeGreaterThan(budget / 2);
  }
});

test('finding 6: so does a kubelet with 256 addresses before 256 ranges and 256 reserved blocks, in attest', () => {
  expect(steps('attest: 256 addresses')).toBeLessThan(budget / 2);
  // Parsed for each address, each range would be more than ten steps more.
  const comparisons = 256 * (8 + 256 + 4 * 256);
  expect(steps('attest: 256 addresses') - steps('attest: one address')).toBeLessThan(5 * comparisons);
});

test('finding 6: twice the names, attributes and groups are twice the work', () => {
  expect(steps('sign: worst') / steps('sign: half')).toBeLessThan(2.1);
});

test('finding 6: one name too many is refused before anything is compared', () => {
  expect(steps('sign: 257 names')).toBeLessThan(2 * steps('sign: ordinary'));
});

test('finding 6: thousands of names cost reading them once', () => {
  expect(steps('sign: 9 500 names')).toBeLessThan(budget / 20);
});

test('finding 6: names of a requester who is not allowed are read and compared with nothing', () => {
  // Reading takes a step for each of some 250 octets; comparing with 256 patterns would take thousands.
  const perName = (steps('sign: stranger, 256 names') - steps('sign: stranger, one name')) / 255;
  expect(perName).toBeLessThan(512);
});
