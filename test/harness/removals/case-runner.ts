/**
 * Stands in for vitest's `test`, so that a file's cases can be run again and again in one process, one at a time, each
 * while another check is away. What is expected is vitest's own.
 */
import { format } from 'node:util';

export { expect } from 'vitest';

export interface Case {
  readonly file: string;
  readonly name: string;
  /** Rejects when the case fails, or is not through after so many milliseconds. */
  readonly run: (limit: number) => Promise<void>;
}

type Body = (...args: never[]) => unknown;

type Hook = () => unknown;
/** Of a file or of a `describe`, which sees those around it too. */
interface Hooks {
  readonly around: Hooks | undefined;
  readonly before: Hook[];
  readonly after: Hook[];
}

const cases: Case[] = [];
/** `beforeAll`: run once, before the first case of the file. */
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

async function runWithin(own: Hooks, body: Hook, limit: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('it hangs')), limit);
    });
    await Promise.race([runBetween(own, body), late]);
  } finally {
    clearTimeout(timer);
    for (let level: Hooks | undefined = own; level !== undefined; level = level.around)
      for (const hook of level.after) await hook();
  }
}

async function runBetween(own: Hooks, body: Hook): Promise<void> {
  const levels: Hooks[] = [];
  for (let level: Hooks | undefined = own; level !== undefined; level = level.around) levels.unshift(level);
  for (const { before } of levels) for (const hook of before) await hook();
  await body();
}

function add(name: string, body: Hook): void {
  const full = [...path, name].join(' › ');
  const own = hooks;
  cases.push({ file, name: full, run: (limit) => runWithin(own, body, limit) });
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
