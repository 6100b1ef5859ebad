/** A check, and its result. */
import type { World } from './world.ts';

export interface Check {
  /** Short, stable, kebab-case; used by reports, `--only`, `--skip` and docs/conformance.md. */
  readonly id: string;
  /** The rule, as a sentence without a full stop. */
  readonly rule: string;
  /** Where the rule is from: a page of this project, a client's source, an RFC. */
  readonly source: string;
  /** Checks that must have passed: otherwise this one cannot run, or would only repeat their failure. */
  readonly needs?: readonly string[];
  /** Throws if the endpoint does not answer. */
  run(world: World): Promise<Finding>;
}

export type Finding =
  | { readonly problems: readonly string[]; readonly note?: string }
  /** Why the check could not run. */
  | { readonly skipped: string };

export interface Result {
  readonly id: string;
  readonly rule: string;
  readonly source: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** All problems of a failure, the reason of a skip, what a passed check covered. */
  readonly detail: string;
  readonly milliseconds: number;
}

/** Problems with `where` in front, for checks over many cases. */
export function at(where: string, problems: readonly string[]): readonly string[] {
  return problems.map((problem) => `${where}: ${problem}`);
}

export function unless(holds: boolean, problem: string): readonly string[] {
  return holds ? [] : [problem];
}
