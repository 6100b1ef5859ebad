/** The generated parts of docs/cli.md: the table of commands, and the reference with each command's arguments, options and examples. */
import type { Argument, Option } from 'commander';
import type { CliCommand } from '../runtime/command.ts';

/** A command that does something, with the words that start it, such as `csr list`. */
export interface NamedCommand {
  readonly words: string;
  readonly command: CliCommand;
}

/** In the order of --help. */
export function leafCommands(program: CliCommand): readonly NamedCommand[] {
  return program.subcommands().flatMap((command) => leavesOf(command, ''));
}

function leavesOf(command: CliCommand, before: string): readonly NamedCommand[] {
  const words = `${before}${command.name()}`;
  const below = command.subcommands();
  return below.length === 0 ? [{ words, command }] : below.flatMap((each) => leavesOf(each, `${words} `));
}

const starts = { table: '<!-- commands: npm run cli-docs writes this table -->', reference: '## Reference\n' } as const;
const tableEnd = '<!-- end of the commands -->';

/** The page with its generated parts replaced. */
export function withReference(page: string, program: CliCommand): string {
  const [head, rest] = cut(page, starts.table);
  const [, afterTable] = cut(rest, tableEnd);
  const [written] = cut(afterTable, starts.reference);
  const commands = leafCommands(program);
  return `${head}${starts.table}\n\n${table(commands)}\n${tableEnd}${written}${starts.reference}\n${reference(commands)}`;
}

function cut(text: string, at: string): readonly [string, string] {
  const index = text.indexOf(at);
  if (index === -1) throw new Error(`docs/cli.md has no line ${at.trim()}`);
  return [text.slice(0, index), text.slice(index + at.length)];
}

function table(commands: readonly NamedCommand[]): string {
  const rows = commands.map(
    ({ words, command }) =>
      `| [\`${codeCell(synopsis({ words, command }))}\`](#${anchor(words)}) | ${cell(summary(command))}${seePage(command)} |\n`,
  );
  return `| command | does |\n|---|---|\n${rows.join('')}`;
}

/** As GitHub makes it of the heading. */
const anchor = (words: string): string => `countersign-${words.replaceAll(' ', '-')}`;

function synopsis({ words, command }: NamedCommand): string {
  const mandatory = command.options.filter((option) => option.mandatory).map((option) => plainFlags(option));
  return ['countersign', words, ...command.registeredArguments.map(argumentText), ...mandatory].join(' ');
}

/** Without the short form. */
const plainFlags = ({ flags }: Option): string => flags.replace(/^-\w, /, '');

function argumentText(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** The first sentence. */
function summary(command: CliCommand): string {
  const [first = ''] = oneLine(command.description()).split(/(?<=\w)[.;] |\.$/, 1);
  return first;
}

function seePage(command: CliCommand): string {
  const { documentPage } = command;
  return documentPage === undefined ? '' : ` ([more](${documentPage}))`;
}

function reference(commands: readonly NamedCommand[]): string {
  return commands.map(entry).join('\n');
}

function entry(named: NamedCommand): string {
  const { words, command } = named;
  const { documentPage } = command;
  const page = documentPage === undefined ? [] : [`More: [${documentPage.replace(/#.*/, '')}](${documentPage})`];
  const parts = [
    `### countersign ${words}`,
    sentence(oneLine(command.description())),
    `\`${synopsis(named)}\``,
    facts(command),
    ...(command.noteLines.length === 0 ? [] : [block('text', command.noteLines)]),
    ...(command.exampleLines.length === 0 ? [] : [block('sh', command.exampleLines)]),
    ...page,
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function sentence(text: string): string {
  const first = text.slice(0, 1).toUpperCase();
  return `${escapeMarkdown(`${first}${text.slice(1)}`)}${/[.:]$/.test(text) ? '' : '.'}`;
}

function facts(command: CliCommand): string {
  const rows = [
    ...command.registeredArguments.map((argument) => [argumentText(argument), argument.description, choices(argument)]),
    ...command.options
      .filter(({ hidden }) => !hidden)
      .map((option) => [option.flags, option.description, values(option)]),
  ];
  if (rows.length === 0) return '';
  const lines = rows.map(([name = '', does = '', more = '']) => `| \`${codeCell(name)}\` | ${cell(does)}${more} |\n`);
  return `| argument or option | means |\n|---|---|\n${lines.join('')}`.trimEnd();
}

function choices({ argChoices }: Pick<Option, 'argChoices'>): string {
  return argChoices === undefined ? '' : `: ${argChoices.map((choice) => `\`${choice}\``).join(', ')}`;
}

function values(option: Option): string {
  const initial: unknown = option.defaultValueDescription ?? option.defaultValue;
  const shown = typeof initial === 'string' || typeof initial === 'number' ? String(initial) : '';
  const notes = [
    ...(option.mandatory ? ['required'] : []),
    ...(shown === '' ? [] : [`default: \`${codeCell(shown)}\``]),
  ];
  return `${choices(option)}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`;
}

function block(language: string, lines: readonly string[]): string {
  return ['```' + language, ...lines, '```'].join('\n');
}

const oneLine = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ').trim();

/** Code in a cell of a table. */
const codeCell = (text: string): string => text.replaceAll('|', '\\|');

/** Text in a cell of a table. */
const cell = (text: string): string => codeCell(escapeMarkdown(oneLine(text)));

/** Outside of code, `<name>` would be HTML and not shown. */
const escapeMarkdown = (text: string): string => text.replaceAll(/[<*]/g, '\\$&');
