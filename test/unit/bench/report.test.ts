import { describe, expect, test } from 'vitest';
import { parseOptions } from '../../../bench/options.ts';
import { renderComparison, renderResults } from '../../../bench/report.ts';
import type { Results } from '../../../bench/report.ts';
import type { ContenderName } from '../../../bench/contenders.ts';
import type { MassResult } from '../../../bench/scenarios.ts';
import { percentile } from '../../../bench/statistics.ts';

function mass(contender: ContenderName, perSecond: number, othersShare: number): MassResult {
  return {
    contender,
    requests: 1_000,
    first: 0.1,
    all: 1_000 / perSecond,
    perSecond,
    p50: 1,
    p99: 2,
    processes: [{ name: 'only', cpuSeconds: 1_000 / perSecond, peakMegabytes: 100 }],
    apiServerSeconds: 1,
    othersShare,
  };
}

function results(rates: Partial<Record<ContenderName, number>>, othersShare = 0): Results {
  return {
    schema: 1,
    date: '2026-01-01T00:00:00Z',
    commit: 'abc',
    machine: { cpu: 'x', processors: 2, memoryGibibytes: 4, system: 'Linux', node: 'v24', kubernetes: 'v1.36.3' },
    contenders: (Object.entries(rates) as [ContenderName, number][]).map(([name, rate]) => ({
      backlog: mass(name, rate, 0),
      burst: mass(name, rate, othersShare),
    })),
    steps: [{ step: 'a step', perSecond: 10, cpuMicroseconds: 100_000 / rates.countersign! }],
  };
}

describe('percentile', () => {
  test('is a value of the sample, by nearest rank, whatever the order', () => {
    const sample = Array.from({ length: 200 }, (_, index) => 200 - index);
    expect([0, 0.5, 0.99, 1].map((share) => percentile(sample, share))).toEqual([1, 100, 198, 200]);
  });
});

describe('the report', () => {
  test('sets each rate against both references', () => {
    const text = renderResults(results({ countersign: 400, 'kcm-unthrottled': 800, 'kcm-default': 20 }));
    expect(text).toMatch(/relay \+ sign server .* 20\.00 +0\.50$/m);
    expect(text).toMatch(/qps 2000 .* 40\.00 +1\.00$/m);
  });

  test('leaves out a ratio to what was not measured', () => {
    expect(renderResults(results({ countersign: 400 }))).toMatch(/relay \+ sign server .* – +–$/m);
  });

  test('says when others were at work, but for a contender that its own throttle holds back', () => {
    expect(renderResults(results({ countersign: 400 }, 0.11))).toContain('NOT QUIET');
    expect(renderResults(results({ countersign: 400 }, 0.1))).not.toContain('NOT QUIET');
    const throttled = { ...results({ 'kcm-default': 20 }, 0.9) };
    expect(renderResults(throttled)).not.toContain('NOT QUIET');
  });

  test('compares so that above 1 is better, of rates and of costs', () => {
    const text = renderComparison(results({ countersign: 400 }), results({ countersign: 200 }));
    expect(text).toMatch(/burst, per s +200 +400 +2\.00$/m);
    expect(text).toMatch(/burst, CPU ms each +5\.00 +2\.50 +2\.00$/m);
    expect(text).toMatch(/a step, CPU µs +500 +250 +2\.00$/m);
  });
});

describe('options', () => {
  test.each([
    [['--requests', '99'], '--requests 99'],
    [['--requests', 'many'], '--requests many'],
    [['--only', 'nobody'], '--only nobody'],
    [['--patience', '-1'], ''],
    [['--unknown'], '--unknown'],
  ])('%j are refused, naming what is wrong', (argv, named) => {
    const parsed = parseOptions(argv);
    expect(parsed.kind).toBe('wrong');
    expect(parsed.kind === 'wrong' && parsed.message).toContain(named);
  });

  test('--only keeps the order of the report and drops repetitions', () => {
    const parsed = parseOptions(['--only', 'kcm-default', '--only', 'countersign', '--only', 'kcm-default']);
    expect(parsed).toMatchObject({ kind: 'run', options: { contenders: ['countersign', 'kcm-default'] } });
  });
});
