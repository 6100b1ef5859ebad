/**
 * Golden output of every command, as on a terminal without colour, and an error of every command.
 *
 * A new command needs an entry in a file of cases/ (any file, by the words of the command: `'csr list'`). The entry runs
 * the command in the session it is given, at least once with success and once with an error, over fakes and stand-ins that
 * are really called. `npm test -- test/unit/cli/golden -u` then writes outputs/WORDS.txt; read it before you commit it.
 * Time is that of run.ts; `session.call` names values that differ from run to run.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { leafCommands } from '../../../../cli/output/command-reference.ts';
import { countersignProgram } from '../../../../cli/program.ts';
import { processIo } from '../../../../cli/world.ts';
import { run } from '../run.ts';
import { newSession } from './session.ts';
import type { Goldens } from './session.ts';

const folder = join(import.meta.dirname, 'cases');
const modules = await Promise.all(
  readdirSync(folder).map(async (file) => (await import(join(folder, file))) as { readonly goldens: Goldens }),
);
const goldens = modules.flatMap(({ goldens: each }) => Object.entries(each));
const program = await countersignProgram(processIo(), () => undefined);
const words = leafCommands(program).map((command) => command.words);
const fileOf = (command: string): string => `${command.replaceAll(' ', '-')}.txt`;

test('every command has a golden output', () => {
  expect(goldens.map(([command]) => command).toSorted(), 'cases/ and the commands of the program').toEqual(
    words.toSorted(),
  );
});

test.each(goldens)('%s', async (command, play) => {
  const session = newSession();
  await play(session);
  const own = session.steps.filter((step) => `${step.words} `.startsWith(`${command} `));
  expect(
    own.map(({ code }) => code),
    'a run with success',
  ).toContain(0);
  const failed = own.filter(({ code, err }) => code !== 0 && err !== '');
  expect(failed.length, 'a run that ends with an error and says why').toBeGreaterThan(0);
  // A path of this machine, or the time of this run, would differ elsewhere.
  expect(session.transcript()).not.toMatch(/\/tmp\/|127\.0\.0\.1:\d/);
  await expect(session.transcript()).toMatchFileSnapshot(join('outputs', fileOf(command)));
});

test.each(words)('%s refuses an option that it does not have, and has --help with an example', async (command) => {
  const ran = await run([...command.split(' '), '--no-such-option']);
  expect([ran.code, ran.out]).toEqual([2, '']);
  expect(ran.err).toContain('--no-such-option');
  const help = await run([...command.split(' '), '--help']);
  expect([help.code, help.err]).toEqual([0, '']);
  expect(help.out).toContain(`\nExamples:\n  `);
  expect(help.out).toContain(`countersign ${command}`);
});

test('each golden file belongs to a command', () => {
  const files = readdirSync(join(import.meta.dirname, 'outputs'));
  expect(files.toSorted()).toEqual(goldens.map(([command]) => fileOf(command)).toSorted());
});

test('commands that print objects have -o json and yaml, those that list them also wide; the one exception is a document', () => {
  const formats = leafCommands(program).flatMap(({ words: path, command }) => {
    const choices = command.options.find(({ long }) => long === '--output')?.argChoices;
    return choices === undefined ? [] : [[path, choices] as const];
  });
  expect(formats.length).toBeGreaterThan(30);
  const lacking = (wanted: readonly string[], among: typeof formats) =>
    among.filter(([, choices]) => wanted.some((each) => !choices.includes(each))).map(([path]) => path);
  expect(lacking(['json', 'yaml'], formats)).toEqual(['config schema']);
  expect(
    lacking(
      ['table', 'wide'],
      formats.filter(([path]) => / list$|^locks$| find$| revoked$/.test(path)),
    ),
  ).toEqual([]);
});
