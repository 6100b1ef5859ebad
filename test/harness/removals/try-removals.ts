/**
 * Runs the cases of test files on the product as it is, and then without each check. The modules are loaded once, with
 * every removal in them behind a switch. Which cases reach a check is recorded as they run, and only those run again
 * without it.
 */
import { registerHooks } from 'node:module';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Runner from './case-runner.ts';
import type { Removal } from './check-removals.ts';

export interface Plan {
  /** Of the product's files that the removals name. */
  readonly folder: string;
  readonly removals: readonly Removal[];
  /** Absolute paths of test files. Their cases must need no other process and no network. */
  readonly testFiles: readonly string[];
}

export interface Tried {
  readonly cases: number;
  /** Cases that fail on the product as it is. */
  readonly failed: readonly string[];
  /** In the order of the removals. */
  readonly without: readonly Outcome[];
}

export interface Outcome {
  /** How many cases reach it. */
  readonly met: number;
  /** The first case with another answer. */
  readonly needed?: string;
  /** Only where no case has another answer: one that ends in an error instead. */
  readonly breaks?: string;
}

/** Call it once in a process of its own: its hooks stay. */
export async function tryRemovals({ folder, removals, testFiles }: Plan): Promise<Tried> {
  let away = -1;
  let met = new Set<number>();
  const switches = globalThis as unknown as { isAway: (number: number) => boolean };
  switches.isAway = (number) => {
    met.add(number);
    return number === away;
  };

  const runnerUrl = pathToFileURL(join(import.meta.dirname, 'case-runner.ts')).href;
  const sources = pathToFileURL(folder).href;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === 'vitest' && context.parentURL !== runnerUrl) return { url: runnerUrl, shortCircuit: true };
      return next(specifier, context);
    },
    load(url, context, next) {
      const loaded = next(url, context);
      const own = [...removals.entries()].filter(([, { file }]) => url === `${sources}/${file}`);
      if (own.length === 0) return loaded;
      return { ...loaded, source: switched(Buffer.from(loaded.source as Uint8Array).toString(), own) };
    },
  });

  const { casesOf } = (await import(runnerUrl)) as typeof Runner;
  const cases: Runner.Case[] = [];
  for (const file of testFiles)
    cases.push(...(await casesOf(basename(file, '.test.ts'), () => import(pathToFileURL(file).href))));

  const failed: string[] = [];
  const meeting = new Map<number, TimedCase[]>();
  for (const one of cases) {
    met = new Set();
    const started = performance.now();
    const failure = await failureOf(one, 60_000);
    // Without a check a case may hang. One that takes long as it is may take longer on a busy machine.
    const limit = 5_000 + 10 * (performance.now() - started);
    if (failure !== undefined) failed.push(`${one.file}: ${one.name}: ${failure.message}`);
    for (const number of met) meeting.set(number, [...(meeting.get(number) ?? []), { one, limit }]);
  }

  // Without a check, work that a case started and does not await may fail; the case itself says what is expected.
  process.on('unhandledRejection', () => undefined);
  const without: Outcome[] = [];
  for (const number of removals.keys()) {
    away = number;
    without.push(await outcomeOf(meeting.get(number) ?? []));
  }
  return { cases: cases.length, failed, without };
}

interface TimedCase {
  readonly one: Runner.Case;
  /** Milliseconds. */
  readonly limit: number;
}

async function outcomeOf(cases: readonly TimedCase[]): Promise<Outcome> {
  let breaks: string | undefined;
  for (const { one, limit } of cases) {
    const failure = await failureOf(one, limit);
    if (failure?.expected === true) return { met: cases.length, needed: `${one.file}: ${one.name}` };
    if (failure !== undefined) breaks ??= `${one.file}: ${one.name}: ${failure.message}`;
  }
  return { met: cases.length, ...(breaks === undefined ? {} : { breaks }) };
}

type Numbered = readonly [number: number, removal: Removal];

/** `condition` becomes `(isAway(7) ? false : condition)`, and so on inside it. */
function switched(text: string, own: readonly Numbered[], from = 0, to = text.length): string {
  const [first, ...rest] = own.toSorted(([, a], [, b]) => a.start - b.start || b.end - a.end);
  if (first === undefined) return text.slice(from, to);
  const [number, { start, end, instead }] = first;
  const inside = rest.filter(([, one]) => one.end <= end);
  const behind = rest.filter(([, one]) => one.start >= end);
  if (inside.length + behind.length < rest.length) throw new Error(`removals overlap: ${text.slice(start, end)}`);
  const replaced = `(isAway(${number}) ? ${instead} : ${switched(text, inside, start, end)})`;
  return text.slice(from, start) + replaced + switched(text, behind, end, to);
}

interface Failure {
  /** By an assertion, and not by an error on the way. */
  readonly expected: boolean;
  readonly message: string;
}

async function failureOf({ run }: Runner.Case, limit: number): Promise<Failure | undefined> {
  try {
    await run(limit);
    return undefined;
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    return { expected: name === 'AssertionError', message };
  }
}
