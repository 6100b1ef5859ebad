/**
 * Plants mutants as Node loads the files: no file is written.
 *
 * An expression is planted behind a switch: `condition` becomes `(isOn(7) ? false : condition)`. The modules are loaded once
 * with all such mutants in them. Any other text is planted in a copy of the modules: `x.ts?mutant=7`, with everything of the
 * repository that it imports.
 */
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { located, root } from './mutant.ts';
import type { Change, Mutant } from './mutant.ts';

const rootUrl = `${pathToFileURL(root).href}/`;
const runnerUrl = pathToFileURL(join(import.meta.dirname, 'case-runner.ts')).href;
const marker = '?mutant=';

/** From now on this process loads the file with the mistake in it. */
export function plant(change: Change): void {
  const mutant = located(change);
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      return url === rootUrl + mutant.file ? { ...loaded, source: changed(textOf(loaded.source), mutant) } : loaded;
    },
  });
}

/** The address of a file in the copy of the modules that has this mutant, or in the modules with switches. */
export function urlOf(file: string, number?: number): string {
  return `${rootUrl}${file}${number === undefined ? '' : `${marker}${number}`}`;
}

/**
 * Plants all of them: those that are switchable behind `isOn`, and each one in a copy of its own. Test files get
 * case-runner.ts instead of vitest.
 */
export function plantAll(mutants: readonly Mutant[], isOn: (number: number) => boolean): void {
  (globalThis as unknown as { isOn: typeof isOn }).isOn = isOn;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === 'vitest' && context.parentURL !== runnerUrl) return { url: runnerUrl, shortCircuit: true };
      const resolved = next(specifier, context);
      const number = context.parentURL?.split(marker)[1];
      const isCopied = number !== undefined && isOurs(resolved.url);
      return isCopied ? { ...resolved, url: `${resolved.url}${marker}${number}` } : resolved;
    },
    load(url, context, next) {
      const [plain = '', number] = url.split(marker);
      const loaded = next(plain, context);
      if (!isOurs(plain)) return loaded;
      const file = plain.slice(rootUrl.length);
      if (number !== undefined) {
        const mutant = mutants[Number(number)];
        return mutant?.file === file ? { ...loaded, source: changed(textOf(loaded.source), mutant) } : loaded;
      }
      const own = [...mutants.entries()].filter(([, mutant]) => mutant.isExpression && mutant.file === file);
      return own.length === 0 ? loaded : { ...loaded, source: switched(textOf(loaded.source), own) };
    },
  });
}

function isOurs(url: string): boolean {
  return url.startsWith(rootUrl) && !url.startsWith(`${rootUrl}node_modules/`);
}

/** Node gives the source of a file as bytes. */
function textOf(source: unknown): string {
  return Buffer.from(source as Uint8Array).toString();
}

function changed(text: string, { start, end, instead }: Mutant): string {
  return text.slice(0, start) + instead + text.slice(end);
}

type Numbered = readonly [number: number, mutant: Mutant];

/** A mutant may stand inside another one. */
function switched(text: string, own: readonly Numbered[], from = 0, to = text.length): string {
  const [first, ...rest] = own.toSorted(([, a], [, b]) => a.start - b.start || b.end - a.end);
  if (first === undefined) return text.slice(from, to);
  const [number, { start, end, instead }] = first;
  const inside = rest.filter(([, one]) => one.end <= end);
  const behind = rest.filter(([, one]) => one.start >= end);
  if (inside.length + behind.length < rest.length) throw new Error(`mutants overlap: ${text.slice(start, end)}`);
  const replaced = `(isOn(${number}) ? ${instead} : ${switched(text, inside, start, end)})`;
  return text.slice(from, start) + replaced + switched(text, behind, end, to);
}
