/** Results as a run might have measured them. */
import type { BundlesResult } from '../../../../bench/programs/bundles.ts';
import type { PhaseResult, PhaseRow, Results, Turn } from '../../../../bench/results.ts';

/** A turn of 100 requests that lasts so many milliseconds. */
export function turn(round: number, all: number, change: Partial<Turn> = {}): Turn {
  return {
    round,
    requests: 100,
    first: all / 10,
    p50: all / 2,
    p99: all,
    all,
    processes: [{ name: 'signer', processes: 1, cpuSeconds: 0.2, peakMegabytes: 100 }],
    besides: [],
    apiServerSeconds: 0.1,
    othersShare: 0,
    ...change,
  };
}

/** One turn a round, which last so many milliseconds. */
export function row(contender: string, durations: readonly number[], change: Partial<Turn> = {}): PhaseRow {
  const turns = durations.map((all, round) => turn(round, all, change));
  return { contender, label: `label of ${contender}`, turns };
}

export function phase(rows: readonly PhaseRow[], change: Partial<PhaseResult> = {}): PhaseResult {
  return { name: 'burst of 100', description: 'Burst: 100 at once', compared: 'all', rows, ...change };
}

export function results(phases: readonly PhaseResult[] = [], change: Partial<Results> = {}): Results {
  return {
    schema: 3,
    date: '2026-01-01T00:00:00Z',
    commit: 'abc',
    machine: { cpu: 'x', processors: 2, memoryGibibytes: 4, system: 'Linux', node: 'v24' },
    phases,
    steps: [],
    leftOut: [],
    failed: [],
    ...change,
  };
}

/** Of the sign function. */
export function bundles(change: Partial<BundlesResult> = {}): Results {
  const bare = { kilobytes: 400, imported: 50, answered: 200 };
  const own = { kilobytes: 500, imported: 60, answered: 250 };
  const ratios = {
    imported: { pairs: 21, median: 1.19, quartiles: [1.1, 1.3], interval: [1.15, 1.24] },
    answered: { pairs: 5, median: 1.25, quartiles: [1.2, 1.3] },
  } as const;
  return results([], {
    bundles: {
      runtime: 'lambda',
      imports: 21,
      answers: 15,
      functions: [{ service: 'sign', libraries: 'two clients', own, bare, ratios }],
      nothing: { kilobytes: 1, imported: 0.5, answered: 49.5 },
      othersShare: 0,
      ...change,
    },
  });
}

export function authenticator(othersShare = 0): Results {
  const started = { passed: 50, cpu: 30, more: { median: 10.2, interval: [9.8, 10.6] } } as const;
  const cached = { passed: 60, cpu: 37.5, more: { median: 20.4 } };
  return results([], {
    authenticator: {
      rounds: 41,
      bare: { label: 'node -e 0', kilobytes: 120_000, started: { passed: 40, cpu: 22 } },
      programs: [{ label: 'one file', kilobytes: 268, started, cached }],
      othersShare,
    },
  });
}
