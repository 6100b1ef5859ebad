/** docs/internals/simulator.md: what has been found before stays found, and the simulation itself can be relied on. */
import { beforeAll, describe, expect, test } from 'vitest';
import { byTier } from '../../harness/determinism/tier.ts';
import { expected } from '../../sim/coverage.ts';
import { createAuthorities } from '../../sim/actors/requests.ts';
import type { SimulatedAuthorities } from '../../sim/actors/requests.ts';
import { simulate } from '../../sim/simulation.ts';
import type { Outcome } from '../../sim/simulation.ts';

const count = byTier({ default: 40, deep: 260 });
let authorities: SimulatedAuthorities;

beforeAll(async () => {
  authorities = await createAuthorities();
});

test('the same seed tells the same trace, byte by byte, whatever the keys are', async () => {
  const others = await createAuthorities();
  for (const seed of [1, 2, 3, 4, 5]) {
    const first = await simulate(seed, authorities, { telling: true });
    const second = await simulate(seed, others, { telling: true });
    expect(first.lines.join('\n')).toBe(second.lines.join('\n'));
    expect(first.lines.length).toBeGreaterThan(50);
    // Telling changes nothing.
    const untold = await simulate(seed, authorities);
    expect({ ...untold, lines: first.lines }).toEqual(first);
  }
}, 60_000);

describe(`${count} seeds`, () => {
  const outcomes: Outcome[] = [];
  const counts = new Map<string, number>();

  beforeAll(async () => {
    for (let seed = 1; seed <= count; seed += 1) outcomes.push(await simulate(seed, authorities, { counts }));
  }, 290_000);

  test('break nothing', () => {
    const broken = outcomes.filter(({ failure }) => failure !== undefined);
    expect(broken.map(({ seed, failure }) => `npm run sim -- --seed ${seed} --trace: ${failure}`)).toEqual([]);
  });

  test('are lives in which certificates are issued, refused and begun anew', () => {
    const sum = (field: 'requests' | 'issued' | 'failed') => outcomes.reduce((all, each) => all + each[field], 0);
    expect(sum('requests')).toBeGreaterThan(10 * count);
    expect(sum('issued')).toBeGreaterThan(4 * count);
    expect(sum('failed')).toBeGreaterThan(count / 4);
  });

  // Few seeds do not meet everything.
  const kinds = [
    ['every fault at every call', /^fault: /],
    ['everything else that goes wrong', /^trouble: /],
    ['every reason of a refusal', /^code: /],
    ['every step of records, requests and rules', /^step: /],
  ] as const;
  test.each(byTier<readonly (typeof kinds)[number][]>({ default: [], deep: kinds }))('meet %s', (_, kind) => {
    const wanted = expected().filter((each) => kind.test(each));
    expect(wanted.length).toBeGreaterThan(20);
    expect(wanted.filter((each) => !counts.has(each))).toEqual([]);
  });
});
