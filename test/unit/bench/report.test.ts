import { describe, expect, test } from 'vitest';
import { renderResults } from '../../../bench/report.ts';
import type { Results } from '../../../bench/results.ts';
import { percentile } from '../../../bench/statistics.ts';
import { approving, authenticator, bundles, contender, mass, memory, results } from './samples.ts';

/** The lines that begin with this label, in order. */
function lines(text: string, label: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(label));
}

describe('percentile', () => {
  test('is a value of the sample, by nearest rank, whatever the order', () => {
    const sample = Array.from({ length: 200 }, (_, index) => 200 - index);
    expect([0, 0.5, 0.99, 1].map((share) => percentile(sample, share))).toEqual([1, 100, 198, 200]);
  });
});

describe('the report', () => {
  const three = results([
    contender('countersign', 400),
    contender('kcm-unthrottled', 800),
    contender('kcm-default', 20),
  ]);

  test('sets each rate against both references', () => {
    const text = renderResults(three);
    expect(text).toMatch(/relay \+ sign server .* 20\.00 +0\.50$/m);
    expect(text).toMatch(/qps 2000 .* 40\.00 +1\.00$/m);
  });

  test('leaves out a ratio to what was not measured', () => {
    expect(renderResults(results([contender('countersign', 400)]))).toMatch(/relay \+ sign server .* – +–$/m);
  });

  test('has a table for each size of burst, and who was given fewer stands in the same one', () => {
    const large = mass(500, { requests: 5_000, all: 10 });
    const text = renderResults(
      results([
        contender('countersign', 400, { bursts: [mass(400), large] }),
        contender('kcm-default', 20, { bursts: [mass(25, { requests: 100, all: 4 })] }),
      ]),
    );
    expect(text).toContain('Burst: 1000 approved requests');
    expect(text).toContain('Burst: 5000 approved requests');
    expect(text).not.toContain('Burst: 100 approved');
    expect(text).toMatch(/^kube-controller-manager, default +100 +0\.10 +4\.00 +25 /m);
    expect(text).toMatch(/^Countersign: relay \+ sign server +5000 +0\.10 +10\.00 +500 .* – +–$/m);
    // In the table of all: both sizes, and how many the throttled one really had.
    expect(lines(text, 'Countersign: relay + sign server')[0]).toMatch(/server +2\.50 +10\.00 +16\.00 /);
    expect(lines(text, 'kube-controller-manager, default')[0]).toMatch(/default +100: 4\.00 +– +1\.00 /);
  });

  test('counts processor time for a thousand, of each kind of process, and what stands for AWS apart', () => {
    const processes = [
      { name: 'functions', processes: 4, cpuSeconds: 3, peakMegabytes: 400 },
      { name: 'relay', processes: 1, cpuSeconds: 1, peakMegabytes: 150 },
    ];
    const besides = [{ name: 'LocalStack', processes: 2, cpuSeconds: 7, peakMegabytes: 900 }];
    const bursts = [mass(50, { requests: 500, processes, besides })];
    const text = renderResults(results([contender('localstack', 50, { bursts })]));
    expect(text).toMatch(/3\.00 \+ 1\.00 +6\.00 \+ 2\.00 +400 \(4\) \+ 150 +1\.00 +LocalStack 7\.00 /);
    expect(text).toContain('measure an emulator');
    expect(renderResults(three)).not.toContain('measure an emulator');
  });

  test('shows a steady rate with how late the last was, and of a call of KMS what is left without it', () => {
    const steady = { perSecond: 50, requests: 1_000, p50: 15_000, p99: 28_500, lag: 28_520, othersShare: 0 };
    const sequence = { requests: 200, p50: 30.26, p99: 50, kms: 5.04, withoutKms: { p50: 25.11, p99: 44 } };
    const text = renderResults(results([contender('localstack', 50, { steady, sequence })]));
    expect(text).toMatch(/an emulator\) +1000 +50 +15000\.0 +28500\.0 +28\.52 +0 %$/m);
    expect(text).toMatch(/an emulator\) +200 +30\.3 +50\.0 +5\.0 +25\.1 +44\.0$/m);
    expect(lines(text, 'Countersign: relay + LocalStack')[0]).toMatch(/15000 \/ 28500 +30\.3 \(25\.1\) /);
  });

  test('says when others were at work, but for a contender that its own throttle holds back', () => {
    const disturbed = (share: number) => ({ bursts: [mass(20), mass(20, { othersShare: share })] });
    const of = (name: 'countersign' | 'kcm-default', share: number): string =>
      renderResults(results([contender(name, 20, disturbed(share))]));
    expect(of('countersign', 0.11)).toContain('NOT QUIET');
    expect(of('countersign', 0.1)).not.toContain('NOT QUIET');
    expect(of('kcm-default', 0.9)).not.toContain('NOT QUIET');
    const backlog = mass(20, { othersShare: 0.11 });
    expect(renderResults(results([contender('countersign', 20, { backlog })]))).toContain('NOT QUIET');
  });

  test('says what is missing and why, and shows the rest', () => {
    const { backlog: _, ...halfway } = contender('countersign', 400);
    const text = renderResults(
      results([halfway, { contender: 'one-process', bursts: [] }], {
        leftOut: [{ what: 'LocalStack', why: 'no Java' }],
        failed: [{ what: 'one process', why: 'ended (exit code 3)' }],
      }),
    );
    expect(text).toContain('Left out: LocalStack: no Java');
    expect(text).toContain('FAILED: one process: ended (exit code 3)');
    expect(lines(text, 'Countersign: all in one process')).toHaveLength(1); // in the table of all, with nothing in it
    expect(lines(text, 'Countersign: relay + sign server')).toHaveLength(2);
    expect(text).not.toContain('Backlog');
  });

  test('shows what the relay takes, when that was measured', () => {
    expect(renderResults(memory(140))).toMatch(/relay \| 50000 \| issued .* 140 /);
    expect(renderResults(three)).not.toContain('50000');
  });
});

describe('the report on approval', () => {
  const approval = (others: number, throttled = false): Results => {
    const burst = mass(500, { othersShare: others });
    return results([contender('countersign', 400), contender('kcm-unthrottled', 800)], {
      approval: [
        approving,
        {
          ...approving,
          approver: 'kcm-unthrottled',
          label: 'the reference, no proof',
          proved: false,
          throttled,
          burst,
        },
      ],
    });
  };

  test('has a row for each, and how many times as fast ours is', () => {
    const text = renderResults(approval(0));
    expect(text).toMatch(/^Countersign, with proof +1000 +0\.10 +4\.00 +250 .* fake AWS 0\.50 +0 % +1\.00$/m);
    expect(text).toMatch(/^the reference, no proof +1000 .* 0\.50$/m);
    expect(text).toMatch(/^Countersign, with proof +100 +9\.0 +20\.0 *$/m);
  });

  test('is in the table of all, where who asked for no proof is marked', () => {
    const text = renderResults(approval(0));
    expect(lines(text, 'Countersign: relay + sign server')[0]).toMatch(/ 4\.00 +– /);
    expect(lines(text, 'kube-controller-manager, qps 2000')[0]).toMatch(/ 2\.00 \* +– /);
  });

  test('was not quiet when others took part of the machine from one that would have used it', () => {
    expect(renderResults(approval(0.11))).toContain('NOT QUIET');
    expect(renderResults(approval(0.11, true))).not.toContain('NOT QUIET');
    expect(renderResults(approval(0.1))).not.toContain('NOT QUIET');
  });
});

describe('the report on kubelet-authenticator', () => {
  test('shows what comes on top of a Node that does nothing', () => {
    const text = renderResults(authenticator(60));
    expect(text).toMatch(/^node -e 0 +120000 +40\.0 +22\.0 *$/m);
    expect(text).toMatch(/^one file +268 +50\.0 +\+10\.0 +30\.0 +\+8\.0 +60\.0 +\+20\.0 +37\.5 +\+15\.5$/m);
    expect(renderResults(authenticator(60, 0.11))).toContain('NOT QUIET');
    expect(renderResults(authenticator(60, 0.1))).not.toContain('NOT QUIET');
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
    expect(renderResults(results([contender('countersign', 400)]))).not.toContain('Bundles');
  });

  test('says when no Lambda runtime was there, and when others were at work', () => {
    expect(renderResults(bundles(60, { runtime: 'process' }))).toContain('without a Lambda runtime');
    expect(renderResults(bundles(60, { othersShare: 0.11 }))).toContain('NOT QUIET');
    expect(renderResults(bundles(60, { othersShare: 0.1 }))).not.toContain('NOT QUIET');
  });
});
