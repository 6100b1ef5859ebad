/** The tables of the functions' bundles and of the program on the node. */
import type { AuthenticatorResult, RunTime } from '../programs/authenticator.ts';
import type { BundleMeasure, BundlesResult } from '../programs/bundles.ts';
import { intervalText, ratioText } from './comparison-table.ts';
import { ratio, table } from './table.ts';

/** Each function compared with the bare libraries it needs: the part of a ratio above 1 is the cost of our own code. */
export function bundleParts({ functions, nothing, runtime, imports, answers }: BundlesResult): string[] {
  const rows = functions.map(({ service, libraries, own, bare, ratios }) => [
    `${service}, beside ${libraries}`,
    ...[own, bare].map((measure) => amount(measure, 'kilobytes')),
    ratio(own.kilobytes, bare.kilobytes),
    ...(['imported', 'answered'] as const).flatMap((what) => [
      ...[own, bare].map((measure) => amount(measure, what)),
      ratioText(ratios[what]),
    ]),
  ]);
  const floor = (['kilobytes', 'imported', 'answered'] as const).flatMap((what) => [amount(nothing, what), '', '']);
  const from = runtime === 'lambda' ? "under Lambda's own runtime" : 'in a plain process, without a Lambda runtime';
  return [
    '',
    `Bundles, in new processes that take turns: medians of ${imports} imports and ${answers} first answers, ${from};`,
    '×: the median of the ratios of all pairs, in brackets the interval that holds it with a probability of 95 %',
    table(
      ['', 'KB', 'bare', '×', 'import ms', 'bare', '×', 'first answer ms', 'bare', '×'],
      [...rows, ['a handler that does nothing', ...floor]],
    ),
  ];
}

function amount(measure: BundleMeasure, what: keyof BundleMeasure): string {
  return measure[what].toFixed(what === 'kilobytes' || measure[what] >= 100 ? 0 : 1);
}

/** The time that the kubelet waits, and how much longer that is than the start of Node.js. */
export function authenticatorParts({ rounds, bare, programs }: AuthenticatorResult): string[] {
  const cells = (time: RunTime | undefined): string[] =>
    time === undefined
      ? ['', '', '', '']
      : [
          time.passed.toFixed(1),
          time.more === undefined
            ? ''
            : `${signed(time.more.median)}${intervalText(time.more.interval, (value) => signed(value))}`,
          time.cpu.toFixed(1),
          time.more === undefined ? '' : signed(time.cpu - bare.started.cpu),
        ];
  return [
    '',
    `kubelet-authenticator: a new process until it has ended, in turns with a bare Node's; medians and mean CPU time of ${rounds};`,
    'more: the median of the differences of all pairs, in brackets the interval that holds it with a probability of 95 %',
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

function signed(value: number): string {
  return `${value < 0 ? '' : '+'}${value.toFixed(1)}`;
}
