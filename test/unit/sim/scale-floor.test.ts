import { describe, expect, test } from 'vitest';
import { createRandom } from '../../sim/random.ts';
import { createAccount } from '../../sim/scale/aws/account.ts';
import { createAttestationTable } from '../../sim/scale/aws/attestation-table.ts';
import { createAttestations } from '../../sim/scale/aws/attestations.ts';
import { createEndpoint } from '../../sim/scale/aws/endpoint.ts';
import { boundsOf } from '../../sim/scale/floor.ts';
import { throughAt } from '../../sim/scale/gate.ts';
import { apiServer, ec2, lambda } from '../../sim/scale/numbers.ts';
import { createQuota } from '../../sim/scale/aws/quota.ts';
import type { Scenario } from '../../sim/scale/scenarios.ts';
import { createTable, spreadOf } from '../../sim/scale/aws/table.ts';
import { evenly } from '../../sim/scale/wanted.ts';
import { createTimeline } from '../../harness/determinism/virtual-time.ts';

const random = createRandom('floor');

/** A client that asks a bucket every tenth of a millisecond gets through at the earliest possible moment. */
function greedy(asks: readonly number[], perSecond: number, burst: number, shut: (now: number) => boolean): number {
  let now = 0;
  const quota = createQuota({ now: () => now }, perSecond, burst);
  for (let next = 0; next < asks.length; now += 0.1)
    while (next < asks.length && (asks[next] ?? 0) * 1_000 <= now && !shut(now) && quota.take()) next += 1;
  return (now - 0.1) / 1_000;
}

describe('the earliest moment at which the last one can be through a quota', () => {
  test.each([
    ['all at once', 300, 0, 100, 50],
    ['no more than it holds', 40, 0, 100, 50],
    ['over some seconds, faster than it bears', 300, 2, 100, 20],
    ['over some seconds, slower', 100, 5, 100, 20],
  ])('%s: a greedy client has it then', (_, count, over, perSecond, burst) => {
    const asks = Array.from({ length: count }, () => random.next() * over).toSorted((a, b) => a - b);
    const gate = { name: '', perSecond, burst, each: 1, asks };
    const real = greedy(asks, perSecond, burst, () => false);
    expect(throughAt(gate)).toBeLessThanOrEqual(real);
    expect(throughAt(gate)).toBeGreaterThan(real - 0.001);
  });

  test('nor earlier where it is shut for a while', () => {
    const asks = Array.from({ length: 400 }, () => 0.5);
    const gate = { name: '', perSecond: 100, burst: 50, each: 1, asks };
    const real = greedy(asks, 100, 50, (now) => now >= 1_000 && now < 4_000);
    expect(throughAt(gate, { from: 1, to: 4, underWay: 0 })).toBeLessThanOrEqual(real);
    // Half of one, that is lost when it shuts.
    expect(throughAt(gate, { from: 1, to: 4, underWay: 0 })).toBeGreaterThan(real - 0.011);
    expect(throughAt(gate, { from: 1, to: 4, underWay: 10 })).toBeCloseTo(real - 0.11, 2);
  });

  test('and one that grows lets more through from then on, and at once what it then holds', () => {
    const gate = { name: '', perSecond: 10, burst: 10, each: 1, doublesInMinutes: [1] };
    const asks = (count: number, at: number): readonly number[] => Array.from({ length: count }, () => at);
    expect(throughAt({ ...gate, asks: asks(110, 50) })).toBe(60);
    expect(throughAt({ ...gate, asks: asks(130, 50) })).toBe(61);
    expect(throughAt({ ...gate, asks: asks(20, 70) })).toBe(70);
    expect(throughAt({ ...gate, asks: asks(40, 70) })).toBe(71);
  });
});

const small: Scenario = {
  name: 'small',
  requests: 300,
  clusters: 2,
  requesters: 1,
  overSeconds: 0,
  concurrency: 1_000,
  inFlightPerRequester: 1_000,
  reservedConcurrency: 400,
  throttledStatus: 503,
  throttle: { rate: 4_000, burst: 4_000 },
  tableWriteUnits: 40_000,
  account: {
    signaturesPerSecond: 4_000,
    concurrency: lambda.accountConcurrency,
    describes: { perSecond: ec2.describesPerSecond, atOnce: ec2.describesAtOnce },
  },
};

/**
 * A client for this test only: it sends all requests at once, without a limit, again a millisecond after each refusal, and is
 * never slower than the API server at its best. Answers when the last certificate is stored, and the bounds.
 */
async function eager(scenario: Scenario) {
  const chance = createRandom(`eager ${scenario.name}`);
  const timeline = createTimeline(chance.stream('order').next);
  const account = createAccount({ timeline, random: chance }, scenario.account);
  const clusters = Array.from({ length: scenario.clusters }, (_, number) => {
    const own = { timeline, random: chance.stream(String(number)) };
    const table = createTable(own, account, scenario.tableWriteUnits);
    const attestations = createAttestations(own, account, createAttestationTable(own, account, 4_000));
    const { throttle, reservedConcurrency, throttledStatus } = scenario;
    const certificates = new Map([['', 'certificate']]);
    const options = { throttle, reservedConcurrency, throttledStatus, certificates };
    return { table, endpoint: createEndpoint(own, account, table, attestations, options) };
  });
  const { requests: count, overSeconds } = scenario;
  const wanted = evenly(scenario, { kind: 'approved', count, overSeconds }, chance);
  const begin = Math.min(...wanted.map(({ at }) => at));
  let left = wanted.length;
  const { signal } = new AbortController();
  for (const { name, cluster, at } of wanted) {
    const ask = async (): Promise<void> => {
      const object = { metadata: { uid: name }, spec: { request: '' } };
      const said = await clusters[cluster]?.endpoint.sign(object, signal);
      if (said?.kind === 'issued') timeline.after(apiServer.writeMilliseconds[0], () => (left -= 1));
      else timeline.after(1, () => void ask());
    };
    timeline.after(at * 1_000 + apiServer.watchMilliseconds[0], () => void ask());
  }
  while (left > 0 && (await timeline.step()));
  const bounds = boundsOf(scenario, wanted, ({ name, cluster }) => {
    return clusters[cluster]?.table.partitionsOf(spreadOf(name)) ?? [];
  });
  return { seconds: timeline.now() / 1_000 - begin, ...bounds };
}

describe('the floor of a run is met by no client, and nearly by one that knows no measure', () => {
  test.each<readonly [string, string, Partial<Scenario>]>([
    ['the front door', 'front door', { throttle: { rate: 50, burst: 20 } }],
    ['signatures', 'KMS signatures', { account: { ...small.account, signaturesPerSecond: 60 } }],
    ['calls of the function', 'calls of the function', { reservedConcurrency: 8 }],
    ['over a while', 'KMS signatures', { account: { ...small.account, signaturesPerSecond: 60 }, overSeconds: 2 }],
    ['slower than any quota', 'KMS signatures', { overSeconds: 5 }],
  ])('%s', async (name, quota, changed) => {
    const { seconds, floor } = await eager({ ...small, name, ...changed });
    expect(floor.quota).toBe(quota);
    expect(seconds).toBeGreaterThanOrEqual(floor.seconds);
    // Latencies are drawn, and an environment takes up to 400 ms more to start than at best.
    expect(seconds).toBeLessThan(floor.seconds * 1.05 + 0.6);
  });

  test('a partition of the table: as its sixteen keys happen to fall', async () => {
    const { seconds, floor, pace } = await eager({ ...small, name: 'table', clusters: 1, tableWriteUnits: 400 });
    expect(floor.quota).toBe('one partition of the table');
    expect(pace.seconds).toBeCloseTo((300 * 5) / 400, 1);
    expect(seconds).toBeGreaterThanOrEqual(floor.seconds);
  });

  test('nothing to wait for: an environment starts, and one call', async () => {
    const { seconds, floor } = await eager({ ...small, name: 'one', requests: 1, clusters: 1 });
    expect(floor.seconds).toBeGreaterThan(0.2);
    expect(seconds).toBeGreaterThanOrEqual(floor.seconds);
    expect(seconds).toBeLessThan(floor.seconds + 0.6);
  });
});
