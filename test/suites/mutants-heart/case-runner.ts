/**
 * Stands in for vitest's `test`, so that a file's cases can be run again and again in one process, one at a time, each
 * while another check is away. What is expected is vitest's own.
 */
import { format } from 'node:util';

export { expect } from 'vitest';

export interface Case {
  readonly file: string;
  readonly name: string;
  readonly run: () => Promise<void>;
}

type Body = (...args: never[]) => unknown;

const cases: Case[] = [];
const after: (() => unknown)[] = [];
let file = '';
let path: readonly string[] = [];

/** A case that takes longer hangs for want of the check. */
const milliseconds = 5_000;

/** The cases of one file, which is loaded by it. */
export async function casesOf(name: string, load: () => Promise<unknown>): Promise<readonly Case[]> {
  file = name;
  const before = cases.length;
  const hooks = after.length;
  await load();
  const own = after.slice(hooks);
  return cases.slice(before).map((one) => ({ ...one, run: () => runWith(one.run, own) }));
}

async function runWith(run: () => Promise<void>, own: readonly (() => unknown)[]): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('it hangs')), milliseconds);
    });
    await Promise.race([run(), late]);
  } finally {
    clearTimeout(timer);
    for (const hook of own) await hook();
  }
}

function add(name: string, body: () => unknown): void {
  const full = [...path, name].join(' › ');
  cases.push({ file, name: full, run: async () => void (await body()) });
}

function group(name: string, body: () => void): void {
  const outer = path;
  path = [...path, name];
  body();
  path = outer;
}

/** As many of the values as the title has places for. */
function titled(title: string, values: readonly unknown[]): string {
  const places = title.match(/%[sdifjoO]/g)?.length ?? 0;
  return format(title, ...values.slice(0, places));
}

const listed = (row: unknown): readonly never[] => (Array.isArray(row) ? row : [row]) as unknown as readonly never[];

const each =
  (define: (name: string, body: () => void) => void) => (rows: readonly unknown[]) => (title: string, body: Body) => {
    for (const row of rows) define(titled(title, listed(row)), () => body(...listed(row)));
  };

export const test = Object.assign(add, {
  each: each(add),
  for: (rows: readonly unknown[]) => (title: string, body: Body) => {
    for (const row of rows) add(titled(title, listed(row)), () => body(row as never));
  },
});
export const describe = Object.assign(group, { each: each(group) });
export function afterEach(hook: () => unknown): void {
  after.push(hook);
}
