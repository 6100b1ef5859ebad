/**
 * `node try.ts <module of the subject> <part> <parts> <place>` runs the cases on the product as it is, and then with each
 * mutant of this part. It prints JSON: the hooks need a process of their own.
 *
 * Which cases reach the switch of a mutant is recorded as they run, and only those run again with the mutant. A mutant that
 * has no switch, or that no case reaches, such as one in what is evaluated while a module loads, is tried in a copy of the
 * modules.
 */
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Runner from './case-runner.ts';
import { nameOf } from './mutant.ts';
import { plantAll, urlOf } from './plant.ts';
import { mutantsOf } from './subject.ts';
import type { Subject } from './subject.ts';

export interface Tried {
  readonly cases: number;
  /** Cases that fail on the product as it is. */
  readonly failed: readonly string[];
  /** Number of the mutant → its outcome. */
  readonly outcomes: Readonly<Record<number, Outcome>>;
}

export interface Outcome {
  /** The first case with another answer. */
  readonly caughtBy?: string;
  /** Where no case has another answer: the first one that ends in an error instead, and the error. */
  readonly breaks?: string;
}

/** A case and its answer on the product as it is. */
interface KnownCase {
  readonly one: Runner.Case;
  readonly value: unknown;
  /** It fails on the product as it is, and so catches no mutant. */
  readonly fails: boolean;
  /** Milliseconds. */
  readonly limit: number;
}

interface Failure {
  /** An assertion failed, and not an error on the way. */
  readonly isAnswer: boolean;
  readonly message: string;
}

const [module = '', part, parts, place = ''] = process.argv.slice(2);
const { subject } = (await import(pathToFileURL(module).href)) as { readonly subject: Subject };
const mutants = mutantsOf(subject);

let on = -1;
let met = new Set<number>();
plantAll(mutants, (number) => {
  met.add(number);
  return number === on;
});

const known = new Map<string, readonly KnownCase[]>();
const meeting = new Map<number, KnownCase[]>();
const failed: string[] = [];
for (const file of subject.cases) {
  const ofFile: KnownCase[] = [];
  known.set(file, ofFile);
  for (const one of await casesIn(file)) {
    met = new Set();
    const started = performance.now();
    const [value, failure] = await answerOf(one, 60_000);
    // With a mutant a case may hang. One that takes long as it is may take longer on a busy machine.
    const limit = 5_000 + 10 * (performance.now() - started);
    if (failure !== undefined) failed.push(`${one.name}: ${failure.message}`);
    const now: KnownCase = { one, value, fails: failure !== undefined, limit };
    ofFile.push(now);
    for (const number of met) meeting.set(number, [...(meeting.get(number) ?? []), now]);
  }
}

// With a mutant, work that a case starts and does not await may fail; the case itself has the expected answer.
process.on('unhandledRejection', () => undefined);
const outcomes: Record<number, Outcome> = {};
for (const [number, mutant] of mutants.entries()) {
  if (number % Number(parts) !== Number(part)) continue;
  process.stderr.write(`${nameOf(mutant)}\n`);
  outcomes[number] = await outcomeOf(number);
}
// Whatever the cases left open ends with the process.
const cases = [...known.values()].flat().length;
process.stdout.write(JSON.stringify({ cases, failed, outcomes } satisfies Tried), () => process.exit());

async function casesIn(file: string, number?: number): Promise<readonly Runner.Case[]> {
  const url = urlOf(file, number);
  if (!file.endsWith('.test.ts'))
    return ((await import(url)) as { cases: (place: string) => readonly Runner.Case[] }).cases(place);
  const { casesOf } = await import('./case-runner.ts');
  return casesOf(basename(file, '.test.ts'), () => import(url));
}

async function outcomeOf(number: number): Promise<Outcome> {
  const reached = meeting.get(number);
  let breaks: string | undefined;
  on = number;
  for await (const { one, value, fails, limit } of reached ?? copiedCases(number)) {
    if (fails) continue;
    const [other, failure] = await answerOf(one, limit);
    if (failure === undefined ? other !== value : failure.isAnswer) return { caughtBy: one.name };
    if (failure !== undefined) breaks ??= `${one.name}: ${failure.message}`;
  }
  return breaks === undefined ? {} : { breaks };
}

/** With a mutant, modules may fail to load: that is a case that fails. */
async function* copiedCases(number: number): AsyncGenerator<KnownCase> {
  on = -1;
  for (const file of subject.cases) {
    try {
      const ofFile = known.get(file) ?? [];
      for (const [index, one] of (await casesIn(file, number)).entries()) yield { ...ofFile[index]!, one };
    } catch (error) {
      const one = {
        name: 'loading',
        run() {
          throw error;
        },
      };
      yield { one, value: undefined, fails: false, limit: 1_000 };
    }
  }
}

async function answerOf(one: Runner.Case, limit: number): Promise<[value: unknown, failure?: Failure]> {
  try {
    return [await runWithin(one, limit)];
  } catch (error) {
    return [undefined, failureOf(error)];
  }
}

async function runWithin({ run, after }: Runner.Case, limit: number): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('it hangs')), limit);
    });
    return await Promise.race([run(), late]);
  } finally {
    clearTimeout(timer);
    await after?.();
  }
}

function failureOf(error: unknown): Failure {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { isAnswer: name === 'AssertionError', message };
}
