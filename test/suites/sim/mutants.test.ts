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
  test('are at least twelve, of the ledger, of first use, of audit mode, of the relay and of profiles', () => {
    expect(mutants.length).toBeGreaterThanOrEqual(12);
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
    expect(new Set(mutants.map((mutant) => mutant.of))).toEqual(
      new Set(['ledger', 'first use', 'audit', 'relay', 'profile']),
    );
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
  // To the byte, though its keys are others.
  expect((await run(...mutant, '--seed', seed)).output).toBe(output);
  const whole = await run(...mutant, '--seed', seed, '--story');
  expect(whole.code).toBe(1);
  expect((await run(...mutant, '--seed', seed, '--story')).output).toBe(whole.output);

  expect(output).toMatch(/BROKEN: null#\w+ takes node-\w from null#\w+, which runs/);
  // What concerns nobody in it is left out, and every line that is there stands in the whole story.
  const [told, all] = [output.split('\n'), new Set(whole.output.split('\n'))];
  expect(told.filter((line) => !all.has(line))).toEqual([]);
  expect(told.length).toBeLessThan(all.size);
  const [, taker, holder] = /(null#\w+) takes node-\w from (null#\w+)/.exec(output) ?? [];
  for (const machine of [taker, holder])
    expect(output).toMatch(new RegExp(`csr-\\d+/\\w+ is created: ${machine?.slice('null#'.length) ?? ''} joins as`));
}, 300_000);
