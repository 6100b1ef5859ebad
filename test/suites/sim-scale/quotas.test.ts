/** The sizes that run in seconds; `npm run sim:scale` has the others, docs/scale.md what came of them. */
import { describe, expect, test } from 'vitest';
import { byTier } from '../../harness/tier.ts';
import { makePairs } from '../../sim/scale/certificate.ts';
import { runScenario } from '../../sim/scale/run.ts';
import { scenarios } from '../../sim/scale/scenarios.ts';

const pairs = await makePairs();

async function run(name: string) {
  const scenario = scenarios.find((each) => each.name === name);
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  return runScenario(scenario, pairs);
}

const thousand = ['one-1k', 'many-1k', 'join-1k'];
describe.each(byTier({ default: thousand, deep: [...thousand, 'many-10k', 'narrow-10k'] }))('%s', (name) => {
  test('all signed in the time of the quota, nobody asks much more than needed, nobody waits for ever', async () => {
    const result = await run(name);
    expect(result.signed).toBe(result.requests);
    expect(result.paceRatio).toBeLessThan(1.1);
    expect(result.ratio).toBeGreaterThanOrEqual(1);
    expect(result.worstCallRatio).toBeLessThanOrEqual(1.2);
    expect(result.waits.longest).toBeLessThan(result.pace.seconds * 1.1);
  }, 180_000);
});

test('while EC2 throttles the nodes that join, whoever needs no proof waits for his own calls only', async () => {
  const result = await run('join-1k-others');
  expect(result.signed).toBe(result.requests);
  expect(result.calls.ec2.throttled).toBeGreaterThan(50);
  expect(result.worstCallRatio).toBeLessThanOrEqual(1.2);
  expect(result.others).toMatchObject({ answered: 300 });
  expect(result.others?.longest).toBeLessThan(1);
}, 60_000);

test('the same seed gives the same run', async () => {
  expect(await run('away-22')).toEqual(await run('away-22'));
});

test('an endpoint that is busy for everybody at first: seconds after it is back all are signed', async () => {
  const result = await run('away-22');
  expect(result.signed).toBe(22);
  expect(result.seconds).toBeLessThan(12);
  expect(result.calls.frontDoor.calls).toBeLessThanOrEqual(40);
});
