/** The results of one run as tables for people. One for all, and then each by itself. */
import type { ApprovingResult } from './approving.ts';
import type { ContenderName } from './contenders.ts';
import { quietShare } from './process-usage.ts';
import { renderRelayMemory } from './relay-memory.ts';
import { authenticatorParts, bundleParts } from './report-programs.ts';
import { isThrottled, labelOf } from './results.ts';
import type { ContenderResults, MassResult, ProcessResult, Results, SequenceResult } from './results.ts';
import { wasQuiet } from './scenarios.ts';
import { ratio, table } from './table.ts';

export function renderResults(results: Results): string {
  const { machine } = results;
  const { cpu, processors, memoryGibibytes, system, node, kubernetes } = machine;
  const parts = [
    `${results.date}  commit ${results.commit}`,
    `${processors} × ${cpu}, ${memoryGibibytes} GiB, ${system}; Node ${node}${kubernetes === undefined ? '' : `, Kubernetes ${kubernetes}`}`,
    ...(isQuiet(results)
      ? []
      : ['NOT QUIET: others were at work on this machine meanwhile; do not quote these numbers']),
    ...results.leftOut.map(({ what, why }) => `Left out: ${what}: ${why}`),
    ...results.failed.map(({ what, why }) => `FAILED: ${what}: ${why}`),
    ...(results.contenders.length === 0 ? [] : contenderParts(results)),
    ...(results.approval === undefined ? [] : approvalParts(results.approval)),
    ...(results.memory === undefined
      ? []
      : [
          '',
          'Relay, with so many requests in the cluster when it starts',
          renderRelayMemory(results.memory).trimEnd(),
        ]),
    ...(results.steps.length === 0 ? [] : stepParts(results)),
    ...(results.bundles === undefined ? [] : bundleParts(results.bundles)),
    ...(results.authenticator === undefined ? [] : authenticatorParts(results.authenticator)),
  ];
  return `${parts.join('\n')}\n`;
}

export function isQuiet({ contenders: measured, bundles, authenticator, approval = [] }: Results): boolean {
  if (authenticator !== undefined && authenticator.othersShare > quietShare) return false;
  if (approval.some(({ burst, throttled }) => !throttled && burst.othersShare > quietShare)) return false;
  if (bundles !== undefined && bundles.othersShare > quietShare) return false;
  return measured.every((results) => wasQuiet(results, isThrottled(results.contender)));
}

function contenderParts(results: Results): string[] {
  const { contenders } = results;
  const backlogs = contenders.flatMap(({ contender, backlog }) =>
    backlog === undefined ? [] : [{ contender, mass: backlog }],
  );
  return [
    ...summaryParts(results),
    ...sizesOf(contenders).flatMap((size, index) => [
      '',
      `Burst: ${size} approved requests come up at once before a warm signer. t0 = their release`,
      massTable(burstsOf(contenders, index)),
    ]),
    ...(backlogs.length === 0
      ? []
      : [
          '',
          'Backlog: approved requests wait, the signer is started. t0 = start of its first process',
          massTable(backlogs),
        ]),
    ...steadyParts(contenders),
    ...sequenceParts(contenders),
    ...(contenders.some(({ contender }) => contender === 'localstack') ? ['', emulatorNote] : []),
  ];
}

const emulatorNote =
  'LocalStack emulates Lambda, KMS and DynamoDB on the same processors: those rows measure an emulator and the functions in it, not AWS.';

/** Everything that sets contenders side by side, a line each. */
function summaryParts({ contenders, approval = [] }: Results): string[] {
  const sizes = sizesOf(contenders);
  const rateOf = (name: ContenderName): number | undefined =>
    contenders.find(({ contender }) => contender === name)?.bursts[0]?.perSecond;
  const rows = contenders.map(({ contender, bursts, steady, sequence }) => {
    const [burst] = bursts;
    const joining = approval.find(({ approver }) => approver === contender);
    const alone = sequence?.withoutKms === undefined ? '' : ` (${sequence.withoutKms.p50.toFixed(1)})`;
    return [
      labelOf(contender),
      ...sizes.map((size, index) => secondsOf(bursts[index], size)),
      ratio(burst?.perSecond, rateOf('kcm-default')),
      ratio(burst?.perSecond, rateOf('kcm-unthrottled')),
      secondsOf(joining?.burst, Math.max(...approval.map(({ burst: { requests } }) => requests))) +
        (joining?.proved === false ? ' *' : ''),
      steady === undefined ? '–' : `${duration(steady.p50)} / ${duration(steady.p99)}`,
      sequence === undefined ? '–' : `${sequence.p50.toFixed(1)}${alone}`,
      burst === undefined ? '–' : perThousand(burst.processes, burst.requests),
      burst === undefined ? '–' : megabytes(burst.processes),
    ];
  });
  return [
    '',
    'In short. Burst in s until all are signed, and how many times the reference’s rate; pending: approved and signed, in s, * without proof;',
    `steady and one by one in ms; CPU in s for 1000 certificates and peak memory, functions or sign server + relay, in the burst of ${sizes[0] ?? 0};`,
    'in brackets without the calls of KMS',
    table(
      [
        '',
        ...sizes.map((size) => `burst ${size}`),
        '× default',
        '× unthrottled',
        'pending',
        'steady p50 / p99',
        'one by one p50',
        'CPU s / 1000',
        'peak MB',
      ],
      rows,
    ),
  ];
}

/** In seconds; who throttles itself may have been given fewer than the others. */
function secondsOf(mass: MassResult | undefined, size: number): string {
  if (mass === undefined) return '–';
  return `${mass.requests === size ? '' : `${mass.requests}: `}${mass.all.toFixed(2)}`;
}

/** How many requests each burst has, the smallest first. */
function sizesOf(contenders: readonly ContenderResults[]): number[] {
  const most = Math.max(0, ...contenders.map(({ bursts }) => bursts.length));
  return Array.from({ length: most }, (_, index) =>
    Math.max(...contenders.map(({ bursts }) => bursts[index]?.requests ?? 0)),
  );
}

interface MassRow {
  readonly contender: ContenderName;
  readonly mass: MassResult;
}

function burstsOf(contenders: readonly ContenderResults[], index: number): MassRow[] {
  return contenders.flatMap(({ contender, bursts }) => {
    const mass = bursts[index];
    return mass === undefined ? [] : [{ contender, mass }];
  });
}

const massHeads = [
  'first s',
  'all s',
  'per s',
  'p50 s',
  'p99 s',
  'CPU s',
  'CPU s / 1000',
  'peak MB',
  'API server CPU s',
];

function massCells(mass: MassResult): string[] {
  const { first, all, perSecond, p50, p99, processes, apiServerSeconds, othersShare, requests, besides } = mass;
  return [
    first.toFixed(2),
    all.toFixed(2),
    perSecond.toFixed(0),
    p50.toFixed(2),
    p99.toFixed(2),
    processes.map(({ cpuSeconds }) => cpuSeconds.toFixed(2)).join(' + '),
    perThousand(processes, requests),
    megabytes(processes),
    apiServerSeconds.toFixed(2),
    besides.length === 0 ? '' : besides.map(({ name, cpuSeconds }) => `${name} ${cpuSeconds.toFixed(2)}`).join(', '),
    `${(othersShare * 100).toFixed(0)} %`,
  ];
}

function massTable(rows: readonly MassRow[]): string {
  const rate = (name: ContenderName): number | undefined =>
    rows.find(({ contender }) => contender === name)?.mass.perSecond;
  return table(
    ['', 'requests', ...massHeads, 'emulator CPU s', 'others', '× default', '× unthrottled'],
    rows.map(({ contender, mass }) => [
      labelOf(contender),
      String(mass.requests),
      ...massCells(mass),
      ratio(mass.perSecond, rate('kcm-default')),
      ratio(mass.perSecond, rate('kcm-unthrottled')),
    ]),
  );
}

function steadyParts(contenders: readonly ContenderResults[]): string[] {
  const rows = contenders.flatMap(({ contender, steady }) =>
    steady === undefined
      ? []
      : [
          [
            labelOf(contender),
            String(steady.requests),
            steady.perSecond.toFixed(0),
            steady.p50.toFixed(1),
            steady.p99.toFixed(1),
            (steady.lag / 1_000).toFixed(2),
            `${(steady.othersShare * 100).toFixed(0)} %`,
          ],
        ],
  );
  if (rows.length === 0) return [];
  return [
    '',
    'Steady: approved requests come up one by one. From then until the certificate is seen; late: all signed so long after the last came up',
    table(['', 'requests', 'per s', 'p50 ms', 'p99 ms', 'late s', 'others'], rows),
  ];
}

function sequenceParts(contenders: readonly ContenderResults[]): string[] {
  const rows = contenders.flatMap(({ contender, sequence }) =>
    sequence === undefined ? [] : [[labelOf(contender), String(sequence.requests), ...sequenceCells(sequence)]],
  );
  if (rows.length === 0) return [];
  return [
    '',
    'One by one: from sending the approval until the certificate is seen. An embedded key signs in 0.03 ms: nothing to take off',
    table(['', 'requests', ...sequenceHeads], rows),
  ];
}

const sequenceHeads = ['p50 ms', 'p99 ms', 'KMS p50 ms', 'without KMS p50 ms', 'p99 ms'];

function sequenceCells({ p50, p99, kms, withoutKms }: SequenceResult): string[] {
  return [p50.toFixed(1), p99.toFixed(1), cell(kms, 1, ''), cell(withoutKms?.p50, 1, ''), cell(withoutKms?.p99, 1, '')];
}

function approvalParts(results: readonly ApprovingResult[]): string[] {
  const own = results.find(({ approver }) => approver === 'countersign');
  const head = ['', 'requests', ...massHeads, 'AWS’s CPU s', 'others', 'ours ×'];
  return [
    '',
    'Approval: pending requests of one bootstrap token come up at once before approver and signer, warm. With proof: each of a machine of',
    'its own, whose evidence attest verifies with STS and EC2, strict fakes that are processes of their own. t0 = their release',
    table(
      head,
      results.map(({ label, burst }) => [
        label,
        String(burst.requests),
        ...massCells(burst),
        ratio(own?.burst.perSecond, burst.perSecond),
      ]),
    ),
    '',
    'The same one by one: from sending the request until the certificate is seen',
    table(
      ['', 'requests', ...sequenceHeads],
      results.map(({ label, sequence }) => [label, String(sequence.requests), ...sequenceCells(sequence)]),
    ),
  ];
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

function perThousand(processes: readonly ProcessResult[], requests: number): string {
  return processes.map(({ cpuSeconds }) => ((cpuSeconds * 1_000) / requests).toFixed(2)).join(' + ');
}

/** Of several of one kind together, and how many they are. */
function megabytes(processes: readonly ProcessResult[]): string {
  return processes
    .map(({ peakMegabytes, processes: count }) => `${peakMegabytes.toFixed(0)}${count === 1 ? '' : ` (${count})`}`)
    .join(' + ');
}

function duration(milliseconds: number): string {
  return milliseconds.toFixed(milliseconds >= 100 ? 0 : 1);
}

function cell(value: number | undefined, digits: number, none = '–'): string {
  return value === undefined ? none : value.toFixed(digits);
}
