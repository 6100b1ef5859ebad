/** Whether the simulator would see it: each mutant, in a process of its own, is found within so many seeds. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { mutants } from '../../sim/mutants.ts';

const most = 2_000;
const program = join(import.meta.dirname, '../../sim/main.ts');

function run(...args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve, reject) => {
    const options = { timeout: 290_000, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
      // Killed, or it never began.
      if (error !== null && typeof error.code !== 'number') reject(new Error('it was killed', { cause: error }));
      else resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
    });
  });
}

describe('mutants of what is simulated', () => {
  test('are twelve, of the ledger, of first use and of the relay', () => {
    expect(mutants).toHaveLength(12);
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(12);
    expect(new Set(mutants.map((mutant) => mutant.of))).toEqual(new Set(['ledger', 'first use', 'relay']));
  });

  test.each(mutants.map(({ of, name }) => [of, name] as const))(
    '%s: %s',
    async (_, name) => {
      const { code, output } = await run('--mutant', name, '--seeds', String(most));
      expect(code, output.slice(-2_000)).toBe(1);
      // It is an invariant that says so, and not the mutant that cannot run.
      expect(output).toMatch(/^seed \d+ breaks: /m);
      expect(output).not.toMatch(/TypeError|ReferenceError|SyntaxError/);
    },
    300_000,
  );
});

test('a seed that breaks something breaks it again, and the story says how', async () => {
  const mutant = ['--mutant', 'a name is taken from a machine that runs'];
  const { output } = await run(...mutant, '--seeds', String(most));
  const seed = /^seed (\d+) breaks: /m.exec(output)?.[1] ?? '';
  const replayed = await run(...mutant, '--seed', seed, '--story');
  expect(replayed.code).toBe(1);
  expect(replayed.output).toBe(output);
  expect(output).toMatch(/BROKEN: null#\w+ takes node-\w from null#\w+, which runs/);
});
