/** The results of one run: as tables for people, as JSON for the next run to compare with. */
import type { ApprovingResult } from './approving.ts';
import type { AuthenticatorResult, Taken } from './authenticator.ts';
import type { BundleMeasure, BundlesResult } from './bundles.ts';
import { contenders } from './contenders.ts';
import type { ContenderName } from './contenders.ts';
import { quietShare } from './process-usage.ts';
import { wasQuiet } from './scenarios.ts';
import type { ContenderResults, MassResult } from './scenarios.ts';
import type { StepResult } from './steps.ts';

export interface Results {
  readonly schema: 1;
  readonly date: string;
  readonly commit: string;
  readonly machine: Machine;
  readonly contenders: readonly ContenderResults[];
  readonly steps: readonly StepResult[];
  readonly bundles?: BundlesResult;
  readonly authenticator?: AuthenticatorResult;
  readonly approval?: readonly ApprovingResult[];
}

export interface Machine {
  readonly cpu: string;
  readonly processors: number;
  readonly memoryGibibytes: number;
  readonly system: string;
  readonly node: string;
  /** Left out when none was needed. */
  readonly kubernetes?: string;
}

type Mass = 'backlog' | 'burst';

export function renderResults(results: Results): string {
  const { machine } = results;
  const { cpu, processors, memoryGibibytes, system, node, kubernetes } = machine;
  const parts = [
    `${results.date}  commit ${results.commit}`,
    `${processors} × ${cpu}, ${memoryGibibytes} GiB, ${system}; Node ${node}${kubernetes === undefined ? '' : `, Kubernetes ${kubernetes}`}`,
    ...(isQuiet(results)
      ? []
      : ['NOT QUIET: others were at work on this machine meanwhile; do not quote these numbers']),
    ...(results.contenders.length === 0 ? [] : contenderParts(results)),
    ...(results.approval === undefined ? [] : approvalParts(results.approval)),
    ...(results.bundles === undefined ? [] : bundleParts(results.bundles)),
    ...(results.authenticator === undefined ? [] : authenticatorParts(results.authenticator)),
  ];
  return `${parts.join('\n')}\n`;
}

function contenderParts(results: Results): string[] {
  return [
    '',
    'Burst: approved requests come up at once before a warm signer. t0 = their release',
    massTable(results, 'burst'),
    '',
    'Backlog: approved requests wait, the signer is started. t0 = start of its first process',
    massTable(results, 'backlog'),
    '',
    'Sequence: one request after the other; from sending the approval until the certificate is seen',
    sequenceTable(results),
    '',
    'Steps by themselves: one thread, one after the other, best of five rounds',
    table(
      ['step', 'CPU µs', 'per second'],
      results.steps.map(({ step, cpuMicroseconds, perSecond }) => [
        step,
        cpuMicroseconds.toFixed(0),
        perSecond.toFixed(0),
      ]),
    ),
  ];
}

function approvalParts(results: readonly ApprovingResult[]): string[] {
  const [own] = results;
  return [
    '',
    'Approval: pending requests of one bootstrap token wait, approver and signer are started. t0 = start of the first process.',
    'One after the other: from sending the request until the certificate is seen, approver and signer warm',
    table(
      ['', 'requests', 'all s', 'per s', 'p50 s', 'p99 s', 'CPU s', 'others', '1 by 1: p50 ms', 'p99 ms', 'ours ×'],
      results.map(({ label, requests, all, perSecond, p50, p99, cpuSeconds, othersShare, sequence }) => [
        label,
        String(requests),
        all.toFixed(2),
        perSecond.toFixed(0),
        p50.toFixed(2),
        p99.toFixed(2),
        cpuSeconds.map((seconds) => seconds.toFixed(2)).join(' + '),
        `${(othersShare * 100).toFixed(0)} %`,
        sequence.p50.toFixed(1),
        sequence.p99.toFixed(1),
        own === undefined ? '' : ratio(own.perSecond, perSecond),
      ]),
    ),
  ];
}

/** Each function beside the bare libraries it needs; a ratio above 1 is what our own code costs. */
function bundleParts({ functions, nothing, runtime, imports, answers }: BundlesResult): string[] {
  const rows = functions.map(({ service, libraries, own, bare }) => [
    `${service}, beside ${libraries}`,
    ...(['kilobytes', 'imported', 'answered'] as const).flatMap((what) => [
      ...[own, bare].map((measure) => amount(measure, what)),
      ratio(own[what], bare[what]),
    ]),
  ]);
  const floor = (['kilobytes', 'imported', 'answered'] as const).flatMap((what) => [amount(nothing, what), '', '']);
  const from = runtime === 'lambda' ? "under Lambda's own runtime" : 'in a plain process, without a Lambda runtime';
  return [
    '',
    `Bundles: each new process; import is the median of ${imports}, first answer of ${answers}, ${from}`,
    table(
      ['', 'KB', 'bare', '×', 'import ms', 'bare', '×', 'first answer ms', 'bare', '×'],
      [...rows, ['a handler that does nothing', ...floor]],
    ),
  ];
}

function amount(measure: BundleMeasure, what: keyof BundleMeasure): string {
  return measure[what].toFixed(what === 'kilobytes' || measure[what] >= 100 ? 0 : 1);
}

/** What the kubelet waits for, and how much of it is not the start of Node itself. */
function authenticatorParts({ rounds, bare, programs }: AuthenticatorResult): string[] {
  const cells = (taken: Taken | undefined): string[] =>
    taken === undefined
      ? ['', '', '', '']
      : (['passed', 'cpu'] as const).flatMap((what) => [
          taken[what].toFixed(1),
          taken === bare.started ? '' : `+${(taken[what] - bare.started[what]).toFixed(1)}`,
        ]);
  return [
    '',
    `kubelet-authenticator: each time a new process until it has ended, beside a bare Node's; medians and mean CPU of ${rounds}`,
    table(
      ['', 'KB', '--version ms', 'more', 'CPU ms', 'more', 'cached exec ms', 'more', 'CPU ms', 'more'],
      [bare, ...programs].map(({ label, kilobytes, started, cached }) => [
        label,
        kilobytes.toFixed(0),
        ...cells(started),
        ...cells(cached),
      ]),
    ),
  ];
}

export function isQuiet({ contenders: measured, bundles, authenticator, approval = [] }: Results): boolean {
  if (authenticator !== undefined && authenticator.othersShare > quietShare) return false;
  if (approval.some(({ othersShare, throttled }) => !throttled && othersShare > quietShare)) return false;
  if (bundles !== undefined && bundles.othersShare > quietShare) return false;
  return measured.every((results) => {
    const contender = contenders.find(({ name }) => name === results.burst.contender);
    return contender === undefined || wasQuiet(results, contender);
  });
}

function massTable({ contenders: measured }: Results, mass: Mass): string {
  const rate = (name: ContenderName): number | undefined =>
    measured.find((result) => result[mass].contender === name)?.[mass].perSecond;
  const row = (result: MassResult): string[] => [
    labelOf(result.contender),
    String(result.requests),
    result.first.toFixed(2),
    result.all.toFixed(2),
    result.perSecond.toFixed(0),
    result.p50.toFixed(2),
    result.p99.toFixed(2),
    result.processes.map(({ cpuSeconds }) => cpuSeconds.toFixed(2)).join(' + '),
    result.processes.map(({ peakMegabytes }) => peakMegabytes.toFixed(0)).join(' + '),
    result.apiServerSeconds.toFixed(2),
    `${(result.othersShare * 100).toFixed(0)} %`,
    ratio(result.perSecond, rate('kcm-default')),
    ratio(result.perSecond, rate('kcm-unthrottled')),
  ];
  const heads = [
    '',
    'requests',
    'first s',
    'all s',
    'per s',
    'p50 s',
    'p99 s',
    'CPU s',
    'peak MB',
    'API server CPU s',
    'others',
  ];
  return table(
    [...heads, '× default', '× unthrottled'],
    measured.map((result) => row(result[mass])),
  );
}

function sequenceTable({ contenders: measured }: Results): string {
  const rows = measured.flatMap(({ sequence }) =>
    sequence === undefined
      ? []
      : [[labelOf(sequence.contender), String(sequence.requests), sequence.p50.toFixed(1), sequence.p99.toFixed(1)]],
  );
  return table(['', 'requests', 'p50 ms', 'p99 ms'], rows);
}

/** Each number of this run beside the other's. A ratio above 1 is better than then. */
export function renderComparison(now: Results, then: Results): string {
  const rows: string[][] = [];
  for (const { backlog, burst, sequence } of now.contenders) {
    const before = then.contenders.find((result) => result.burst.contender === burst.contender);
    if (before === undefined) continue;
    const label = labelOf(burst.contender);
    for (const [mass, result] of Object.entries({ burst, backlog }) as [Mass, MassResult][]) {
      const earlier = before[mass];
      rows.push(compared(`${label}: ${mass}, per s`, result.perSecond, earlier.perSecond, 'more'));
      const each = ({ processes, requests }: MassResult): number =>
        (processes.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) * 1_000) / requests;
      rows.push(compared(`${label}: ${mass}, CPU ms each`, each(result), each(earlier), 'less'));
    }
    if (sequence !== undefined && before.sequence !== undefined)
      rows.push(compared(`${label}: sequence, p50 ms`, sequence.p50, before.sequence.p50, 'less'));
  }
  for (const { step, cpuMicroseconds } of now.steps) {
    const before = then.steps.find((result) => result.step === step);
    if (before !== undefined) rows.push(compared(`${step}, CPU µs`, cpuMicroseconds, before.cpuMicroseconds, 'less'));
  }
  for (const { service, own } of now.bundles?.functions ?? []) {
    const before = then.bundles?.functions.find((result) => result.service === service)?.own;
    if (before === undefined) continue;
    rows.push(compared(`${service}: KB`, own.kilobytes, before.kilobytes, 'less'));
    rows.push(compared(`${service}: import, ms`, own.imported, before.imported, 'less'));
    rows.push(compared(`${service}: first answer, ms`, own.answered, before.answered, 'less'));
  }
  for (const { label, kilobytes, cached } of now.authenticator?.programs ?? []) {
    const before = then.authenticator?.programs.find((result) => result.label === label);
    if (before?.cached === undefined || cached === undefined) continue;
    rows.push(compared(`kubelet-authenticator, ${label}: KB`, kilobytes, before.kilobytes, 'less'));
    rows.push(compared(`kubelet-authenticator, ${label}: cached, ms`, cached.passed, before.cached.passed, 'less'));
  }
  const head = `Compared with ${then.date} (commit ${then.commit}); above 1 is better now`;
  return `${head}\n${table(['', 'then', 'now', 'ratio'], rows)}\n`;
}

function compared(what: string, now: number, then: number, better: 'more' | 'less'): string[] {
  return [what, number(then), number(now), ratio(better === 'more' ? now : then, better === 'more' ? then : now)];
}

function labelOf(name: ContenderName): string {
  return contenders.find((contender) => contender.name === name)?.label ?? name;
}

function ratio(value: number, base: number | undefined): string {
  return base === undefined ? '–' : (value / base).toFixed(2);
}

function number(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}

/** First column to the left, numbers to the right. */
function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [heads, ...rows];
  const widths = heads.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  '),
    )
    .join('\n');
}
