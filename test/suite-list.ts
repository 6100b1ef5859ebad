/** What test/suites.json says of the test files, and whether a run was the listed one. Pure. */
import type { Tier } from './harness/determinism/tier.ts';

/** What a test file has in one tier. */
interface Size {
  readonly tests: number;
  /** From the import of the file to its last hook, rounded. */
  readonly seconds: number;
}

export interface SuiteEntry extends Size {
  readonly tier: Tier;
  /** Of a file of the default tier that the deep tier runs again, with larger sizes (test/harness/determinism/tier.ts). */
  readonly deep?: Size;
}

/** Test file → what is listed of it. */
export type SuiteList = Readonly<Record<string, SuiteEntry>>;

/** Test file → what a run saw of it. `tests` has the status of each test, as vitest reports it. */
export type Ran = ReadonlyMap<string, { readonly tests: readonly string[]; readonly seconds: number }>;

/** What this tier is to see of the file; undefined where the tier leaves it out. */
export function sizeIn(tier: Tier, entry: SuiteEntry): Size | undefined {
  if (tier === entry.tier) return entry;
  return tier === 'deep' ? entry.deep : undefined;
}

/** The files of a tier, the slowest first. */
export function filesOf(list: SuiteList, tier: Tier): string[] {
  return Object.entries(list)
    .flatMap(([file, entry]) => {
      const size = sizeIn(tier, entry);
      return size === undefined ? [] : [{ file, seconds: size.seconds }];
    })
    .toSorted((a, b) => b.seconds - a.seconds || (a.file < b.file ? -1 : 1))
    .map(({ file }) => file);
}

/** So many that `.ci/run`, which runs one, ends within an hour with no tool in the cache. */
export const partNumbers = [1, 2, 3, 4, 5] as const;
export type PartNumber = (typeof partNumbers)[number];

/** Each file of the deep tier is in exactly one part. The next slowest file goes to the part that has the least so far. */
export function filesOfPart(list: SuiteList, part: PartNumber): string[] {
  const parts = partNumbers.map((number) => ({ number, seconds: 0, files: [] as string[] }));
  for (const file of filesOf(list, 'deep')) {
    const least = parts.reduce((a, b) => (b.seconds < a.seconds ? b : a));
    least.seconds += sizeIn('deep', list[file]!)!.seconds;
    least.files.push(file);
  }
  return parts.find(({ number }) => number === part)!.files;
}

/** The part that CI runs at this commit: the same one whenever the commit is tested again. */
export function partOfCommit(hash: string): PartNumber {
  return partNumbers[Number.parseInt(hash.slice(0, 8), 16) % partNumbers.length]!;
}

export interface Held {
  /** Each line is a failure of the run. */
  readonly failures: readonly string[];
  /** Each line is a suite that did not run whole because a tool is missing. */
  readonly skipped: readonly string[];
}

interface Options {
  readonly tier: Tier;
  /** The listed files that this run was to include. */
  readonly expected: readonly string[];
  /** All test files in the repository, whether they ran or not. */
  readonly present: readonly string[];
  /** In CI every tool must be there, so that a skipped test is a failure. */
  readonly inCi: boolean;
}

/**
 * A listed file that is missing, a file with fewer tests than listed, and a file that is not listed fail the run. More tests
 * than listed are fine: `--update` writes them down.
 */
export function holdAgainst(list: SuiteList, ran: Ran, { tier, expected, present, inCi }: Options): Held {
  const failures: string[] = [];
  const skipped: string[] = [];
  for (const file of expected) {
    const listed = list[file] === undefined ? 0 : (sizeIn(tier, list[file])?.tests ?? 0);
    const statuses = ran.get(file)?.tests ?? [];
    const left = statuses.filter(isSkipped).length;
    if (statuses.length < listed) failures.push(`MISSING  ${file}: ${statuses.length} tests, the list says ${listed}`);
    else if (left > 0 && inCi)
      failures.push(`MISSING  ${file}: ${left} of ${statuses.length} tests were skipped, in CI`);
    else if (left > 0) skipped.push(`SKIPPED  ${file}: ${left} of ${statuses.length} tests`);
  }
  for (const [file, entry] of Object.entries(list))
    if (!isWhole(entry))
      failures.push(`UNLISTED ${file}: its entry has no seconds or no tier (npm test -- ${file} --update)`);
    else if (!present.includes(file)) failures.push(`MISSING  ${file}: the list has it, the repository does not`);
  for (const file of present)
    if (list[file] === undefined) failures.push(`UNLISTED ${file}: add it to test/suites.json (npm test -- --update)`);
  return { failures, skipped };
}

/** An entry that was written by hand may be without them, and would belong to no tier. */
function isWhole({ tests, seconds, tier }: Partial<SuiteEntry>): boolean {
  return tests !== undefined && seconds !== undefined && tier !== undefined;
}

/** `todo` is no test that could run. */
export function isSkipped(status: string): boolean {
  return status === 'skipped' || status === 'pending' || status === 'todo';
}

/** The list after `--update`: with the sizes of what ran, and without the files that are gone. */
export function updated(list: SuiteList, ran: Ran, { tier, present }: Pick<Options, 'tier' | 'present'>): SuiteList {
  const now = new Map(Object.entries(list).filter(([file]) => present.includes(file)));
  for (const [file, saw] of ran) {
    const before = now.get(file);
    const entry = before !== undefined && isWhole(before) ? before : undefined;
    const listed = entry === undefined ? undefined : sizeIn(tier, entry);
    const size = { tests: saw.tests.length, seconds: secondsAfter(listed, saw) };
    if (entry === undefined) now.set(file, { ...size, tier });
    else if (tier === entry.tier) now.set(file, { ...entry, ...size });
    else if (listed !== undefined) now.set(file, { ...entry, deep: size });
  }
  return Object.fromEntries([...now].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** A skipped test says nothing of the time. What is as good as before stays, so that not every run rewrites every line. */
function secondsAfter(
  listed: Size | undefined,
  { tests, seconds }: { tests: readonly string[]; seconds: number },
): number {
  const rounded = Math.max(1, Math.round(seconds));
  if (listed === undefined) return rounded;
  const close = Math.abs(rounded - listed.seconds) <= Math.max(2, listed.seconds / 5);
  return close || tests.some(isSkipped) ? listed.seconds : rounded;
}
