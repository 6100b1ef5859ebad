/** The simulator finds each mistake within so many seeds: it names an invariant that is broken. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { allMutants, mutants } from '../../../sim/mutants.ts';

const most = 2_000;
/** Each keeps a processor busy. */
const processes = 2;
const program = join(import.meta.dirname, '../../../sim/main.ts');
const milliseconds = 580_000;

interface Run {
  readonly code: number;
  readonly output: string;
}

function run(mutant: string, ...args: readonly string[]): Promise<Run> {
  return new Promise((resolve, reject) => {
    const options = { timeout: milliseconds, maxBuffer: 64 * 1024 * 1024 };
    const argv = [program, '--jobs', '1', '--mutant', mutant, ...args];
    execFile(process.execPath, argv, options, (error, stdout, stderr) => {
      // It was killed, or it did not start.
      if (error !== null && typeof error.code !== 'number') reject(new Error('it was killed', { cause: error }));
      else resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
    });
  });
}

describe('mutants of what is simulated', () => {
  const found = new Map<string, Run | Error>();

  beforeAll(async () => {
    const rest = allMutants.values();
    const work = async (): Promise<void> => {
      for (const { breaks } of rest)
        found.set(breaks, await run(breaks, '--seeds', String(most)).catch((error: unknown) => error as Error));
    };
    await Promise.all(Array.from({ length: processes }, work));
  }, 1_800_000);

  test('are at least 51, of each subject', () => {
    expect(allMutants.length).toBeGreaterThanOrEqual(51);
    expect(found.size).toBe(allMutants.length);
    for (const changes of Object.values(mutants)) expect(changes.length).toBeGreaterThanOrEqual(2);
  });

  test.each(allMutants)('$breaks', ({ breaks }) => {
    const result = found.get(breaks)!;
    if (result instanceof Error) throw result;
    expect(result.code, result.output.slice(-2_000)).toBe(1);
    // An invariant is broken. A mutant that cannot run proves nothing.
    expect(result.output).toMatch(/^seed \d+ breaks: /m);
    expect(result.output).not.toMatch(/TypeError|ReferenceError|SyntaxError/);
  });

  test('a seed that breaks something breaks it again, and the trace shows how', async () => {
    const mutant = 'a name is taken from a machine that runs';
    const { output } = found.get(mutant) as Run;
    const seed = /^seed (\d+) breaks: /m.exec(output)?.[1] ?? '';
    // To the byte, though its keys are others.
    expect((await run(mutant, '--seed', seed)).output).toBe(output);
    const whole = await run(mutant, '--seed', seed, '--trace');
    expect(whole.code).toBe(1);
    expect((await run(mutant, '--seed', seed, '--trace')).output).toBe(whole.output);

    expect(output).toMatch(/BROKEN: null#\w+ takes node-\w from null#\w+, which runs/);
    // The short trace leaves out what concerns no machine in it, and adds no line to the whole trace.
    const [short, all] = [output.split('\n'), new Set(whole.output.split('\n'))];
    expect(short.filter((line) => !all.has(line))).toEqual([]);
    expect(short.length).toBeLessThan(all.size);
    const [, taker, holder] = /(null#\w+) takes node-\w from (null#\w+)/.exec(output) ?? [];
    for (const machine of [taker, holder])
      expect(output).toMatch(new RegExp(`csr-\\d+/\\w+ is created: ${machine?.slice('null#'.length) ?? ''} joins as`));
  }, 300_000);
});
