import { afterEach, expect, test } from 'vitest';
import {
  leaseMilliseconds,
  renewDeadlineMilliseconds,
  runAsLeader,
} from '../../../../../lambdas/watch-relay/cluster/leader.ts';
import { recordingLog } from '../fixtures.ts';
import { createSimulatedLease } from '../simulated-lease.ts';
import type { LeaseFault } from '../simulated-lease.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';
import { byTier } from '../../../../harness/determinism/tier.ts';
import { mulberry32 } from '../../../../harness/determinism/mulberry32.ts';
import type { VirtualClock } from '../../../../harness/determinism/virtual-time.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

function setUp(names: readonly string[], faults: Record<string, () => LeaseFault | undefined> = {}) {
  const clock = createVirtualClock();
  const lease = createSimulatedLease(clock);
  /** Who works now, and every moment at which more than one did. */
  const working = new Set<string>();
  const together: string[] = [];
  const terms: string[] = [];
  const random = mulberry32(3);
  const replicas = Object.fromEntries(
    names.map((name) => {
      const stop = new AbortController();
      let ended = false;
      void runAsLeader(
        async (lost) => {
          working.add(name);
          terms.push(name);
          if (working.size > 1) together.push([...working].join('+'));
          await either(lost, stop.signal);
          if (!lost.aborted) await sleep(clock, 3_000); // a drain
          working.delete(name);
        },
        { store: lease.access(faults[name]), identity: name, clock, random, log: recordingLog().log },
        stop.signal,
      ).then(() => (ended = true));
      stops.push(() => stop.abort());
      return [name, { stop: () => stop.abort(), ended: () => ended }];
    }),
  );
  return { clock, lease, working, together, terms, replicas };
}

test('the first one leads, the other stands by for as long as it renews', async () => {
  const { clock, lease, working, terms } = setUp(['a', 'b']);
  await clock.advance(600_000);
  expect(terms).toHaveLength(1);
  expect([...working]).toEqual(terms);
  expect(lease.holder()).toBe(terms[0]);
  expect(lease.lease()?.['spec']).toMatchObject({
    leaseDurationSeconds: 15,
    leaseTransitions: 0,
    acquireTime: expect.stringMatching(/\.\d{6}Z$/) as unknown,
    renewTime: expect.stringMatching(/\.\d{6}Z$/) as unknown,
  });
});

test('a leader that stops drains first and then gives the lease back, so that the next one starts within seconds', async () => {
  const { clock, lease, working, together, terms, replicas } = setUp(['a', 'b']);
  await clock.until(() => working.size === 1);
  const [first] = terms;
  await clock.advance(10_000);
  replicas[first!]!.stop();
  await clock.advance(2_900);
  expect(lease.holder()).toBe(first); // held during the drain
  const from = clock.monotonic();
  await clock.until(() => terms.length === 2);
  expect(clock.monotonic() - from).toBeLessThan(6_000);
  expect(terms[1]).not.toBe(first);
  expect(replicas[first!]!.ended()).toBe(true);
  expect(together).toEqual([]);
  expect(lease.lease()).toMatchObject({ spec: { leaseTransitions: 1 }, metadata: { labels: { kept: 'yes' } } });
});

test.each<LeaseFault>(['before', 'hang', 'Forbidden'])(
  'a leader cut off (%s) stops before another one can start, and leads again when it may',
  async (how) => {
    let cutOff = false;
    const { clock, working, together, terms, replicas } = setUp(['a', 'b'], { a: () => (cutOff ? how : undefined) });
    await clock.until(() => working.size === 1);
    if (terms[0] === 'b') {
      replicas['b']!.stop();
      await clock.until(() => terms[1] === 'a');
      return; // the interesting order is the other one, and this seed gives it
    }
    await clock.advance(30_000);
    cutOff = true;
    const from = clock.monotonic();
    await clock.until(() => !working.has('a'));
    expect(clock.monotonic() - from).toBeLessThanOrEqual(renewDeadlineMilliseconds + 2_000);
    await clock.until(() => working.has('b'));
    expect(clock.monotonic() - from).toBeGreaterThan(leaseMilliseconds - 2_100);
    expect(clock.monotonic() - from).toBeLessThan(leaseMilliseconds + 7_000);
    cutOff = false;
    replicas['b']!.stop();
    await clock.until(() => working.has('a'));
    expect(together).toEqual([]);
  },
);

test('this seed makes a lead first, which the test above needs', async () => {
  const { clock, terms } = setUp(['a', 'b']);
  await clock.until(() => terms.length > 0);
  expect(terms).toEqual(['a']);
});

test('a lost answer to a renewal is no loss', async () => {
  let call = 0;
  const { clock, working, terms } = setUp(['a', 'b'], {
    a: () => (call++ % 3 === 2 ? 'after' : undefined),
  });
  await clock.until(() => working.size === 1);
  await clock.advance(600_000);
  expect(terms).toEqual(['a']);
});

test('a leader whose lease was taken away by hand stops at its next renewal', async () => {
  const { clock, lease, working, terms } = setUp(['a']);
  await clock.until(() => working.has('a'));
  const stolen = { ...lease.lease(), spec: { holderIdentity: 'thief', leaseDurationSeconds: 15 } };
  const done = lease.access().update(stolen, new AbortController().signal);
  await clock.advance(10);
  expect((await done).ok).toBe(true);
  await clock.advance(2_500);
  expect(working.size).toBe(0);
  await clock.until(() => working.has('a')); // the stolen one is not renewed
  expect(terms).toEqual(['a', 'a']);
});

test('a deleted lease is made again', async () => {
  const { clock, lease, working, terms } = setUp(['a']);
  await clock.until(() => working.has('a'));
  lease.remove();
  await clock.advance(5_000);
  expect(lease.holder()).toBe('a');
  expect(terms).toEqual(['a']);
});

test.each(Array.from({ length: byTier({ default: 8, deep: 20 }) }, (_, i) => i))(
  'never two at work, whatever fails (seed %i)',
  async (seed) => {
    const random = mulberry32(seed);
    /** Outages come and go for each replica by itself. */
    const until: Record<string, number> = {};
    const flaky = (name: string, clock: () => VirtualClock) => () => {
      const now = clock().monotonic();
      if ((until[name] ?? 0) > now) return 'hang' as const;
      if (random() < 0.02) until[name] = now + random() * 30_000;
      const dice = random();
      return dice < 0.05 ? ('before' as const) : dice < 0.1 ? ('after' as const) : undefined;
    };
    const names = ['a', 'b', 'c'];
    const world: { clock?: VirtualClock } = {};
    const { clock, together, terms } = setUp(
      names,
      Object.fromEntries(names.map((name) => [name, flaky(name, () => world.clock!)])),
    );
    world.clock = clock;
    await clock.advance(1_800_000);
    expect(together).toEqual([]);
    expect(terms.length).toBeGreaterThan(1); // it did change hands
  },
);

function either(...signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of signals) {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    }
  });
}

function sleep(clock: VirtualClock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => void clock.after(milliseconds, resolve));
}
