/** Runs the steps one after the other, undoes everything whatever happens, and reports. */
import { errorMessage } from '../core/outcome/error-message.ts';
import { oneLine } from '../core/outcome/printable-text.ts';
import type { CostLine } from './world/cost.ts';
import { costOf } from './world/cost.ts';
import { recorder } from './world/recorder.ts';
import type { Finding } from './world/recorder.ts';
import type { Place } from './world/names.ts';
import type { Extra, Site, Step } from './world/step.ts';
import { undoList } from './world/undo.ts';
import type { LeftBehind } from './world/undo.ts';

export interface StepReport {
  readonly id: string;
  readonly title: string;
  readonly shows: string;
  /** `notShown`: no part of it was shown. */
  readonly outcome: 'passed' | 'failed' | 'notShown' | 'skipped';
  /** Why parts of it, or all, were not shown. A step that passed may have such reasons. */
  readonly notShown: readonly string[];
  readonly seconds: number;
  readonly findings: readonly Finding[];
}

export interface Report {
  readonly name: string;
  readonly place: Place;
  /** Absent on AWS. */
  readonly emulator?: string;
  /** RFC 3339. */
  readonly began: string;
  readonly seconds: number;
  readonly passed: boolean;
  readonly steps: readonly StepReport[];
  readonly left: readonly LeftBehind[];
  readonly calls: Readonly<Record<string, number>>;
  readonly cost: { readonly lines: readonly CostLine[]; readonly dollars: number };
}

export interface RunOptions {
  readonly steps: readonly Step[];
  readonly site: Omit<Site, 'check' | 'seen' | 'notShown' | 'undo' | 'outputs'>;
  readonly calls: ReadonlyMap<string, number>;
  readonly extras: ReadonlySet<Extra>;
  readonly keep: boolean;
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** One line for the reader who waits. */
  readonly log: (line: string) => void;
}

export async function runAcceptance(options: RunOptions): Promise<Report> {
  const { steps, site, calls, keep, signal, now, log } = options;
  const began = now();
  const undo = undoList((what) => log(`  removing ${what}`));
  const outputs: Site['outputs'] = new Map();
  const reports: StepReport[] = [];
  try {
    for (const step of steps) {
      const missing = step.needs.filter((id) => reports.find((each) => each.id === id)?.outcome !== 'passed');
      const skipped = signal.aborted
        ? 'the run was interrupted'
        : missing.length > 0
          ? `${missing.join(', ')} did not pass`
          : '';
      log(`${step.title}${skipped === '' ? '' : `: skipped, ${skipped}`}`);
      const report = skipped === '' ? await runStep(step, { ...options, undo, outputs }) : skippedStep(step, skipped);
      for (const why of report.notShown) log(oneLine(`  not shown here: ${why}`));
      reports.push(report);
    }
  } finally {
    if (!keep) log('Removing everything');
  }
  const left = keep ? undo.kept() : await undo.all();
  const seconds = Math.round((now() - began) / 1_000);
  const failed = reports.some(({ outcome }) => outcome === 'failed' || outcome === 'skipped');
  const { emulator } = site;
  return {
    name: site.name,
    place: site.place,
    ...(emulator === undefined ? {} : { emulator: emulator.name }),
    began: new Date(began).toISOString(),
    seconds,
    passed: !failed && (keep || left.every(({ expected }) => expected === true)),
    steps: reports,
    left,
    calls: Object.fromEntries([...calls].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    cost: costOf(calls, seconds),
  };
}

async function runStep(
  step: Step,
  { site, signal, now, log, undo, outputs, extras }: RunOptions & Pick<Site, 'undo' | 'outputs'>,
): Promise<StepReport> {
  const { id, title, shows } = step;
  const begin = now();
  const record = recorder(site.emulator?.limits);
  const interrupted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('the run was interrupted')), { once: true });
  });
  await record.check('the step runs to its end', async () => {
    // What still runs after an interruption registers no effect any more.
    if (step.extra !== undefined && !extras.has(step.extra)) record.notShown(title, `only with --with ${step.extra}`);
    else await Promise.race([step.run({ ...site, ...record, undo, outputs }), interrupted]);
    return '';
  });
  // Only a failure says something.
  const findings = record.findings.filter(
    ({ what, outcome }) => what !== 'the step runs to its end' || outcome === 'fails',
  );
  for (const { what, outcome, detail } of findings)
    log(oneLine(`  ${marks[outcome]} ${what}${detail === '' ? '' : `: ${detail.slice(0, 300)}`}`));
  const has = (wanted: Finding['outcome']): boolean => findings.some(({ outcome }) => outcome === wanted);
  const outcome = has('fails') ? 'failed' : has('holds') || !has('notShown') ? 'passed' : 'notShown';
  const notShown = [...new Set(findings.flatMap(({ why }) => why ?? []))];
  return { id, title, shows, outcome, notShown, seconds: Math.round((now() - begin) / 1_000), findings };
}

function skippedStep({ id, title, shows }: Step, why: string): StepReport {
  return {
    id,
    title,
    shows,
    outcome: 'skipped',
    notShown: [],
    seconds: 0,
    findings: [{ what: title, outcome: 'seen', detail: why }],
  };
}

export const marks = { holds: '✓', fails: '✗', seen: '·', notShown: '!' } as const;

/** For errors outside the steps. */
export function failureText(error: unknown): string {
  return `acceptance: ${errorMessage(error)}\n`;
}
