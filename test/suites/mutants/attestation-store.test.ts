/**
 * Plants each mutant in a copy of the tree and puts the contract of the attestation store to it, in a process of its
 * own. The contract must say no to every mutant, and nothing to the tree as it is.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CasesReport } from '../../contract/attestation-cases-program.ts';
import { startMiniStack } from '../../harness/ministack.ts';
import type { Emulator } from '../../harness/emulator.ts';
import { temporaryFolder } from '../../harness/processes.ts';
import { requireTools } from '../../tools/tools.ts';
import { storeMutants } from './attestation-store-mutants.ts';
import type { StoreMutant } from './attestation-store-mutants.ts';

const root = join(import.meta.dirname, '../../..');
const needed = ['package.json', 'core', 'adapters', 'test/contract', 'test/harness/aws-tables.ts'];
const copies = 2;
const timeoutMilliseconds = 120_000;
const { skip: noMiniStack } = await requireTools('ministack');

describe.each([
  { store: 'embedded' as const, skip: false },
  { store: 'dynamodb' as const, skip: noMiniStack },
])('the contract of the attestation store: $store', ({ store, skip }) => {
  const all = storeMutants.filter((mutant) => mutant.store === store);
  describe.skipIf(skip)('is put to it', () => {
    const folder = temporaryFolder('store-mutants');
    let emulator: Emulator | undefined;
    let control: CasesReport;
    const found = new Map<StoreMutant, CasesReport | Error>();

    beforeAll(async () => {
      if (store === 'dynamodb') emulator = await startMiniStack({ auth: false });
      const place = emulator?.url ?? join(folder.path, 'data');
      mkdirSync(join(folder.path, 'data'));
      const trees = Array.from({ length: copies }, (_, index) => copyTree(join(folder.path, String(index))));
      control = await check(trees[0]!, store, place);
      const rest = all.values();
      await Promise.all(
        trees.map(async (tree) => {
          for (const mutant of rest) found.set(mutant, await outcomeOf(() => checkMutant(tree, mutant, place)));
        }),
      );
    }, 600_000);

    afterAll(async () => {
      await emulator?.stop();
      folder.remove();
    });

    test('and has nothing against the code as it is', () => {
      expect(control).toEqual({ run: expect.any(Number) as number });
      expect(control.run).toBeGreaterThanOrEqual(50);
    });

    test.for(all.map((mutant) => [`${mutant.file}: ${mutant.breaks}`, mutant] as const))('catches %s', ([, mutant]) => {
      const result = found.get(mutant)!;
      // It could be planted and ran to its end: one that cannot even be loaded would prove nothing.
      if (result instanceof Error) throw result;
      expect(result.failed, 'no case failed').toBeDefined();
      expect(result.failed?.error).not.toMatch(/ReferenceError|is not a function|ValidationException/);
    });
  });
});

/** The tree as it is now, uncommitted changes included. */
function copyTree(path: string): string {
  for (const part of needed) cpSync(join(root, part), join(path, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
  return path;
}

/** Each mutant fails by itself, and the others still get their turn. */
async function outcomeOf(work: () => Promise<CasesReport>): Promise<CasesReport | Error> {
  try {
    return await work();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function checkMutant(tree: string, mutant: StoreMutant, place: string): Promise<CasesReport> {
  const { file, find, replace, store } = mutant;
  const path = join(tree, 'adapters', store, file);
  const original = readFileSync(path, 'utf8');
  const [before, after, ...more] = original.split(find);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`adapters/${file} must have this exactly once, so that the mutant can be planted: ${find}`);
  writeFileSync(path, before + replace + after);
  try {
    return await check(tree, store, place);
  } finally {
    writeFileSync(path, original);
  }
}

async function check(tree: string, store: StoreMutant['store'], place: string): Promise<CasesReport> {
  const program = join(tree, 'test/contract/attestation-cases-program.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [program, store, place], {
    timeout: timeoutMilliseconds,
  });
  return JSON.parse(stdout) as CasesReport;
}
