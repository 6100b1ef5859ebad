import { existsSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { toolNames, type ToolName } from './tools.ts';

const root = resolve(import.meta.dirname, '../..');
const DECLARATION = /\brequire(?:Tools|Kubelet)\(([^()]*)\)/g;
const IMPORT = /^(?:import|export)\s(?!type\b)[^;]*?from '(\.[^']+\.ts)'|\bimport\('(\.[^']+\.ts)'\)/gm;

/**
 * The tools that test files declare with `requireTools`, themselves or in the test code that they import. A second list
 * would be wrong after the next change. Paths are relative to the root of the repository.
 */
export function toolsNeededBy(testFiles: readonly string[]): ToolName[] {
  const needed = new Set<string>();
  const seen = new Set<string>();
  const queue = testFiles.map((file) => resolve(root, file));
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file) || !isTestCode(file) || !existsSync(file)) continue;
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, names = ''] of text.matchAll(DECLARATION))
      for (const [, name = ''] of names.matchAll(/'([^']+)'/g)) needed.add(name);
    for (const [, plain, dynamic] of text.matchAll(IMPORT)) queue.push(join(file, '..', (plain ?? dynamic)!));
  }
  return toolNames.filter((name) => needed.has(name));
}

/** Product code asks for no tool. test/tools asks for none by name. */
function isTestCode(file: string): boolean {
  const path = relative(root, file);
  return /^(?:test|bench)\//.test(path) && !path.startsWith('test/tools/');
}
