/** What the programs themselves take: the functions' bundles, and the program on the node. */
import type { AuthenticatorResult, Taken } from './authenticator.ts';
import type { BundleMeasure, BundlesResult } from './bundles.ts';
import { ratio, table } from './table.ts';

/** Each function beside the bare libraries it needs; a ratio above 1 is what our own code costs. */
export function bundleParts({ functions, nothing, runtime, imports, answers }: BundlesResult): string[] {
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
export function authenticatorParts({ rounds, bare, programs }: AuthenticatorResult): string[] {
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
