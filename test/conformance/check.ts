/** What a check is, and what comes of one. */
import type { World } from './world.ts';

export interface Check {
  /** Short, stable, kebab-case: reports, `--only`, `--skip` and docs/conformance.md name checks by it. */
  readonly id: string;
  /** The promise, as a sentence without a full stop. */
  readonly rule: string;
  /** Who made that promise: a page of ours, a client's source, an RFC. */
  readonly source: string;
  /** Without these having passed there is nothing to look at, and another failure would only hide the first. */
  readonly needs?: readonly string[];
  /** Throwing means: no answer came. */
  run(world: World): Promise<Finding>;
}

export type Finding =
  | { readonly problems: readonly string[]; readonly note?: string }
  /** Why there was nothing to look at. */
  | { readonly skipped: string };

export interface Result {
  readonly id: string;
  readonly rule: string;
  readonly source: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Of a failure all problems, of a skip the reason, of a pass what was looked at. */
  readonly detail: string;
  readonly milliseconds: number;
}

/** Problems with `where` in front, so that a check over many cases says which. */
export function at(where: string, problems: readonly string[]): readonly string[] {
  return problems.map((problem) => `${where}: ${problem}`);
}

export function unless(holds: boolean, problem: string): readonly string[] {
  return holds ? [] : [problem];
}
