import { describe, expect, test } from 'vitest';
import { renderResults } from '../../../../bench/report/report.ts';
import { authenticator, bundles, phase, results, row, turn } from './samples.ts';

const seven = [100, 110, 90, 105, 95, 120, 100];

function scaled(factor: number): readonly number[] {
  return seven.map((each) => each * factor);
}

describe('the table of comparisons', () => {
  const text = renderResults(results([phase([row('countersign', scaled(1)), row('kcm', scaled(0.8))])]));

  test('has pairs, median, quartiles, interval and what they mean', () => {
    expect(text).toMatch(
      /^burst of 100: label of countersign +label of kcm +7 +0\.80 +0\.80–0\.80 +0\.80–0\.80 +slower$/m,
    );
    const other = renderResults(results([phase([row('kcm', scaled(0.05)), row('countersign', scaled(1))])]));
    expect(other).toMatch(/^burst of 100: label of kcm +label of countersign +7 +20\.0 +20\.0–20\.0 .* faster$/m);
  });

  test('says when no difference was measured, and when there are too few pairs', () => {
    const mixed = seven.map((each, index) => each * (index % 2 === 0 ? 0.9 : 1.3));
    expect(renderResults(results([phase([row('a', seven), row('b', mixed)])]))).toMatch(
      / 7 +0\.90 +.* no difference measured$/m,
    );
    const few = [row('a', [100, 100]), row('b', [50, 50])];
    expect(renderResults(results([phase(few)]))).toMatch(/ 2 +0\.50 +0\.50–0\.50 +– +too few pairs$/m);
  });

  test('is absent without a second contender, and has each pair of three', () => {
    expect(renderResults(results([phase([row('a', seven)])]))).not.toContain('In short');
    const three = renderResults(results([phase([row('a', seven), row('b', seven), row('c', seven)])]));
    expect(three.match(/no difference measured$/gm)).toHaveLength(3);
  });
});

describe('the table of a phase', () => {
  test('has medians of all turns, and CPU time for 1 000 requests', () => {
    const text = renderResults(results([phase([row('countersign', seven)])]));
    expect(text).toMatch(/^label of countersign +7 +10\.0 +50\.0 +100 +0\.10 +1000 +2\.00 +100 +1\.00 +0 %$/m);
  });

  test('adds kinds of processes, and names how many of one kind there were', () => {
    const processes = [
      { name: 'functions', processes: 4, cpuSeconds: 1, peakMegabytes: 400 },
      { name: 'relay', processes: 1, cpuSeconds: 0.5, peakMegabytes: 90 },
    ];
    const besides = [{ name: 'emulator', processes: 1, cpuSeconds: 3, peakMegabytes: 900 }];
    const local = row('localstack', [1_000, 1_000], { processes, besides, kms: 4, withoutKms: 46 });
    const text = renderResults(results([phase([local])]));
    expect(text).toMatch(/ 10\.00 \+ 5\.00 +400 \(4\) \+ 90 +1\.00 +30\.00 +4\.0 +46\.0 +0 %$/m);
    expect(text).toContain('measure an emulator');
    expect(renderResults(results([phase([row('countersign', [1_000])])]))).not.toMatch(/KMS|emulator/);
  });
});

describe('other work on the machine', () => {
  const disturbed = (...shares: readonly number[]) => {
    const turns = shares.map((othersShare, round) => turn(round, 100, { othersShare }));
    return renderResults(results([phase([{ contender: 'countersign', label: 'ours', turns }])]));
  };

  test('is reported, and when there is much of it only ratios may be quoted', () => {
    expect(disturbed(0, 0.1, 0.3)).toContain('Other work took 10 % of the processors (median), at most 30 %.');
    expect(disturbed(0, 0.2, 0.3)).toMatch(/took 20 % .*: BUSY\. Quote the ratios/);
    expect(renderResults(authenticator(0.11))).toContain('BUSY');
    expect(renderResults(bundles({ othersShare: 0.11 }))).toContain('BUSY');
    expect(renderResults(bundles({ othersShare: 0.1 }))).not.toContain('BUSY');
    expect(renderResults(results())).not.toContain('Other work');
  });
});

test('what was left out and what failed are in the report with their reasons', () => {
  const text = renderResults(
    results([], { leftOut: [{ what: 'LocalStack', why: 'no Java' }], failed: [{ what: 'memory', why: 'no disk' }] }),
  );
  expect(text).toContain('Left out: LocalStack: no Java');
  expect(text).toContain('FAILED: memory: no disk');
});

describe('the report on kubelet-authenticator', () => {
  test('has the median of what comes on top of a Node that does nothing, pair by pair', () => {
    const text = renderResults(authenticator());
    expect(text).toMatch(/^node -e 0 +120000 +40\.0 +22\.0 *$/m);
    expect(text).toMatch(
      /^one file +268 +50\.0 +\+10\.2 \(\+9\.8–\+10\.6\) +30\.0 +\+8\.0 +60\.0 +\+20\.4 +37\.5 +\+15\.5$/m,
    );
  });
});

describe('the report on bundles', () => {
  test('has size, import and first answer beside those of the bare libraries, and the ratios of pairs', () => {
    const text = renderResults(bundles());
    expect(text).toMatch(
      /^sign, beside two clients +500 +400 +1\.25 +60\.0 +50\.0 +1\.19 \(1\.15–1\.24\) +250 +200 +1\.25$/m,
    );
    expect(text).toMatch(/^a handler that does nothing +1 +0\.5 +49\.5 *$/m);
    // What was not measured is not there.
    expect(text).not.toMatch(/Burst|Steps|Kubernetes v/);
    expect(renderResults(results([phase([row('countersign', seven)])]))).not.toContain('Bundles');
  });

  test('names the runtime', () => {
    expect(renderResults(bundles())).toContain("under Lambda's own runtime");
    expect(renderResults(bundles({ runtime: 'process' }))).toContain('without a Lambda runtime');
  });
});
