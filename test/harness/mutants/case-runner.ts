/**
 * Stands in for vitest's `test`, so that the tests of a file can run many times in one process, one at a time, each time
 * with another mutant. `expect` is vitest's own.
 */
import { format } from 'node:util';

export { expect } from 'vitest';

export interface Case {
  readonly name: string;
  /** Rejects when the case fails. A value that it gives must be the same with every mutant. */
  readonly run: () => unknown;
  /** Runs after the case, also after one that hangs. */
  readonly after?: Hook;
}

type Body = (...args: never[]) => unknown;

type Hook = () => unknown;
/** Of a file or of a `describe`, for which the hooks around it count too. */
interface Hooks {
  readonly around: Hooks | undefined;
  readonly before: Hook[];
  readonly after: Hook[];
}

const cases: Case[] = [];
/** `beforeAll`: runs once, before the first case of the file. */
let once: Hook[] = [];
let hooks: Hooks = { around: undefined, before: [], after: [] };
let file = '';
let path: readonly string[] = [];

/** The cases of one file, which `load` imports. */
export async function casesOf(name: string, load: () => Promise<unknown>): Promise<readonly Case[]> {
  file = name;
  once = [];
  hooks = { around: undefined, before: [], after: [] };
  const before = cases.length;
  await load();
  for (const hook of once) await hook();
  return cases.slice(before);
}

function levelsOf(own: Hooks): readonly Hooks[] {
  return own.around === undefined ? [own] : [...levelsOf(own.around), own];
}

function add(name: string, body: Hook): void {
  const full = [...path, name].join(' › ');
  const own = hooks;
  cases.push({
    name: `${file}: ${full}`,
    async run() {
      for (const { before } of levelsOf(own)) for (const hook of before) await hook();
      // What a test returns is of no interest.
      await body();
    },
    async after() {
      for (const { after } of levelsOf(own).toReversed()) for (const hook of after) await hook();
    },
  });
}

function group(name: string, body: () => void): void {
  const outer = { path, hooks };
  path = [...path, name];
  hooks = { around: hooks, before: [], after: [] };
  body();
  ({ path, hooks } = outer);
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
export function beforeAll(hook: Hook): void {
  once.push(hook);
}
export function beforeEach(hook: Hook): void {
  hooks.before.push(hook);
}
export function afterEach(hook: Hook): void {
  hooks.after.push(hook);
}
/** What the process holds ends with it. */
export function afterAll(_hook: Hook): void {}
