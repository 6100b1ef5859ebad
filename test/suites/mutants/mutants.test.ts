/**
 * Plants each mutant in a copy of the tree and puts the recorded requests to it, in a process of its own. The check
 * must say no to every mutant, and nothing to the tree as it is.
 */
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Replay } from '../../corpus/replay.ts';
import { temporaryFolder } from '../../harness/processes.ts';
import { mutants } from './mutants.ts';
import type { Mutant } from './mutants.ts';

const root = join(import.meta.dirname, '../../..');
const needed = ['package.json', 'core', 'adapters', 'test/corpus', 'test/harness'];
/** As many as the machine surely has processors for: each keeps one busy. */
const copies = 2;
const timeoutMilliseconds = 60_000;

const all: readonly Mutant[] = [...mutants.profiles, ...mutants.certificate];

describe('the recorded answers', () => {
  const folder = temporaryFolder('mutants');
  let control: Replay;
  const found = new Map<Mutant, Replay | Error>();

  beforeAll(async () => {
    const trees = Array.from({ length: copies }, (_, index) => copyTree(join(folder.path, String(index))));
    control = await check(trees[0]!);
    const rest = all.values();
    await Promise.all(
      trees.map(async (tree) => {
        for (const mutant of rest) found.set(mutant, await outcomeOf(() => checkMutant(tree, mutant)));
      }),
    );
  }, 300_000);

  afterAll(() => folder.remove());

  test('have nothing against the code as it is', () => {
    expect(control.problems).toEqual([]);
    expect(control.asked).toBeGreaterThanOrEqual(250);
  });

  test('are put to at least ten mutants of either file', () => {
    expect(mutants.profiles.length).toBeGreaterThanOrEqual(10);
    expect(mutants.certificate.length).toBeGreaterThanOrEqual(10);
  });

  test.for(all.map((mutant) => [`${mutant.file}: ${mutant.breaks}`, mutant] as const))('catch %s', ([, mutant]) => {
    const result = found.get(mutant)!;
    // It could be planted and ran to its end: one that cannot even be loaded would prove nothing.
    if (result instanceof Error) throw result;
    expect(result.problems.length).toBeGreaterThan(0);
    expect(result.problems.join()).not.toMatch(/TypeError|ReferenceError/);
  });
});

/** The tree as it is now, uncommitted changes included. */
function copyTree(path: string): string {
  for (const part of needed) cpSync(join(root, part), join(path, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
  return path;
}

/** Each mutant fails by itself, and the others still get their turn. */
async function outcomeOf(work: () => Promise<Replay>): Promise<Replay | Error> {
  try {
    return await work();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function checkMutant(tree: string, { file, find, replace }: Mutant): Promise<Replay> {
  const path = join(tree, 'core', file);
  const original = readFileSync(path, 'utf8');
  const [before, after, ...more] = original.split(find);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`core/${file} must have this exactly once, so that the mutant can be planted: ${find}`);
  writeFileSync(path, before + replace + after);
  try {
    return await check(tree);
  } finally {
    writeFileSync(path, original);
  }
}

async function check(tree: string): Promise<Replay> {
  const program = join(tree, 'test/corpus/replay.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [program, '--stop-at-first'], {
    timeout: timeoutMilliseconds,
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(stdout) as Replay;
}
