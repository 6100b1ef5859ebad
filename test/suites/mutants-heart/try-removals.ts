/**
 * Runs the cases as it is, and then without each check: `node try-removals.ts` prints what came out as JSON. The modules
 * are loaded once, with every removal in them behind a switch; which cases meet a check is seen as they run, and only
 * those are run without it.
 */
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Removal } from '../../harness/check-removals.ts';
import type * as Runner from './case-runner.ts';
import { findRemovals, folder } from './removals.ts';

export interface Tried {
  readonly cases: number;
  /** Cases that fail as it is. */
  readonly failed: readonly string[];
  /** In the order of the removals. */
  readonly without: readonly Outcome[];
}

export interface Outcome {
  /** How many cases come past it. */
  readonly met: number;
  /** The first case that is answered otherwise. */
  readonly needed?: string;
  /** Only if no case is: one in which nothing comes out. */
  readonly breaks?: string;
}

/** Those that need no other process, no network and no second. */
const files = ['story', 'every-refusal', 'one-check', 'verdict-check', 'tofu', 'serving-names', 'binding'] as const;
const tests = join(import.meta.dirname, '../../unit/attest');

const removals = findRemovals();
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

async function failureOf({
  run,
}: Runner.Case): Promise<{ readonly expected: boolean; readonly message: string } | undefined> {
  try {
    await run();
    return undefined;
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    return { expected: name === 'AssertionError', message };
  }
}

const { casesOf } = (await import(runnerUrl)) as typeof Runner;
const cases: Runner.Case[] = [];
for (const file of files)
  cases.push(...(await casesOf(file, () => import(pathToFileURL(join(tests, `${file}.test.ts`)).href))));

const failed: string[] = [];
const meeting = new Map<number, Runner.Case[]>();
for (const one of cases) {
  met = new Set();
  const failure = await failureOf(one);
  if (failure !== undefined) failed.push(`${one.file}: ${one.name}: ${failure.message}`);
  for (const number of met) meeting.set(number, [...(meeting.get(number) ?? []), one]);
}

const without: Outcome[] = [];
for (const number of removals.keys()) {
  away = number;
  const those = meeting.get(number) ?? [];
  let breaks: string | undefined;
  let needed: string | undefined;
  for (const one of those) {
    const failure = await failureOf(one);
    if (failure?.expected === true) needed = `${one.file}: ${one.name}`;
    else if (failure !== undefined) breaks ??= `${one.file}: ${one.name}: ${failure.message}`;
    if (needed !== undefined) break;
  }
  without.push({
    met: those.length,
    ...(needed === undefined ? {} : { needed }),
    ...(needed !== undefined || breaks === undefined ? {} : { breaks }),
  });
}
process.stdout.write(JSON.stringify({ cases: cases.length, failed, without } satisfies Tried));
