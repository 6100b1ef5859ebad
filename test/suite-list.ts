/** Holds a run against the committed list of test files, test/suites.json. Pure, so that it has a test of its own. */

/** Test file → how many tests it has, and whether `npm run check` leaves it out. */
export type SuiteList = Readonly<Record<string, { readonly tests: number; readonly slow?: true }>>;

/** Test file → the status of each of its tests, as vitest reports them. */
export type Statuses = ReadonlyMap<string, readonly string[]>;

export interface Held {
  /** Each line is a failure of the run. */
  readonly failures: readonly string[];
  /** Each line is a suite that did not run whole because a tool is missing. */
  readonly skipped: readonly string[];
}

interface Options {
  /** Which of the listed files this run was to include. */
  readonly expected: (file: string) => boolean;
  /** In CI every tool must be there, so that a skipped test is a failure. */
  readonly inCi: boolean;
}

/**
 * A listed file that is missing, that has fewer tests than listed, or that is not listed fails the run. More tests than
 * listed are fine: `--update` writes them down.
 */
export function holdAgainst(list: SuiteList, ran: Statuses, { expected, inCi }: Options): Held {
  const failures: string[] = [];
  const skipped: string[] = [];
  for (const [file, { tests }] of Object.entries(list)) {
    if (!expected(file)) continue;
    const statuses = ran.get(file) ?? [];
    const left = statuses.filter(isSkipped).length;
    if (statuses.length < tests) failures.push(`MISSING  ${file}: ${statuses.length} tests, the list says ${tests}`);
    else if (left > 0 && inCi)
      failures.push(`MISSING  ${file}: ${left} of ${statuses.length} tests were skipped, in CI`);
    else if (left > 0) skipped.push(`SKIPPED  ${file}: ${left} of ${statuses.length} tests`);
  }
  for (const file of ran.keys())
    if (list[file] === undefined) failures.push(`UNLISTED ${file}: add it to test/suites.json (npm test -- --update)`);
  return { failures, skipped };
}

/** `todo` is no test that could run. */
export function isSkipped(status: string): boolean {
  return status === 'skipped' || status === 'pending' || status === 'todo';
}
