/** What completes a line. The shells themselves are in test/suites/process/completion. */
import { describe, expect, test } from 'vitest';
import { leafCommands } from '../../../../cli/output/command-reference.ts';
import { countersignProgram } from '../../../../cli/program.ts';
import { candidates } from '../../../../cli/shell/candidates.ts';
import { processIo } from '../../../../cli/world.ts';
import { run } from '../run.ts';

const program = await countersignProgram(processIo(), () => undefined);
const completed = (...typed: readonly string[]) => {
  const found = candidates(program, typed);
  return found.kind === 'files' ? 'files' : found.words.map(({ text }) => text);
};

describe('each command', () => {
  test.each(leafCommands(program).map(({ words, command }) => [words, command] as const))('%s', (words, command) => {
    const path = words.split(' ');
    expect(completed(...path)).toContain(path.at(-1));
    const options = completed(...path, '-');
    expect(options).toContain('--help');
    for (const { long, argChoices, required } of command.options) {
      expect(options).toContain(long);
      if (argChoices !== undefined && required) expect(completed(...path, long ?? '', '')).toEqual(argChoices);
    }
  });
});

test.each<[readonly string[], unknown]>([
  [['cs'], ['csr']],
  [['nonsense', ''], expect.arrayContaining(['csr', 'version'])],
  [
    ['csr', 'list', '--state', ''],
    ['pending', 'approved', 'denied', 'failed', 'issued'],
  ],
  [['csr', 'list', '--state=i'], ['--state=issued']],
  [['csr', 'list', '--state', '=', 'i'], ['issued']],
  [
    ['csr', 'list', '--state', '='],
    ['pending', 'approved', 'denied', 'failed', 'issued'],
  ],
  [['csr', 'list', '--no-such=i'], []],
  [['csr', 'list', '-o', 'w'], ['wide']],
  [['csr', '--context', 'x', 'li'], ['list']],
  // The value of an option is no operand, whatever it is called.
  [['csr', 'list', '--requester', 'show', '--sta'], ['--state']],
  [['csr', 'list', '--kubeconfig', ''], 'files'],
  [['csr', 'explain', ''], 'files'],
  [['csr', 'explain', 'a', ''], []],
  [['csr', 'show', ''], []],
  [['config', 'diff', 'a', ''], 'files'],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
  [['help'], []],
  [['__c'], []],
  [[], expect.arrayContaining(['csr'])],
])('%j', (typed, expected) => {
  expect(completed(...typed)).toEqual(expected);
});

test('the answer to a script: candidates with their description, and whether files are meant', async () => {
  expect(await run(['__complete', '--', 'csr', 'list', '--sta'])).toEqual({
    code: 0,
    out: '--state\tonly these\n:4\n',
    err: '',
  });
  expect((await run(['__complete', '--', 'csr', 'explain', ''])).out).toBe(':0\n');
  expect((await run(['__complete', '--', '--help'])).out).toBe('--help\tdisplay help for command\n:4\n');
  expect((await run(['--help'])).out).not.toContain('__complete');
});
