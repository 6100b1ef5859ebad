import { expect, test } from 'vitest';
import {
  askingSteps,
  begunInARow,
  createTurns,
  renewalsInARow,
  steps,
} from '../../../../../lambdas/watch-relay/schedule/fair-queue.ts';
import type { Line, Step, Turn } from '../../../../../lambdas/watch-relay/schedule/fair-queue.ts';
import { mulberry32 } from '../../../../harness/mulberry32.ts';

const turn = (requester: string, signerName = 's', line: Line = 'other', step: Step = 'decide'): Turn => ({
  requester,
  signerName,
  line,
  step,
});

/** Items are `requester/number`; each is taken and over at once, unless the test keeps it. */
function setUp(atOnce = 8) {
  const turns = createTurns<{ name: string; turn: Turn }>(atOnce);
  const push = (count: number, of: Turn) =>
    Array.from({ length: count }, (_, i) => {
      const place = turns.push({ name: `${of.requester}/${i}`, turn: of }, of);
      return () => turns.leave(place);
    });
  const take = (count: number, { keep = false, of = steps }: { keep?: boolean; of?: readonly Step[] } = {}) => {
    const names: string[] = [];
    for (let i = 0; i < count; i += 1) {
      const taken = turns.next(of);
      if (taken === undefined) break;
      names.push(taken.name);
      if (!keep) turns.over(taken.turn);
    }
    return names;
  };
  return { turns, push, take };
}

test('one who floods delays himself: whoever comes later has the next turn', () => {
  const { push, take } = setUp();
  push(500, turn('flood'));
  expect(take(3)).toEqual(['flood/0', 'flood/1', 'flood/2']);
  push(2, turn('late'));
  push(1, turn('later'));
  // Behind those who wait already, each once, then round again.
  expect(take(5)).toEqual(['flood/3', 'late/0', 'later/0', 'flood/4', 'late/1']);
  expect(take(1_000)).toHaveLength(495);
});

test('what is begun is finished first, the signers still in turn, and nobody else waits for it', () => {
  const { push, take } = setUp();
  push(3, turn('a'));
  push(1, turn('b'));
  push(2, turn('a', 's', 'other', 'sign'));
  push(1, turn('a', 't', 'other', 'sign'));
  // Begun ones have the same names: a/0 and a/1 of s, a/0 of t, then those that came first.
  expect(take(7)).toEqual(['a/0', 'b/0', 'a/0', 'a/1', 'a/0', 'a/1', 'a/2']);
});

test('but not only what is begun, of whatever signer, and whoever else has turns between', () => {
  const { push, take } = setUp();
  push(100, turn('a', 's', 'other', 'sign'));
  push(2, turn('a', 't', 'other', 'decide'));
  push(1, turn('a', 's', 'other', 'prove'));
  push(30, turn('b', 's', 'other', 'decide'));
  const own = take(60).filter((name) => name.startsWith('a/'));
  const begun = (from: number) => Array.from({ length: begunInARow }, (_, i) => `a/${from + i}`);
  // a/0 and a/1 of t, a/0 of those that are to prove something: each after so many that are begun, the signers in turn.
  const expected = [...begun(0), 'a/0', ...begun(7), 'a/0', ...begun(14), 'a/1', ...begun(21)];
  expect(own.slice(0, 29)).toEqual(expected.slice(0, 29));
  // Where only signing can be done it is done, and the others come as soon as they can.
  const next = setUp();
  next.push(20, turn('a', 's', 'other', 'sign'));
  next.push(1, turn('a', 't', 'other', 'decide'));
  expect(next.take(10, { of: ['sign'] })).toHaveLength(10);
  expect(next.take(2)).toEqual(['a/0', 'a/10']);
});

test('what nobody can be asked for now holds up nothing else, and keeps its place', () => {
  const { turns, push, take } = setUp(2);
  push(2, turn('a', 's', 'other', 'prove'));
  push(1, turn('b', 's', 'other', 'decide'));
  push(1, turn('node', 's', 'renewal', 'prove'));
  push(1, turn('c', 's', 'other', 'sign'));
  push(1, turn('a', 's', 'other', 'sign'));
  expect(askingSteps.map((step) => turns.ready(step))).toEqual([true, true, true]);
  // Of c and a, who waits for something else first, c was there first with what can be done.
  expect(take(10, { of: ['sign'] })).toEqual(['c/0', 'a/0']);
  expect(turns.ready('sign')).toBe(false);
  expect(take(10, { of: [] })).toEqual([]);
  expect(take(10, { of: ['decide'] })).toEqual(['b/0']);
  expect(take(1, { of: ['prove'], keep: true })).toEqual(['node/0']);
  // The bound is over all steps.
  push(3, turn('a', 's', 'other', 'decide'));
  expect(take(10, { of: ['prove'], keep: true })).toEqual(['a/0', 'a/1']);
  expect(turns.ready('decide')).toBe(false);
  turns.over(turn('a'));
  expect(take(10, { keep: true })).toEqual(['a/0']);
});

test('of one requester no more than so many are under way, whatever is free', () => {
  const { turns, push, take } = setUp(3);
  push(10, turn('a'));
  push(1, turn('b'));
  expect(take(100, { keep: true })).toEqual(['a/0', 'b/0', 'a/1', 'a/2']);
  expect(turns.waiting(turn('a'))).toBe(7);
  turns.over(turn('a'));
  expect(take(100, { keep: true })).toEqual(['a/3']);
  turns.over(turn('b'));
  expect(take(100, { keep: true })).toEqual([]);
});

test('the bound holds over all signers of a requester, and his signers take turns', () => {
  const { push, take } = setUp(4);
  push(6, turn('a', 'x'));
  push(2, turn('a', 'y'));
  push(1, turn('a', 'z'));
  push(1, turn('b', 'x'));
  expect(take(100, { keep: true })).toEqual(['a/0', 'b/0', 'a/0', 'a/0', 'a/1']);
});

test('finding 15: a heavy one takes more of its requester’s places, and begins while there is any', () => {
  const turns = createTurns<string>(4);
  const heavy = { requester: 'a', signerName: 's', line: 'other', step: 'sign', weight: 3 } as const;
  const light = { ...heavy, weight: 1 };
  for (const name of ['h1', 'h2', 'h3']) turns.push(name, heavy);
  turns.push('l1', light);
  turns.push('other', { ...light, requester: 'b' });
  expect([turns.next(steps), turns.next(steps), turns.next(steps), turns.next(steps)]).toEqual([
    'h1',
    'other',
    'h2',
    undefined,
  ]);
  turns.over(heavy);
  expect([turns.next(steps), turns.next(steps)]).toEqual(['h3', undefined]);
  turns.over(heavy);
  turns.over(heavy);
  expect([turns.next(steps), turns.next(steps)]).toEqual(['l1', undefined]);
  turns.over(light);
  // As many places were given back as were taken.
  for (const name of ['a', 'b', 'c', 'd', 'e']) turns.push(name, light);
  expect(Array.from({ length: 5 }, () => turns.next(steps))).toEqual(['a', 'b', 'c', 'd', undefined]);
});

test('nodes of the cluster come first, and not only they', () => {
  const { push, take } = setUp();
  push(100, turn('token'));
  for (let i = 0; i < 100; i += 1) push(1, turn(`node-${i}`, 's', 'renewal'));
  const taken = take(100);
  const others = taken.filter((name) => name.startsWith('token'));
  expect(taken.slice(0, renewalsInARow).every((name) => name.startsWith('node'))).toBe(true);
  expect(others).toHaveLength(Math.floor(100 / (renewalsInARow + 1)));
  expect(take(1_000)).toHaveLength(100);
});

test('a node that floods starves neither other nodes nor those who join', () => {
  const { push, take } = setUp();
  push(1_000, turn('evil', 's', 'renewal'));
  push(20, turn('good', 's', 'renewal'));
  push(5, turn('token'));
  const taken = take(45);
  expect(taken.filter((name) => name.startsWith('good'))).toHaveLength(20);
  expect(taken.filter((name) => name.startsWith('token'))).toHaveLength(5);
});

test('what is taken back never comes, and its requester loses nothing', () => {
  const { turns, push, take } = setUp();
  const back = push(4, turn('a'));
  back[0]!();
  back[2]!();
  back[2]!(); // once is enough
  expect(turns.waiting(turn('a'))).toBe(2);
  expect(take(10)).toEqual(['a/1', 'a/3']);
  back[1]!(); // too late
  expect(turns.waiting(turn('a'))).toBe(0);
  expect(turns.longest()).toBe(0);
});

/** Against the plainest description of the rules there is: a list of everything, looked through for each turn. */
test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'everything comes out once, within the bounds, whatever happens (seed %i)',
  (seed) => {
    const random = mulberry32(seed);
    const atOnce = 1 + Math.floor(random() * 4);
    const { turns, push } = setUp(atOnce);
    const underWay: Turn[] = [];
    const waiting = new Map<string, number>();
    const key = ({ requester, line }: Turn) => `${line} ${requester}`;
    let pushed = 0;
    let out = 0;
    for (let step = 0; step < 3_000; step += 1) {
      const dice = random();
      if (dice < 0.45) {
        const line = random() < 0.4 ? 'renewal' : 'other';
        const of = turn(`r${Math.floor(random() * 6)}`, `s${Math.floor(random() * 3)}`, line);
        const [takeBack] = push(1, of);
        if (random() < 0.1) takeBack!();
        else {
          pushed += 1;
          waiting.set(key(of), (waiting.get(key(of)) ?? 0) + 1);
        }
      } else if (dice < 0.75) {
        const taken = turns.next(steps);
        const busy = (of: string) => underWay.filter((one) => key(one) === of).length;
        const able = [...waiting].filter(([of, count]) => count > 0 && busy(of) < atOnce);
        expect(taken === undefined).toBe(able.length === 0);
        if (taken === undefined) continue;
        out += 1;
        waiting.set(key(taken.turn), waiting.get(key(taken.turn))! - 1);
        underWay.push(taken.turn);
        expect(busy(key(taken.turn))).toBeLessThanOrEqual(atOnce);
      } else {
        const [over] = underWay.splice(Math.floor(random() * underWay.length), 1);
        if (over !== undefined) turns.over(over);
      }
    }
    for (const over of underWay) turns.over(over);
    for (let taken = turns.next(steps); taken !== undefined; taken = turns.next(steps)) {
      turns.over(taken.turn);
      out += 1;
    }
    expect(out).toBe(pushed);
  },
);

test('ten thousand of one requester cost no more each than a few', () => {
  const { push, take } = setUp();
  const back = push(50_000, turn('a'));
  for (let i = 0; i < 50_000; i += 2) back[i]!();
  expect(take(100_000)).toHaveLength(25_000);
});
