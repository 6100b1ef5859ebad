/** Each number of this run beside an earlier one's. */
import { labelOf } from './results.ts';
import type { ContenderResults, MassResult, Results } from './results.ts';
import { number, ratio, table } from './table.ts';

type Row = readonly string[];
/** What one of the two runs has and the other has not, in words. */
type Compared = { readonly rows: readonly Row[]; readonly skipped: readonly string[] };

/** A ratio above 1 is better than then. What only one of the runs has is not compared, and that is said. */
export function renderComparison(now: Results, then: Results): string {
  const sections = [
    ...now.contenders.map((each) => contenderRows(each, then)),
    approvalRows(now, then),
    memoryRows(now, then),
    stepRows(now, then),
    bundleRows(now, then),
    authenticatorRows(now, then),
  ];
  const skipped = sections.flatMap((section) => section.skipped);
  return [
    `Compared with ${then.date} (commit ${then.commit}); above 1 is better now`,
    table(
      ['', 'then', 'now', 'ratio'],
      sections.flatMap(({ rows }) => rows),
    ),
    ...(skipped.length === 0 ? [] : [`Not compared, since the earlier run has none: ${skipped.join('; ')}`]),
    '',
  ].join('\n');
}

function contenderRows({ contender, backlog, bursts, steady, sequence }: ContenderResults, then: Results): Compared {
  const label = labelOf(contender);
  const before = then.contenders.find((result) => result.contender === contender);
  if (before === undefined) return { rows: [], skipped: [label] };
  const rows: Row[] = [];
  const skipped: string[] = [];
  for (const burst of bursts) {
    // A burst of another size is another question.
    const earlier = before.bursts.find(({ requests }) => requests === burst.requests);
    const what = `${label}: burst of ${burst.requests}`;
    if (earlier === undefined) skipped.push(what);
    else rows.push(...massRows(what, burst, earlier));
  }
  if (backlog !== undefined) {
    if (before.backlog?.requests !== backlog.requests) skipped.push(`${label}: backlog of ${backlog.requests}`);
    else rows.push(...massRows(`${label}: backlog of ${backlog.requests}`, backlog, before.backlog));
  }
  if (steady !== undefined) {
    const { steady: earlier } = before;
    if (earlier?.requests !== steady.requests || earlier.perSecond !== steady.perSecond)
      skipped.push(`${label}: steady`);
    else
      rows.push(
        compared(`${label}: steady, p50 ms`, steady.p50, earlier.p50, 'less'),
        compared(`${label}: steady, p99 ms`, steady.p99, earlier.p99, 'less'),
      );
  }
  if (sequence !== undefined) {
    if (before.sequence === undefined) skipped.push(`${label}: one by one`);
    else {
      rows.push(compared(`${label}: one by one, p50 ms`, sequence.p50, before.sequence.p50, 'less'));
      const [rest, earlier] = [sequence.withoutKms?.p50, before.sequence.withoutKms?.p50];
      if (rest !== undefined && earlier !== undefined)
        rows.push(compared(`${label}: one by one without KMS, p50 ms`, rest, earlier, 'less'));
    }
  }
  return { rows, skipped };
}

function approvalRows(now: Results, then: Results): Compared {
  const rows: Row[] = [];
  const skipped: string[] = [];
  for (const { approver, label, burst, sequence } of now.approval ?? []) {
    const before = then.approval?.find((result) => result.approver === approver);
    const what = `approval, ${label}`;
    if (before === undefined) skipped.push(what);
    else {
      if (before.burst.requests === burst.requests) rows.push(...massRows(what, burst, before.burst));
      else skipped.push(`${what}: burst of ${burst.requests}`);
      rows.push(compared(`${what}: one by one, p50 ms`, sequence.p50, before.sequence.p50, 'less'));
    }
  }
  return { rows, skipped };
}

function massRows(what: string, now: MassResult, then: MassResult): Row[] {
  const cpuEach = ({ processes, requests }: MassResult): number =>
    (processes.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) * 1_000) / requests;
  const peak = ({ processes }: MassResult): number =>
    processes.reduce((sum, { peakMegabytes }) => sum + peakMegabytes, 0);
  return [
    compared(`${what}, per s`, now.perSecond, then.perSecond, 'more'),
    compared(`${what}, CPU ms each`, cpuEach(now), cpuEach(then), 'less'),
    compared(`${what}, peak MB`, peak(now), peak(then), 'less'),
  ];
}

function memoryRows(now: Results, then: Results): Compared {
  const rows: Row[] = [];
  const skipped: string[] = [];
  for (const row of now.memory?.rows ?? []) {
    const what = `${row.program}, ${row.present} ${row.state}`;
    const before = then.memory?.rows.find(
      ({ program, present, state }) => program === row.program && present === row.present && state === row.state,
    );
    if (before === undefined) skipped.push(what);
    else
      rows.push(
        compared(`${what}: listed after, s`, row.started, before.started, 'less'),
        compared(`${what}: CPU s`, row.cpuSeconds, before.cpuSeconds, 'less'),
        compared(`${what}: peak MB`, row.peakMegabytes, before.peakMegabytes, 'less'),
      );
  }
  return { rows, skipped };
}

function stepRows({ steps }: Results, then: Results): Compared {
  const rows: Row[] = [];
  const skipped: string[] = [];
  for (const { step, cpuMicroseconds } of steps) {
    const before = then.steps.find((result) => result.step === step);
    if (before === undefined) skipped.push(step);
    else rows.push(compared(`${step}, CPU µs`, cpuMicroseconds, before.cpuMicroseconds, 'less'));
  }
  return { rows, skipped };
}

function bundleRows({ bundles }: Results, then: Results): Compared {
  const rows: Row[] = [];
  const skipped: string[] = [];
  for (const { service, own } of bundles?.functions ?? []) {
    const before = then.bundles?.functions.find((result) => result.service === service)?.own;
    if (before === undefined) skipped.push(`bundle of ${service}`);
    else
      rows.push(
        compared(`${service}: KB`, own.kilobytes, before.kilobytes, 'less'),
        compared(`${service}: import, ms`, own.imported, before.imported, 'less'),
        compared(`${service}: first answer, ms`, own.answered, before.answered, 'less'),
      );
  }
  return { rows, skipped };
}

function authenticatorRows({ authenticator }: Results, then: Results): Compared {
  const rows: Row[] = [];
  const skipped: string[] = [];
  for (const { label, kilobytes, cached } of authenticator?.programs ?? []) {
    const before = then.authenticator?.programs.find((result) => result.label === label);
    const what = `kubelet-authenticator, ${label}`;
    if (before?.cached === undefined || cached === undefined) skipped.push(what);
    else
      rows.push(
        compared(`${what}: KB`, kilobytes, before.kilobytes, 'less'),
        compared(`${what}: cached, ms`, cached.passed, before.cached.passed, 'less'),
      );
  }
  return { rows, skipped };
}

function compared(what: string, now: number, then: number, better: 'more' | 'less'): Row {
  return [what, number(then), number(now), ratio(better === 'more' ? now : then, better === 'more' ? then : now)];
}
