/** What may stand at the end of a command line: commands, options, their values. It calls nothing outside the program. */
import type { Argument, Option } from 'commander';
import type { CliCommand } from '../runtime/command.ts';

export interface Candidate {
  readonly text: string;
  readonly description: string;
}

/** `files`: the shell completes names of files. */
export type Candidates = { readonly kind: 'words'; readonly words: readonly Candidate[] } | { readonly kind: 'files' };

/** `typed`: the words after the program's name. The last one is being typed, and may be empty. */
export function candidates(program: CliCommand, typed: readonly string[]): Candidates {
  const { words, bare } = joined(typed);
  const last = words.at(-1) ?? '';
  const { command, operands, option } = readLine(program, words.slice(0, -1));
  if (option !== undefined) return matching(valuesOf(option), last);
  const [, flag = '', value] = /^(--[^=]+)=(.*)$/s.exec(last) ?? [];
  if (value !== undefined) {
    const named = findOption(command, flag);
    if (named === undefined) return none;
    // bash replaces what is behind the `=` only, the other shells the whole word.
    return matching(valuesOf(named), value, bare ? '' : `${flag}=`);
  }
  if (last.startsWith('-')) return matching({ kind: 'words', words: optionsOf(command) }, last);
  const commands = command
    .subcommands()
    .map((each) => ({ text: each.name(), description: firstLine(each.description()) }));
  if (commands.length > 0) return matching({ kind: 'words', words: commands }, last);
  const taken = command.registeredArguments;
  const argument = taken[operands] ?? (taken.at(-1)?.variadic === true ? taken.at(-1) : undefined);
  return argument === undefined ? none : matching(valuesOf(argument), last);
}

const none: Candidates = { kind: 'words', words: [] };

/** bash makes three words of `--output=json`. `bare`: the last word came in such parts. */
function joined(typed: readonly string[]): { readonly words: readonly string[]; readonly bare: boolean } {
  const words: string[] = [];
  let bare = false;
  for (const [index, word] of typed.entries()) {
    const before = words.at(-1) ?? '';
    const continues = (word === '=' || typed[index - 1] === '=') && before.startsWith('--');
    if (continues) words.splice(-1, 1, before + word);
    else words.push(word);
    bare = continues;
  }
  return { words, bare };
}

/** The command that the words select, how many operands it has already, and the option whose value comes next. */
function readLine(
  program: CliCommand,
  words: readonly string[],
): { readonly command: CliCommand; readonly operands: number; readonly option?: Option } {
  let command = program;
  let operands = 0;
  let option: Option | undefined;
  for (const word of words) {
    if (option !== undefined) option = undefined;
    else if (word.startsWith('-')) {
      const named = word.includes('=') ? undefined : findOption(command, word);
      option = named?.required === true ? named : undefined;
    } else {
      const sub = command.subcommands().find((each) => each.name() === word);
      if (sub === undefined) operands += 1;
      else command = sub;
    }
  }
  return { command, operands, ...(option === undefined ? {} : { option }) };
}

function findOption(command: CliCommand, word: string): Option | undefined {
  return command.options.find(({ long, short }) => word === long || word === short);
}

function optionsOf(command: CliCommand): readonly Candidate[] {
  const options = command.createHelp().visibleOptions(command);
  return options.flatMap(({ long, description }) =>
    long === undefined || long === null ? [] : [{ text: long, description: firstLine(description) }],
  );
}

/** The values that are known; files where the name of the value says so. */
function valuesOf(taker: Option | Argument): Candidates {
  const { argChoices, description } = taker;
  if (argChoices !== undefined)
    return { kind: 'words', words: argChoices.map((text) => ({ text, description: firstLine(description) })) };
  const name = 'flags' in taker ? taker.flags : taker.name();
  return /\b(file|dir|folder|old|new|request)\b/.test(name) ? { kind: 'files' } : none;
}

function matching(all: Candidates, beginning: string, before = ''): Candidates {
  if (all.kind === 'files') return all;
  const words = all.words.filter(({ text }) => text.startsWith(beginning));
  return { kind: 'words', words: words.map(({ text, description }) => ({ text: `${before}${text}`, description })) };
}

const firstLine = (text: string): string => text.split(/[\n\t]/, 1)[0] ?? '';
