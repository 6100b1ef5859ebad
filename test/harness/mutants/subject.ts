/** A part of the product, its mutants, and the cases that must catch them. */
import { checksIn } from './checks.ts';
import { located } from './mutant.ts';
import type { Change, Mutant } from './mutant.ts';

/** A mutant that changes no answer. */
export interface Equivalent {
  readonly file: string;
  readonly without: string;
  /** Where `without` stands in more than one statement. */
  readonly check?: string;
  readonly because: string;
}

/** What is changed, and the cases of which one must fail. */
export interface Subject {
  /** The file that exports this as `subject`. */
  readonly module: string;
  readonly changes: readonly Change[];
  /** Files of which every check is removed in turn. */
  readonly checkedFiles?: readonly string[];
  /** Both ways of every choice in these files, and not only checks (checks.ts). */
  readonly choices?: boolean;
  readonly equivalent?: readonly Equivalent[];
  /**
   * From the root of the repository, from the fastest: a mutant is tried until the first case fails. Unit test files, and
   * modules that export `cases(place)`. The cases need no other process and no network, except for `place`.
   */
  readonly cases: readonly string[];
}

export function mutantsOf({ changes, checkedFiles = [], choices = false }: Subject): readonly Mutant[] {
  return [...checkedFiles.flatMap((file) => checksIn(file, { choices })), ...changes.map((change) => located(change))];
}

export function fits({ file, without, check }: Equivalent, mutant: Mutant): boolean {
  return file === mutant.file && without === mutant.without && (check === undefined || check === mutant.check);
}
