/** The results of one run as text: all comparisons first, and then each phase and section by itself. */
import { comparisonsOf } from './comparisons.ts';
import { renderRelayMemory } from '../programs/relay-memory.ts';
import { comparisonParts } from './comparison-table.ts';
import { authenticatorParts, bundleParts } from './program-tables.ts';
import type { PhaseResult, PhaseRow, ProcessResult, Results, Turn } from '../results.ts';
import { median } from '../measure/statistics.ts';
import { table } from './table.ts';

export function renderResults(results: Results): string {
  const { machine, phases } = results;
  const { cpu, processors, memoryGibibytes, system, node, kubernetes } = machine;
  const others = othersText(results);
  const parts = [
    `${results.date}  commit ${results.commit}`,
    `${processors} × ${cpu}, ${memoryGibibytes} GiB, ${system}; Node ${node}${kubernetes === undefined ? '' : `, Kubernetes ${kubernetes}`}`,
    ...(others === '' ? [] : [others]),
    ...results.leftOut.map(({ what, why }) => `Left out: ${what}: ${why}`),
    ...results.failed.map(({ what, why }) => `FAILED: ${what}: ${why}`),
    ...comparisonParts(phases.flatMap(comparisonsOf)),
    ...phases.flatMap(phaseParts),
    ...(phases.some(({ rows }) => rows.some(({ contender }) => contender === 'localstack')) ? ['', emulatorNote] : []),
    ...(results.memory === undefined
      ? []
      : [
          '',
          'Relay, by the requests that the cluster has when it starts',
          renderRelayMemory(results.memory).trimEnd(),
        ]),
    ...(results.steps.length === 0 ? [] : stepParts(results)),
    ...(results.bundles === undefined ? [] : bundleParts(results.bundles)),
    ...(results.authenticator === undefined ? [] : authenticatorParts(results.authenticator)),
  ];
  return `${parts.join('\n')}\n`;
}

const emulatorNote =
  'LocalStack emulates Lambda, KMS and DynamoDB on the same processors: those rows measure an emulator and the functions in it, not AWS.';

/** Above this share the machine counts as busy. */
const quietShare = 0.1;

/** Which share of the processors went to other work, and what that means for the numbers; empty if nothing was timed. */
export function othersText({ phases, bundles, authenticator }: Results): string {
  const turns = phases.flatMap(({ rows }) => rows.flatMap((row) => row.turns));
  const shares = [
    ...turns.map(({ othersShare }) => othersShare),
    ...[bundles, authenticator].flatMap((each) => (each === undefined ? [] : [each.othersShare])),
  ];
  if (shares.length === 0) return '';
  const typical = median(shares);
  const share = `Other work took ${percent(typical)} of the processors (median), at most ${percent(Math.max(...shares))}`;
  return typical <= quietShare ? `${share}.` : `${share}: BUSY. Quote the ratios with their intervals, not the times.`;
}

/** Medians of all turns; CPU time and work of others are means. */
function phaseParts({ description, rows }: PhaseResult): string[] {
  if (rows.length === 0) return [];
  const withKms = rows.some(({ turns }) => turns.some(({ kms }) => kms !== undefined));
  const withBesides = rows.some(({ turns }) => turns.some(({ besides }) => besides.length > 0));
  return [
    '',
    description,
    table(
      [
        '',
        'turns',
        'first ms',
        'p50 ms',
        'p99 ms',
        'all s',
        'per s',
        'CPU s / 1000',
        'peak MB',
        'API server CPU s / 1000',
        ...(withBesides ? ['AWS’s CPU s / 1000'] : []),
        ...(withKms ? ['KMS p50 ms', 'without KMS p50 ms'] : []),
        'others',
      ],
      rows.map((row) => [
        ...phaseCells(row),
        ...(withBesides ? [cpuOf(row.turns, ({ besides }) => besides)] : []),
        ...(withKms ? kmsCells(row) : []),
        percent(mean(row.turns.map(({ othersShare }) => othersShare))),
      ]),
    ),
  ];
}

function phaseCells({ label, turns }: PhaseRow): string[] {
  const of = (what: (turn: Turn) => number): number => median(turns.map(what));
  const requests = sum(turns.map((turn) => turn.requests));
  return [
    label,
    String(turns.length),
    duration(of(({ first }) => first)),
    duration(of(({ p50 }) => p50)),
    duration(of(({ p99 }) => p99)),
    (of(({ all }) => all) / 1_000).toFixed(2),
    of((turn) => (turn.requests * 1_000) / turn.all).toFixed(0),
    cpuOf(turns, ({ processes }) => processes),
    peaksOf(turns),
    ((sum(turns.map(({ apiServerSeconds }) => apiServerSeconds)) * 1_000) / requests).toFixed(2),
  ];
}

function kmsCells({ turns }: PhaseRow): string[] {
  return (['kms', 'withoutKms'] as const).map((what) => {
    const values = turns.flatMap((turn) => turn[what] ?? []);
    return values.length === 0 ? '–' : median(values).toFixed(1);
  });
}

/** Seconds for 1 000 requests, by kind of process: a turn is too short for the kernel's hundredths of a second. */
function cpuOf(turns: readonly Turn[], processesOf: (turn: Turn) => readonly ProcessResult[]): string {
  const requests = sum(turns.map((turn) => turn.requests));
  return kindsOf(turns, processesOf)
    .map((kind) => ((sum(kind.map(({ cpuSeconds }) => cpuSeconds)) * 1_000) / requests).toFixed(2))
    .join(' + ');
}

/** The median of the peaks, by kind of process; in brackets how many processes of that kind there are. */
function peaksOf(turns: readonly Turn[]): string {
  return kindsOf(turns, ({ processes }) => processes)
    .map((kind) => {
      const count = Math.max(...kind.map(({ processes }) => processes));
      const peak = median(kind.map(({ peakMegabytes }) => peakMegabytes)).toFixed(0);
      return count <= 1 ? peak : `${peak} (${count})`;
    })
    .join(' + ');
}

function kindsOf(
  turns: readonly Turn[],
  processesOf: (turn: Turn) => readonly ProcessResult[],
): readonly (readonly ProcessResult[])[] {
  const all = turns.flatMap(processesOf);
  const names = [...new Set(all.map(({ name }) => name))];
  return names.map((name) => all.filter((process) => process.name === name));
}

function stepParts({ steps }: Results): string[] {
  return [
    '',
    'Steps by themselves: one thread, one after the other, best of five rounds',
    table(
      ['step', 'CPU µs', 'per second'],
      steps.map(({ step, cpuMicroseconds, perSecond }) => [step, cpuMicroseconds.toFixed(0), perSecond.toFixed(0)]),
    ),
  ];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function duration(milliseconds: number): string {
  return milliseconds.toFixed(milliseconds >= 100 ? 0 : 1);
}
