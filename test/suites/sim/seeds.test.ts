/** docs/simulator.md: what has been found before stays found, and the simulation itself can be relied on. */
import { beforeAll, describe, expect, test } from 'vitest';
import { createAuthority } from '../../sim/requests.ts';
import type { SimulatedAuthority } from '../../sim/requests.ts';
import { clusterOf, simulate } from '../../sim/simulation.ts';
import type { Outcome } from '../../sim/simulation.ts';

const count = 200;
let authority: SimulatedAuthority;

beforeAll(async () => {
  authority = await createAuthority(clusterOf(true));
});

test('the same seed tells the same story, byte by byte, whatever the keys are', async () => {
  const other = await createAuthority(clusterOf(true));
  for (const seed of [1, 2, 3, 4, 5]) {
    const [first, second] = [await simulate(seed, authority, true), await simulate(seed, other, true)];
    expect(first.lines.join('\n')).toBe(second.lines.join('\n'));
    expect(first.lines.length).toBeGreaterThan(50);
    // Telling changes nothing.
    const untold = await simulate(seed, authority);
    expect({ ...untold, lines: first.lines }).toEqual(first);
  }
});

describe(`${count} seeds`, () => {
  const outcomes: Outcome[] = [];
  const told: string[] = [];

  beforeAll(async () => {
    for (let seed = 1; seed <= count; seed += 1) {
      // Telling costs a little: enough of them to see that every kind of trouble is met.
      const outcome = await simulate(seed, authority, seed <= 60);
      outcomes.push(outcome);
      told.push(...outcome.lines);
    }
  }, 170_000);

  test('break nothing', () => {
    const broken = outcomes.filter(({ failure }) => failure !== undefined);
    expect(broken.map(({ seed, failure }) => `npm run sim -- --seed ${seed} --story: ${failure}`)).toEqual([]);
  });

  test('are lives in which certificates are issued, refused and begun anew', () => {
    const sum = (field: 'requests' | 'issued' | 'failed') => outcomes.reduce((all, each) => all + each[field], 0);
    expect(sum('requests')).toBeGreaterThan(10 * count);
    expect(sum('issued')).toBeGreaterThan(4 * count);
    expect(sum('failed')).toBeGreaterThan(count / 4);
  });

  test.each([
    ['relays die at their calls', /relay-[ab]\d+ dies (before|after) /],
    ['sign dies before a call', /sign#\d+ dies before /],
    ['sign dies after its intent is on record', /sign#\d+ dies after ledger\.open/],
    ['sign dies after the key has signed', /sign#\d+ dies after key\.sign/],
    ['attest dies after its claim', /attest#\d+ dies after attestations\.claim/],
    ['a function runs out of time', /dies when its time is over/],
    ['a write takes effect and its answer is lost', /ledger\.complete .*: written \(answer lost\)/],
    ['a write takes effect long after it was given up', /ledger\.\w+ .* \(late\)/],
    ['a store does not hear of a write', /ledger\.\w+ .*: never arrived/],
    ['a store is throttled', /(ledger|attestations)\.\w+ .*: throttled/],
    ['the key is slow', /key\.sign .*\(slow\)/],
    ['an intent is taken over', /ledger\.takeOver .*: written/],
    ['a claim meets another', /attestations\.claim .*: not written/],
    ['a call is delivered twice', /http repeats sign/],
    ['watches break, end and fall silent', /watch of .* (breaks|falls silent)/],
    ['the past of a watch is gone', /api\.watch .*: Expired/],
    ['a process stands still', /stands still/],
    ['both relays work', /two leaders/],
    ['a request is deleted and its name given on', /is deleted/],
    ['a write meets another', /api\.updateStatus .*: Conflict/],
    ['machines are revoked and forgotten', /the operator does (reset|revoke)/],
    ['a name passes to another machine', /claim .*approve null#m\dx: written/],
    ['a thief shows what he overheard', /a thief with proof-/],
    ['and is told no', /deny AttestationInvalid|deny TofuReuse/],
  ])('%s', (_, line) => {
    expect(told.some((each) => line.test(each))).toBe(true);
  });
});
