/** Planted mistakes: changes of the text of one file, by which the tests show that they would notice such a mistake. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../../..');

/** A mistake that a list describes by its text. */
export interface Change {
  /** From the root of the repository. */
  readonly file: string;
  /** What goes wrong. */
  readonly breaks: string;
  /** Stands in the file exactly once: a change of code that is no longer there proves nothing. */
  readonly find: string;
  readonly instead: string;
  /** Stands in the file exactly once, and has `find` exactly once, where `find` alone is not unique. */
  readonly within?: string;
  /** Both texts are expressions, so that the change can be switched on and off in a module that stays loaded. */
  readonly isExpression?: boolean;
}

/** A mistake at its place in the file. */
export interface Mutant {
  readonly file: string;
  /** The statement or the text that is changed. */
  readonly check: string;
  /** The part of a check that is removed, or what goes wrong. */
  readonly without: string;
  readonly start: number;
  readonly end: number;
  readonly instead: string;
  readonly isExpression: boolean;
}

export function changesOf(
  file: string,
  ...changes: readonly (readonly [breaks: string, find: string, instead: string])[]
): readonly Change[] {
  return changes.map(([breaks, find, instead]) => ({ file, breaks, find, instead }));
}

export function nameOf({ file, without, check }: Mutant): string {
  return `${file}: ${without}, in: ${check}`;
}

export function sourceOf(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

export function located(change: Change): Mutant {
  const { file, breaks, find, instead, within = find, isExpression = false } = change;
  const problem = problemOf(change);
  if (problem !== undefined) throw new Error(problem);
  const start = sourceOf(file).indexOf(within) + within.indexOf(find);
  return { file, check: within, without: breaks, start, end: start + find.length, instead, isExpression };
}

/** Why the change cannot be planted. */
export function problemOf({ file, breaks, find, within = find }: Change): string | undefined {
  const problem = (text: string, place: string): string | undefined => {
    const times = place.split(text).length - 1;
    return times === 1 ? undefined : `${file} must have this text once, and has it ${times} times: ${text} (${breaks})`;
  };
  return problem(within, sourceOf(file)) ?? problem(find, within);
}
