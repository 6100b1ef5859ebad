/** The tests of one subject: its cases pass on the product as it is, and catch every mutant. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nameOf } from './mutant.ts';
import type { Mutant } from './mutant.ts';
import { fits, mutantsOf } from './subject.ts';
import type { Equivalent, Subject } from './subject.ts';
import type { Outcome, Tried } from './try.ts';

/** Each keeps a processor busy. */
const parts = 2;
const milliseconds = 540_000;

interface Least {
  readonly mutants: number;
  readonly cases: number;
  /** Mutants that change an answer; the others end in an error. All of them where this is absent. */
  readonly changeAnAnswer?: number;
  /** Mutants that a case of such a name catches. */
  readonly caughtBy?: readonly [name: RegExp, mutants: number];
}

/** What the cases need besides the modules. */
interface Place {
  readonly path: string;
  readonly close: () => Promise<void> | void;
}

export function describeMutants(
  subject: Subject,
  least: Least,
  openPlace: () => Promise<Place> | Place = () => ({ path: '', close: () => undefined }),
): void {
  const mutants = mutantsOf(subject);
  const { equivalent = [] } = subject;
  let tried: Tried;
  let place: Place | undefined;

  beforeAll(async () => {
    place = await openPlace();
    tried = await tryMutants(subject.module, place.path);
  }, milliseconds + 60_000);
  afterAll(() => place?.close());

  describe('its cases', () => {
    test('pass on the product as it is', () => {
      expect(tried.failed).toEqual([]);
      expect(tried.cases).toBeGreaterThanOrEqual(least.cases);
    });

    test('catch every mutant, except for those that are known to change no answer', () => {
      expect(mutants.length).toBeGreaterThanOrEqual(least.mutants);
      const changed = new Set(mutants.map(({ file }) => file));
      expect(subject.checkedFiles?.filter((file) => !changed.has(file)) ?? []).toEqual([]);
      expect(notCaught(mutants, tried.outcomes, equivalent)).toEqual({ unknown: [], stale: [] });
    });

    test('catch them by another answer, and not only by an error', () => {
      const { changeAnAnswer = mutants.length - equivalent.length, caughtBy: [name, some] = [/^/, 0] } = least;
      const outcomes = mutants.map((mutant, number) => ({ mutant: nameOf(mutant), ...tried.outcomes[number] }));
      const catching = outcomes.flatMap(({ caughtBy }) => caughtBy ?? []);
      const onlyErrors = outcomes.filter(({ breaks }) => breaks !== undefined);
      expect(catching.length, JSON.stringify(onlyErrors, undefined, 1)).toBeGreaterThanOrEqual(changeAnAnswer);
      expect(catching.filter((one) => name.test(one)).length).toBeGreaterThanOrEqual(some);
    });
  });
}

export async function tryMutants(module: string, place: string): Promise<Tried> {
  const tried = await Promise.all(Array.from({ length: parts }, (_, part) => tryPart([module, part, parts, place])));
  return {
    cases: Math.min(...tried.map(({ cases }) => cases)),
    failed: [...new Set(tried.flatMap(({ failed }) => failed))],
    outcomes: Object.fromEntries(tried.flatMap(({ outcomes }) => Object.entries(outcomes))),
  };
}

async function tryPart(args: readonly (string | number)[]): Promise<Tried> {
  const program = join(import.meta.dirname, 'try.ts');
  const options = { timeout: milliseconds, maxBuffer: 64 * 1024 * 1024 };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args.map(String)], options);
    return JSON.parse(stdout) as Tried;
  } catch (error) {
    // The program writes the name of each mutant before it tries it.
    const { stderr = '' } = error as { readonly stderr?: string };
    throw new Error(`mutants cannot be tried: …${stderr.trimEnd().slice(-500)}`, { cause: error });
  }
}

interface NotCaught {
  /** Mutants that no case catches and that the table does not list: a check without a test, or a check too many. */
  readonly unknown: readonly string[];
  /** Entries of the table for which there is not exactly one mutant that no case catches. */
  readonly stale: readonly string[];
}

export function notCaught(
  mutants: readonly Mutant[],
  outcomes: Readonly<Record<number, Outcome>>,
  table: readonly Equivalent[],
): NotCaught {
  const idle = mutants.filter((_, number) => {
    const { caughtBy, breaks } = outcomes[number] ?? {};
    return caughtBy === undefined && breaks === undefined;
  });
  return {
    unknown: idle.filter((mutant) => !table.some((one) => fits(one, mutant))).map(nameOf),
    stale: table
      .filter((one) => idle.filter((mutant) => fits(one, mutant)).length !== 1)
      .map(({ file, without }) => `${file}: ${without}`),
  };
}
