import { expect, test } from 'vitest';
import {
  approvedInARow,
  createFairQueue,
  endpointSteps,
  renewalsInARow,
  steps,
} from '../../../../../lambdas/watch-relay/schedule/fair-queue.ts';
import type { PriorityClass, QueuedRequest, Step } from '../../../../../lambdas/watch-relay/schedule/fair-queue.ts';
import { mulberry32 } from '../../../../harness/determinism/mulberry32.ts';

const at = (requester: string, step: Step = 'approve', priority: PriorityClass = 'other'): QueuedRequest => ({
  requester,
  priority,
  step,
  weight: 1,
});

/** Requests are named `requester/number`. Each is taken and finished at once unless the test keeps it in flight. */
function setUp(maxInFlight = 8) {
  const queue = createFairQueue<QueuedRequest & { name: string }>(maxInFlight);
  const push = (count: number, of: QueuedRequest) =>
    Array.from({ length: count }, (_, i) => {
      const request = { ...of, name: `${of.requester}/${i}` };
      queue.push(request);
      return () => queue.remove(request);
    });
  const take = (count: number, { keep = false, of = steps }: { keep?: boolean; of?: readonly Step[] } = {}) => {
    const names: string[] = [];
    for (let i = 0; i < count; i += 1) {
      const taken = queue.next(of);
      if (taken === undefined) break;
      names.push(taken.name);
      if (!keep) queue.finished(taken);
    }
    return names;
  };
  return { queue, push, take };
}

test('a flood delays its own requester: a later requester gets the next slot', () => {
  const { push, take } = setUp();
  push(500, at('flood'));
  expect(take(3)).toEqual(['flood/0', 'flood/1', 'flood/2']);
  push(2, at('late'));
  push(1, at('later'));
  // Behind those who wait already, each once, then round again.
  expect(take(5)).toEqual(['flood/3', 'late/0', 'later/0', 'flood/4', 'late/1']);
  expect(take(1_000)).toHaveLength(495);
});

test('approved requests come before pending ones of the same requester, and other requesters still take turns', () => {
  const { push, take } = setUp();
  push(3, at('a'));
  push(1, at('b'));
  push(2, at('a', 'sign'));
  // a/0 and a/1 to sign, then the three that came first.
  expect(take(6)).toEqual(['a/0', 'b/0', 'a/1', 'a/0', 'a/1', 'a/2']);
});

test('every eighth slot of a requester goes to a pending request', () => {
  const { push, take } = setUp();
  push(100, at('a', 'sign'));
  push(2, at('a', 'approve'));
  push(1, at('a', 'attest'));
  push(30, at('b', 'approve'));
  const own = take(60).filter((name) => name.startsWith('a/'));
  const approved = (from: number) => Array.from({ length: approvedInARow }, (_, i) => `a/${from + i}`);
  // a/0 and a/1 at `approve`, and a/0 at `attest`: the pending steps take turns.
  const expected = [...approved(0), 'a/0', ...approved(7), 'a/0', ...approved(14), 'a/1', ...approved(21)];
  expect(own.slice(0, 29)).toEqual(expected.slice(0, 29));
  // While only `sign` is admitted, it gets every slot; a pending request gets the first slot that its step may have.
  const next = setUp();
  next.push(20, at('a', 'sign'));
  next.push(1, at('a', 'approve'));
  expect(next.take(10, { of: ['sign'] })).toHaveLength(10);
  expect(next.take(2)).toEqual(['a/0', 'a/10']);
});

test('a step that is not admitted does not hold up other steps, and its requests keep their places', () => {
  const { queue, push, take } = setUp(2);
  push(2, at('a', 'attest'));
  push(1, at('b', 'approve'));
  push(1, at('node', 'attest', 'renewal'));
  push(1, at('c', 'sign'));
  push(1, at('a', 'sign'));
  expect(endpointSteps.map((step) => queue.hasReady(step))).toEqual([true, true, true]);
  // a waits at `attest` since before c, but c was the first at `sign`.
  expect(take(10, { of: ['sign'] })).toEqual(['c/0', 'a/0']);
  expect(queue.hasReady('sign')).toBe(false);
  expect(take(10, { of: [] })).toEqual([]);
  expect(take(10, { of: ['approve'] })).toEqual(['b/0']);
  expect(take(1, { of: ['attest'], keep: true })).toEqual(['node/0']);
  // The bound is over all steps.
  push(3, at('a', 'approve'));
  expect(take(10, { of: ['attest'], keep: true })).toEqual(['a/0', 'a/1']);
  expect(queue.hasReady('approve')).toBe(false);
  queue.finished({ ...at('a'), name: '' });
  expect(take(10, { keep: true })).toEqual(['a/0']);
});

test('a requester has at most maxInFlight requests in flight', () => {
  const { queue, push, take } = setUp(3);
  push(10, at('a'));
  push(1, at('b'));
  expect(take(100, { keep: true })).toEqual(['a/0', 'b/0', 'a/1', 'a/2']);
  expect(queue.backlog(at('a'))).toBe(7);
  queue.finished({ ...at('a'), name: '' });
  expect(take(100, { keep: true })).toEqual(['a/3']);
  queue.finished({ ...at('b'), name: '' });
  expect(take(100, { keep: true })).toEqual([]);
});

test('finding 15: a heavy request takes more of its requester’s places and starts while one is free', () => {
  const queue = createFairQueue<QueuedRequest & { name: string }>(4);
  const heavy = { requester: 'a', priority: 'other', step: 'sign', weight: 3 } as const;
  const light = { ...heavy, weight: 1 };
  for (const name of ['h1', 'h2', 'h3']) queue.push({ ...heavy, name });
  queue.push({ ...light, name: 'l1' });
  queue.push({ ...light, requester: 'b', name: 'other' });
  const next = (count: number) => Array.from({ length: count }, () => queue.next(steps)?.name);
  expect(next(4)).toEqual(['h1', 'other', 'h2', undefined]);
  queue.finished({ ...heavy, name: 'h1' });
  expect(next(2)).toEqual(['h3', undefined]);
  queue.finished({ ...heavy, name: 'h2' });
  queue.finished({ ...heavy, name: 'h3' });
  expect(next(2)).toEqual(['l1', undefined]);
  queue.finished({ ...light, name: 'l1' });
  // All places are free again.
  for (const name of ['a', 'b', 'c', 'd', 'e']) queue.push({ ...light, name });
  expect(next(5)).toEqual(['a', 'b', 'c', 'd', undefined]);
});

test('nodes of the cluster come first, but every eighth slot goes to another requester', () => {
  const { push, take } = setUp();
  push(100, at('token'));
  for (let i = 0; i < 100; i += 1) push(1, at(`node-${i}`, 'approve', 'renewal'));
  const taken = take(100);
  const others = taken.filter((name) => name.startsWith('token'));
  expect(taken.slice(0, renewalsInARow).every((name) => name.startsWith('node'))).toBe(true);
  expect(others).toHaveLength(Math.floor(100 / (renewalsInARow + 1)));
  expect(take(1_000)).toHaveLength(100);
});

test('a node that floods starves neither other nodes nor joining ones', () => {
  const { push, take } = setUp();
  push(1_000, at('evil', 'approve', 'renewal'));
  push(20, at('good', 'approve', 'renewal'));
  push(5, at('token'));
  const taken = take(45);
  expect(taken.filter((name) => name.startsWith('good'))).toHaveLength(20);
  expect(taken.filter((name) => name.startsWith('token'))).toHaveLength(5);
});

test('a removed request is never served, and its requester keeps its slots', () => {
  const { queue, push, take } = setUp();
  const back = push(4, at('a'));
  back[0]!();
  back[2]!();
  back[2]!(); // has no effect
  expect(queue.backlog(at('a'))).toBe(2);
  expect(take(10)).toEqual(['a/1', 'a/3']);
  back[1]!(); // too late
  expect(queue.backlog(at('a'))).toBe(0);
  expect(queue.longest()).toBe(0);
});

/** Compared with a count of waiting and in-flight requests per requester. */
test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'each request is served once and within the bounds, in any order of events (seed %i)',
  (seed) => {
    const random = mulberry32(seed);
    const atOnce = 1 + Math.floor(random() * 4);
    const { queue, push } = setUp(atOnce);
    const underWay: (QueuedRequest & { name: string })[] = [];
    const waiting = new Map<string, number>();
    const key = ({ requester, priority }: QueuedRequest) => `${priority} ${requester}`;
    let pushed = 0;
    let out = 0;
    for (let step = 0; step < 3_000; step += 1) {
      const dice = random();
      if (dice < 0.45) {
        const priority = random() < 0.4 ? 'renewal' : 'other';
        const of = at(`r${Math.floor(random() * 6)}`, steps[Math.floor(random() * 4)], priority);
        const [takeBack] = push(1, of);
        if (random() < 0.1) takeBack!();
        else {
          pushed += 1;
          waiting.set(key(of), (waiting.get(key(of)) ?? 0) + 1);
        }
      } else if (dice < 0.75) {
        const taken = queue.next(steps);
        const busy = (of: string) => underWay.filter((one) => key(one) === of).length;
        const able = [...waiting].filter(([of, count]) => count > 0 && busy(of) < atOnce);
        expect(taken === undefined).toBe(able.length === 0);
        if (taken === undefined) continue;
        out += 1;
        waiting.set(key(taken), waiting.get(key(taken))! - 1);
        underWay.push(taken);
        expect(busy(key(taken))).toBeLessThanOrEqual(atOnce);
      } else {
        const [over] = underWay.splice(Math.floor(random() * underWay.length), 1);
        if (over !== undefined) queue.finished(over);
      }
    }
    for (const over of underWay) queue.finished(over);
    for (let taken = queue.next(steps); taken !== undefined; taken = queue.next(steps)) {
      queue.finished(taken);
      out += 1;
    }
    expect(out).toBe(pushed);
  },
);

test('fifty thousand requests of one requester, half of them removed', () => {
  const { push, take } = setUp();
  const back = push(50_000, at('a'));
  for (let i = 0; i < 50_000; i += 2) back[i]!();
  expect(take(100_000)).toHaveLength(25_000);
});
