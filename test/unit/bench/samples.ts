/** Results as a run might have found them. */
import type { ApprovingResult } from '../../../bench/approving.ts';
import type { BundlesResult } from '../../../bench/bundles.ts';
import type { ContenderName } from '../../../bench/contenders.ts';
import type { ContenderResults, MassResult, Results } from '../../../bench/results.ts';

/** 1 000 s of processor time in all for so many a second: the slower, the dearer. */
export function mass(perSecond: number, change: Partial<MassResult> = {}): MassResult {
  return {
    requests: 1_000,
    first: 0.1,
    all: 1_000 / perSecond,
    perSecond,
    p50: 1,
    p99: 2,
    processes: [{ name: 'only', processes: 1, cpuSeconds: 1_000 / perSecond, peakMegabytes: 100 }],
    besides: [],
    apiServerSeconds: 1,
    othersShare: 0,
    ...change,
  };
}

export function contender(
  name: ContenderName,
  perSecond: number,
  change: Partial<ContenderResults> = {},
): ContenderResults {
  return { contender: name, backlog: mass(perSecond), bursts: [mass(perSecond)], ...change };
}

export function results(contenders: readonly ContenderResults[] = [], change: Partial<Results> = {}): Results {
  return {
    schema: 2,
    date: '2026-01-01T00:00:00Z',
    commit: 'abc',
    machine: { cpu: 'x', processors: 2, memoryGibibytes: 4, system: 'Linux', node: 'v24' },
    contenders,
    steps: [],
    leftOut: [],
    failed: [],
    ...change,
  };
}

export const approving: ApprovingResult = {
  approver: 'countersign',
  label: 'Countersign, with proof',
  proved: true,
  throttled: false,
  burst: mass(250, { besides: [{ name: 'fake AWS', processes: 1, cpuSeconds: 0.5, peakMegabytes: 80 }] }),
  sequence: { requests: 100, p50: 9, p99: 20 },
};

/** Of the sign function: an import of so many milliseconds beside one of 50. */
export function bundles(imported: number, change: Partial<BundlesResult> = {}): Results {
  const bare = { kilobytes: 400, imported: 50, answered: 200 };
  const own = { kilobytes: 500, imported, answered: 250 };
  return results([], {
    bundles: {
      runtime: 'lambda',
      imports: 21,
      answers: 15,
      functions: [{ service: 'sign', libraries: 'two clients', own, bare }],
      nothing: { kilobytes: 1, imported: 0.5, answered: 49.5 },
      othersShare: 0,
      ...change,
    },
  });
}

export function authenticator(passed: number, othersShare = 0): Results {
  return results([], {
    authenticator: {
      rounds: 41,
      bare: { label: 'node -e 0', kilobytes: 120_000, started: { passed: 40, cpu: 22 } },
      programs: [
        { label: 'one file', kilobytes: 268, started: { passed: 50, cpu: 30 }, cached: { passed, cpu: 37.5 } },
      ],
      othersShare,
    },
  });
}

export function memory(peakMegabytes: number, present = 50_000): Results {
  const row = { program: 'relay', present, state: 'issued', started: 2, cpuSeconds: 3, peakMegabytes };
  return results([], { memory: { rows: [{ ...row, settledMegabytes: 90 }] } });
}
