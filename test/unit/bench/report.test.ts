import { describe, expect, test } from 'vitest';
import type { BundlesResult } from '../../../bench/bundles.ts';
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
    machine: { cpu: 'x', processors: 2, memoryGibibytes: 4, system: 'Linux', node: 'v24' },
    contenders: (Object.entries(rates) as [ContenderName, number][]).map(([name, rate]) => ({
      backlog: mass(name, rate, 0),
      burst: mass(name, rate, othersShare),
    })),
    steps: [{ step: 'a step', perSecond: 10, cpuMicroseconds: 100_000 / (rates.countersign ?? 1) }],
  };
}

/** Of the sign function: an import of so many milliseconds beside one of 50. */
function bundles(imported: number, change: Partial<BundlesResult> = {}): Results {
  const bare = { kilobytes: 400, imported: 50, answered: 200 };
  const own = { kilobytes: 500, imported, answered: 250 };
  return {
    ...results({}),
    steps: [],
    bundles: {
      runtime: 'lambda',
      imports: 21,
      answers: 15,
      functions: [{ service: 'sign', libraries: 'two clients', own, bare }],
      nothing: { kilobytes: 1, imported: 0.5, answered: 49.5 },
      othersShare: 0,
      ...change,
    },
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

describe('the report on approval', () => {
  const one = {
    label: 'Countersign: relay approves + sign server',
    requests: 1_000,
    all: 4,
    perSecond: 250,
    p50: 2,
    p99: 3.9,
    cpuSeconds: [1, 2],
    othersShare: 0,
    throttled: false,
    sequence: { requests: 100, p50: 9, p99: 20 },
  };
  const approval = (others: number, throttled = false): Results => ({
    ...results({}),
    approval: [one, { ...one, label: 'kube-controller-manager', perSecond: 500, othersShare: others, throttled }],
  });

  test('has a row for each, and how many times as fast ours is', () => {
    const text = renderResults(approval(0));
    expect(text).toMatch(
      /^Countersign: relay approves \+ sign server +1000 +4\.00 +250 .* 1\.00 \+ 2\.00 .* 9\.0 +20\.0 +1\.00$/m,
    );
    expect(text).toMatch(/^kube-controller-manager .* 0\.50$/m);
  });

  test('was not quiet when others took part of the machine from one that would have used it', () => {
    expect(renderResults(approval(0.11))).toContain('NOT QUIET');
    expect(renderResults(approval(0.11, true))).not.toContain('NOT QUIET');
    expect(renderResults(approval(0.1))).not.toContain('NOT QUIET');
  });
});

describe('the report on kubelet-authenticator', () => {
  const measured = (passed: number, othersShare = 0): Results => ({
    ...results({}),
    steps: [],
    authenticator: {
      rounds: 41,
      bare: { label: 'node -e 0', kilobytes: 120_000, started: { passed: 40, cpu: 22 } },
      programs: [
        { label: 'one file', kilobytes: 268, started: { passed: 50, cpu: 30 }, cached: { passed, cpu: 37.5 } },
      ],
      othersShare,
    },
  });

  test('shows what comes on top of a Node that does nothing', () => {
    const text = renderResults(measured(60));
    expect(text).toMatch(/^node -e 0 +120000 +40\.0 +22\.0 *$/m);
    expect(text).toMatch(/^one file +268 +50\.0 +\+10\.0 +30\.0 +\+8\.0 +60\.0 +\+20\.0 +37\.5 +\+15\.5$/m);
    expect(renderResults(measured(60, 0.11))).toContain('NOT QUIET');
    expect(renderResults(measured(60, 0.1))).not.toContain('NOT QUIET');
  });

  test('compares with an earlier run that has it', () => {
    expect(renderComparison(measured(50), measured(100))).toMatch(/one file: cached, ms +100 +50\.00 +2\.00$/m);
    expect(renderComparison(measured(50), results({ countersign: 400 }))).not.toContain('one file');
  });
});

describe('the report on bundles', () => {
  test('sets size, import and first answer beside those of the bare libraries', () => {
    const text = renderResults(bundles(60));
    expect(text).toMatch(/^sign, beside two clients +500 +400 +1\.25 +60\.0 +50\.0 +1\.20 +250 +200 +1\.25$/m);
    expect(text).toMatch(/^a handler that does nothing +1 +0\.5 +49\.5 *$/m);
    expect(text).toContain("of 15, under Lambda's own runtime");
    // What was not measured is not there.
    expect(text).not.toMatch(/Burst|Steps|Kubernetes v/);
    expect(renderResults(results({ countersign: 400 }))).not.toContain('Bundles');
  });

  test('says when no Lambda runtime was there, and when others were at work', () => {
    expect(renderResults(bundles(60, { runtime: 'process' }))).toContain('without a Lambda runtime');
    expect(renderResults(bundles(60, { othersShare: 0.11 }))).toContain('NOT QUIET');
    expect(renderResults(bundles(60, { othersShare: 0.1 }))).not.toContain('NOT QUIET');
  });

  test('compares so that above 1 is better', () => {
    expect(renderComparison(bundles(50), bundles(100))).toMatch(/sign: import, ms +100 +50\.00 +2\.00$/m);
    // With a run that had none there is nothing to compare.
    expect(renderComparison(bundles(50), results({ countersign: 400 }))).not.toContain('import');
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

  test.each<readonly [readonly string[], readonly ContenderName[], boolean]>([
    [[], ['countersign', 'one-process', 'kcm-unthrottled', 'kcm-default'], true],
    [['--only', 'bundles'], [], true],
    [['--only', 'countersign'], ['countersign'], false],
    [['--only', 'bundles', '--only', 'countersign'], ['countersign'], true],
  ])('%j measures %j, and bundles: %s', (argv, contenders, bundles) => {
    expect(parseOptions(argv)).toMatchObject({ kind: 'run', options: { contenders, bundles } });
  });

  test('--only keeps the order of the report and drops repetitions', () => {
    const parsed = parseOptions(['--only', 'kcm-default', '--only', 'countersign', '--only', 'kcm-default']);
    expect(parsed).toMatchObject({ kind: 'run', options: { contenders: ['countersign', 'kcm-default'] } });
  });
});
