/**
 * What becomes possible without each check of the aws provider. For every one of them the reviewed table beside this file
 * says which attempts are then accepted, and which are caught by another check only, by its words. A check that makes no
 * difference to any case is either superfluous or untried: both fail here.
 *
 * After a change of the checks: `REVIEW=1 npx vitest run test/suites/mutants-attestation`, and read the difference.
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { findRemovals } from './removals.ts';
import type { Tried } from './try-removals.ts';

/** One removal in the table. */
interface Entry {
  readonly file: string;
  readonly check: string;
  readonly without: string;
  /** Names of cases that are refused as it is. */
  readonly accepted?: readonly string[];
  /** Words of the other check → case. `crash`: nothing comes out. At most a few cases each, and how many more. */
  readonly caughtBy?: Readonly<Record<string, readonly string[]>>;
  /** Good ones that are refused, or described otherwise: the condition lets something in. */
  readonly otherwise?: readonly string[];
}

const table = join(import.meta.dirname, 'removed-checks.json');
/** Each keeps a processor busy. */
const processes = 2;

const removals = findRemovals();
let reviewed: readonly Entry[] = [];
let entries: readonly Entry[] = [];
let asItIs: Tried['asItIs'] = {};

beforeAll(async () => {
  const program = join(import.meta.dirname, 'try-removals.ts');
  const parts = await Promise.all(
    Array.from({ length: processes }, async (_, part) => {
      const run = promisify(execFile)(process.execPath, [program, String(part), String(processes)], {
        timeout: 540_000,
        maxBuffer: 256 * 1024 * 1024,
      });
      return JSON.parse((await run).stdout) as Tried;
    }),
  );
  asItIs = parts[0]!.asItIs;
  const tried = new Map(
    parts.flatMap(({ without }) =>
      without.map((one) => [`${one.removal.file}:${one.removal.start}:${one.removal.instead}`, one] as const),
    ),
  );
  entries = removals.map(({ file, start, instead, check, without }) => {
    const changed = tried.get(`${file}:${start}:${instead}`)?.changed ?? {};
    return entry({ file, check, without }, changed);
  });
  if (process.env['REVIEW'] !== undefined) writeFileSync(table, `${JSON.stringify(entries, undefined, 2)}\n`);
  reviewed = JSON.parse(readFileSync(table, 'utf8')) as readonly Entry[];
}, 600_000);

function entry(of: Pick<Entry, 'file' | 'check' | 'without'>, changed: Readonly<Record<string, string>>): Entry {
  const accepted: string[] = [];
  const otherwise: string[] = [];
  const caughtBy = new Map<string, string[]>();
  for (const [name, outcome] of Object.entries(changed)) {
    if (asItIs[name]!.startsWith('accepted')) otherwise.push(name);
    else if (outcome.startsWith('accepted') || outcome.includes('"running"')) accepted.push(name);
    else caughtBy.set(outcome, [...(caughtBy.get(outcome) ?? []), name]);
  }
  return {
    ...of,
    ...(accepted.length === 0 ? {} : { accepted: few(accepted) }),
    ...(caughtBy.size === 0
      ? {}
      : { caughtBy: Object.fromEntries([...caughtBy].map(([words, names]) => [words, few(names)])) }),
    ...(otherwise.length === 0 ? {} : { otherwise: few(otherwise) }),
  };
}

/** Enough to see it by; guards in the program's flow concern nearly every case. */
function few(names: readonly string[]): readonly string[] {
  return names.length <= 4 ? names : [...names.slice(0, 3), `and ${names.length - 3} more`];
}

describe('the checks of the aws provider', () => {
  test('are all here: those found in the source are those in the reviewed table', () => {
    const keys = (list: readonly Pick<Entry, 'file' | 'check' | 'without'>[]) =>
      list.map(({ file, check, without }) => `${file}: ${without} in ${check}`);
    expect(removals.length).toBeGreaterThan(150);
    expect(keys(removals)).toEqual(keys(reviewed));
  });

  test('make a difference, each of them', () => {
    const idle = entries.filter((one) => (one.accepted ?? one.caughtBy ?? one.otherwise) === undefined);
    expect(idle.map(({ file, check, without }) => `${file}: without ${without}, in: ${check}`)).toEqual([]);
  });

  test('what becomes possible without one is what was reviewed', () => {
    expect(entries).toEqual(reviewed);
  });

  test('most of them alone stand against somebody', () => {
    expect(entries.filter(({ accepted }) => accepted !== undefined).length).toBeGreaterThan(80);
  });
});
