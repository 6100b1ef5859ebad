import { expect, test } from 'vitest';
import { renderComparison } from '../../../bench/comparison.ts';
import { upgraded } from '../../../bench/results.ts';
import type { Results } from '../../../bench/results.ts';
import { approving, authenticator, bundles, contender, mass, memory, results } from './samples.ts';

const steady = (p50: number) => ({ perSecond: 50, requests: 1_000, p50, p99: 2 * p50, lag: 1, othersShare: 0 });
const sequence = (rest: number) => ({
  requests: 200,
  p50: rest + 5,
  p99: 40,
  kms: 5,
  withoutKms: { p50: rest, p99: 30 },
});
const step = (cpuMicroseconds: number): Results => {
  const steps = [{ step: 'a step', perSecond: 10, cpuMicroseconds }];
  return results([], { steps });
};

test('above 1 is better, of rates and of costs', () => {
  const text = renderComparison(results([contender('countersign', 400)]), results([contender('countersign', 200)]));
  expect(text).toMatch(/burst of 1000, per s +200 +400 +2\.00$/m);
  expect(text).toMatch(/burst of 1000, CPU ms each +5\.00 +2\.50 +2\.00$/m);
  expect(text).toMatch(/backlog of 1000, per s +200 +400 +2\.00$/m);
  expect(text).not.toContain('Not compared');
});

test.each<readonly [string, Results, Results, RegExp]>([
  [
    'a steady rate',
    results([contender('countersign', 1, { steady: steady(10) })]),
    results([contender('countersign', 1, { steady: steady(30) })]),
    /steady, p99 ms +60\.00 +20\.00 +3\.00$/m,
  ],
  [
    'one by one, without the calls of KMS',
    results([contender('localstack', 1, { sequence: sequence(10) })]),
    results([contender('localstack', 1, { sequence: sequence(20) })]),
    /one by one without KMS, p50 ms +20\.00 +10\.00 +2\.00$/m,
  ],
  [
    'approval',
    results([], { approval: [approving] }),
    results([], { approval: [{ ...approving, burst: mass(125) }] }),
    /approval, Countersign, with proof, per s +125 +250 +2\.00$/m,
  ],
  ['the relay’s memory', memory(100), memory(200), /relay, 50000 issued: peak MB +200 +100 +2\.00$/m],
  ['a step', step(250), step(500), /a step, CPU µs +500 +250 +2\.00$/m],
  ['a bundle', bundles(50), bundles(100), /sign: import, ms +100 +50\.00 +2\.00$/m],
  ['kubelet-authenticator', authenticator(50), authenticator(100), /one file: cached, ms +100 +50\.00 +2\.00$/m],
])('%s is compared, and said to be missing from an earlier run that has none', (_, now, then, row) => {
  expect(renderComparison(now, then)).toMatch(row);
  const alone = renderComparison(now, results());
  expect(alone).not.toMatch(/\d$/m);
  expect(alone).toContain('Not compared, since the earlier run has none: ');
});

test('a burst of another size is another question', () => {
  const now = results([contender('countersign', 400, { bursts: [mass(400), mass(500, { requests: 5_000 })] })]);
  const text = renderComparison(now, results([contender('countersign', 200)]));
  expect(text).toMatch(/burst of 1000, per s +200 +400/);
  expect(text).not.toMatch(/burst of 5000, per s/);
  expect(text).toMatch(/Not compared.*burst of 5000/);
});

test('another load is another question, too', () => {
  const now = results([contender('countersign', 1, { steady: steady(10) })]);
  const then = results([contender('countersign', 1, { steady: { ...steady(10), perSecond: 20 } })]);
  expect(renderComparison(now, then)).toMatch(/Not compared.*steady/);
  expect(renderComparison(memory(1, 10_000), memory(1, 50_000))).toMatch(/Not compared.*10000 issued/);
});

/** As commit 04a3561 wrote it. */
const { processes, besides: _, ...before } = mass(200);
const old = { ...before, contender: 'countersign', processes: processes.map(({ processes: __, ...rest }) => rest) };
const schemaOne = {
  schema: 1,
  date: '2026-01-01T00:00:00Z',
  commit: 'old',
  machine: results().machine,
  contenders: [
    { backlog: old, burst: old, sequence: { contender: 'countersign', requests: 200, p50: 10, p99: 20 } },
    { backlog: { ...old, contender: 'kcm-default' }, burst: { ...old, contender: 'kcm-default' } },
  ],
  steps: [{ step: 'a step', perSecond: 10, cpuMicroseconds: 500 }],
  approval: [{ label: 'measured otherwise', perSecond: 1 }],
};

test('a run of the schema before is compared as far as it goes', () => {
  const then = upgraded(schemaOne)!;
  expect(then.contenders.map(({ contender: name }) => name)).toEqual(['countersign', 'kcm-default']);
  const now = results([contender('countersign', 400, { sequence: sequence(3), steady: steady(9) })], {
    steps: [{ step: 'a step', perSecond: 10, cpuMicroseconds: 250 }],
    approval: [approving],
  });
  const text = renderComparison(now, then);
  expect(text).toMatch(/burst of 1000, CPU ms each +5\.00 +2\.50 +2\.00$/m);
  expect(text).toMatch(/one by one, p50 ms +10\.00 +8\.00 +1\.25$/m);
  expect(text).toMatch(/a step, CPU µs +500 +250 +2\.00$/m);
  expect(text).toMatch(/Not compared.*steady.*approval/);
});

test.each([{}, { schema: 3 }, { schema: '2' }])('%j is no run of this benchmark', (read) => {
  expect(upgraded(read)).toBeUndefined();
});
