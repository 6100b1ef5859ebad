/**
 * Whatever is sent, the sign handler answers with a named refusal, or with a certificate that says what was asked for:
 * it never crashes, hangs or answers 5xx. The handler runs in two reused processes with a small heap; see pool.ts.
 *
 *   HOSTILE_SEED, HOSTILE_RUNS   repeat a run, or make it longer; `node test/suites/adversarial/hostile/long-run.ts` for hours of it
 */
import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { HostileCase } from '../../../corpus/hostile/case.ts';
import { extensionCases } from '../../../corpus/hostile/der-extensions.ts';
import { keyCases } from '../../../corpus/hostile/der-keys.ts';
import { nameCases } from '../../../corpus/hostile/der-names.ts';
import { bitFlips, truncations, valueCases } from '../../../corpus/hostile/der-values.ts';
import { derCases } from '../../../corpus/hostile/der.ts';
import { httpCases } from '../../../corpus/hostile/http.ts';
import { jsonFieldCases } from '../../../corpus/hostile/json-fields.ts';
import { jsonCases } from '../../../corpus/hostile/json.ts';
import { pemCases } from '../../../corpus/hostile/pem.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { failuresInWords, inWords, runCases, type Summary } from './campaign.ts';
import { bases } from './mutation.ts';
import { openPool, type Pool } from './pool.ts';
import { objectProperty, requestProperty, runProperty } from './property.ts';

/** The default tier repeats one seed: what fails there fails again. The deep tier draws a new one. */
const seed = Number(process.env['HOSTILE_SEED'] ?? byTier({ default: 1, deep: randomInt(2 ** 31) }));
const runs = Number(process.env['HOSTILE_RUNS'] ?? byTier({ default: 500, deep: 5_000 }));

const corpus: Readonly<Record<string, { readonly cases: readonly HostileCase[]; readonly atLeast: number }>> = {
  PEM: { cases: pemCases, atLeast: 120 },
  'encodings at every level': { cases: derCases, atLeast: 700 },
  'values, depth and width': { cases: valueCases, atLeast: 130 },
  subjects: { cases: nameCases, atLeast: 90 },
  'alternative names and extensions': { cases: extensionCases, atLeast: 120 },
  'keys and signatures': { cases: keyCases, atLeast: 140 },
  'a request cut off at every byte': { cases: truncations(), atLeast: 150 },
  'a request with every bit flipped': { cases: bitFlips(), atLeast: 1_200 },
  JSON: { cases: jsonCases, atLeast: 80 },
  'the fields of the object': { cases: jsonFieldCases, atLeast: 300 },
  HTTP: { cases: httpCases, atLeast: 100 },
};

let pool: Pool;
beforeAll(async () => {
  pool = await openPool();
});
afterAll(() => pool.close());

function report(title: string, summary: Summary): void {
  console.log(inWords(title, summary));
  expect(failuresInWords(summary), 'cases answered otherwise than they may be').toBe('');
  expect(summary.endings.has('fault')).toBe(false);
}

describe('the corpus', () => {
  test('names every case once', () => {
    const ids = Object.values(corpus).flatMap(({ cases }) => cases.map(({ id }) => id));
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  test.each(Object.entries(corpus))('%s', async (title, { cases, atLeast }) => {
    expect(cases.length).toBeGreaterThanOrEqual(atLeast);
    report(title, await runCases(pool, cases));
  });
});

describe('at random', () => {
  test('every request that is changed is issued as it stands', async () => {
    const asTheyStand = bases.map(({ made, signerName, usages }, index): HostileCase => ({
      id: `base/${index}`,
      expected: ['issued'],
      input: () => ({ request: made.bytes, signerName, usages }),
    }));
    const summary = await runCases(pool, asTheyStand);
    report('bases', summary);
    expect(summary.issued).toBe(bases.length);
  });

  test('changed requests, most of them signed after the change', async () => {
    const summary = await runProperty(pool, requestProperty, { seed, runs });
    report(`changed requests (HOSTILE_SEED=${seed} HOSTILE_RUNS=${runs})`, summary);
    // Garbage that ends at the first gate tests the first gate.
    expect(summary.pastPem / summary.requests).toBeGreaterThan(0.3);
    expect(summary.pastSignature / summary.requests).toBeGreaterThan(0.15);
    expect(summary.issued / summary.requests).toBeGreaterThan(0.1);
  });

  test('changed objects', async () => {
    const summary = await runProperty(pool, objectProperty, { seed, runs: Math.ceil(runs / 2) });
    report(`changed objects (HOSTILE_SEED=${seed} HOSTILE_RUNS=${runs})`, summary);
    expect(summary.issued / summary.cases).toBeGreaterThan(0.1);
  });
});

test('no worker had to be replaced in all of this', () => {
  expect(pool.restarts()).toBe(0);
});
