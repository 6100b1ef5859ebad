/** The command lines of both simulators: what is wrong is said in a sentence and ends with 2, before anything is simulated. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { optionsOf } from '../../sim/main.ts';

function start(program: string, argv: readonly string[]): Promise<{ code: unknown; out: string; err: string }> {
  const file = join(import.meta.dirname, '../../sim', program);
  return new Promise((done) => {
    const child = execFile(process.execPath, [file, ...argv], (_, out, err) =>
      done({ code: child.exitCode, out, err }),
    );
  });
}

describe('npm run sim', () => {
  test('--help tells options, examples and exit codes', async () => {
    const { code, out, err } = await start('main.ts', ['--help']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(
      /^Simulates [^]*\n {2}--trace [^]*\nExamples:\n[^]*\nExit codes: 0 clean, 1 a seed breaks, 2 usage\.\n$/,
    );
  });

  test.each([
    [['--sed', '7'], "Unknown option '--sed'"],
    [['7'], "Unexpected argument '7'"],
    [['--seed', '-3'], "Option '--seed' argument is ambiguous"],
    [['--seed=-3'], '--seed is a number'],
    [['--seeds', '0'], '--seeds is a number from 1 on'],
    [['--seconds', '0'], '--seconds is a number above 0'],
    [['--jobs', '1.5'], '--jobs is a number from 1 on'],
    [['--trace'], '--trace is for one seed: --seed S'],
    [['--mutant', 'x'], 'there is no such mutant: \n  '],
  ])('%j is not simulated', (argv, said) => {
    expect(optionsOf(argv)).toEqual({ wrong: expect.stringContaining(said) as string });
  });

  test('what is wrong ends it with 2', async () => {
    const { code, out, err } = await start('main.ts', ['--trace']);
    expect([code, out]).toEqual([2, '']);
    expect(err).toBe('sim: --trace is for one seed: --seed S\nsim: --help shows all options\n');
  });

  test('one seed is one, and without any there are many', () => {
    expect(optionsOf(['--seed', '7', '--trace'])).toMatchObject({ first: 7, count: 1, trace: true });
    expect(optionsOf([])).toMatchObject({ first: 1, count: 200, trace: false });
  });
});

describe('npm run sim:scale', () => {
  test('--help tells options, examples and exit codes', async () => {
    const { code, out, err } = await start('scale/main.ts', ['--help']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/\nExamples:\n[^]*\nExit codes: 0, 2 usage\.\n$/);
  });

  test.each([
    [['one-1k', 'nope', '--list'], 'no scenario "nope"; --list shows them'],
    [['--list', '-o', 'yaml'], '-o is table or json'],
  ])('%j', async (argv, said) => {
    expect(await start('scale/main.ts', argv)).toEqual({ code: 2, out: '', err: `sim:scale: ${said}\n` });
  });
});
