/**
 * No requester or cluster starves beside one that wants much. docs/internals/scale.md has the larger ones of both, and why these
 * bounds are fair.
 */
import { expect, test } from 'vitest';
import { makePairs } from '../../sim/scale/certificate.ts';
import { runScenario } from '../../sim/scale/run.ts';
import { scenarios } from '../../sim/scale/scenarios.ts';

const pairs = await makePairs();

async function run(name: string) {
  const scenario = scenarios.find((each) => each.name === name);
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  const result = await runScenario(scenario, pairs);
  expect(result.signed).toBe(result.requests);
  expect(result.others?.answered).toBe(scenario.requests);
  return { scenario, result };
}

test('a requester with one request a second is served at once, beside one with two thousand', async () => {
  const { result } = await run('flood-requester-2k');
  // They are next in turn whenever a call of the other one ends: two calls, not thousands.
  expect(result.others?.longest).toBeLessThan(1);
  // Nor does the other one pay for it.
  expect(result.paceRatio).toBeLessThan(1.1);
}, 180_000);

test('clusters that want a little of the account’s signatures have them, beside one that wants a thousand times as much', async () => {
  const { scenario, result } = await run('flood-fifth');
  // If all shares were equal, all of the small ones would be through in this time: twice that, since no share is exact.
  const fair = scenario.requests / scenario.account.signaturesPerSecond;
  expect(result.others?.longest).toBeLessThan(2 * fair);
  expect(result.paceRatio).toBeLessThan(1.1);
  expect(result.worstCallRatio).toBeLessThanOrEqual(1.3);
}, 180_000);
