/** What a run of removals shows: which of them no case needs, and whether the reviewed table knows these. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Removal } from './check-removals.ts';
import type { Tried } from './try-removals.ts';

export interface Equivalent {
  readonly file: string;
  readonly without: string;
  /** Where that stands in more than one statement. */
  readonly check?: string;
  readonly because: string;
}

/** Runs a program that prints what `tryRemovals` returns. */
export async function runProgram(program: string, milliseconds: number): Promise<Tried> {
  const { stdout } = await promisify(execFile)(process.execPath, [program], {
    timeout: milliseconds,
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(stdout) as Tried;
}

export interface Idle {
  /** Removals that no case needs and that the table does not list: a check without a test, or one too many. */
  readonly unknown: readonly string[];
  /** Entries of the table that are needed by a case now, that are gone, or that fit several removals. */
  readonly stale: readonly string[];
}

export function idleRemovals(removals: readonly Removal[], tried: Tried, table: readonly Equivalent[]): Idle {
  const idle = removals.filter((_, index) => {
    const { needed, breaks } = tried.without[index] ?? {};
    return needed === undefined && breaks === undefined;
  });
  const fits = (one: Equivalent, { file, check, without }: Removal): boolean =>
    one.file === file && one.without === without && (one.check === undefined || one.check === check);
  return {
    unknown: idle
      .filter((removal) => !table.some((one) => fits(one, removal)))
      .map(({ file, check, without }) => `${file}: without ${without}, in: ${check}`),
    stale: table
      .filter((one) => idle.filter((removal) => fits(one, removal)).length !== 1)
      .map(({ file, without }) => `${file}: ${without}`),
  };
}
