import { Command, InvalidArgumentError, Option } from 'commander';
import { exitCodes } from './exit.ts';
import type { ExitCode } from './exit.ts';

/** A command of this program. Its subcommands inherit its settings and report to the same `finish`. */
export class CliCommand extends Command {
  readonly #finish: (code: ExitCode) => void;
  readonly #notes: string[] = [];
  readonly #examples: string[] = [];
  #page: string | undefined;

  constructor(name: string | undefined, finish: (code: ExitCode) => void) {
    super(name);
    this.#finish = finish;
  }

  /**
   * A usage error in the form of all other messages. A mistyped option is named before the mandatory option that is
   * missing because of it.
   */
  override error(message: string, options?: Parameters<Command['error']>[1]): never {
    const mistyped = this.args.find((word) => word.startsWith('--') && word !== '--');
    if (options?.code === 'commander.missingMandatoryOptionValue' && mistyped !== undefined)
      (this as unknown as { unknownOption(flag: string): never }).unknownOption(mistyped);
    const [what = '', similar] = message.replace(/^error: /, '').split('\n');
    const meant = similar === undefined ? '' : `${similar.replace(/^\((.*)\)$/, '$1').replace(/^D/, 'd')} `;
    const help = `${this.words()} --help shows arguments, options and examples`;
    return super.error(`countersign: ${what}\ncountersign: ${meant}${help}`, options);
  }

  /** As they are typed: `countersign csr list`. */
  words(): string {
    const { parent } = this;
    return parent instanceof CliCommand ? `${parent.words()} ${this.name()}` : this.name();
  }

  /** Those that --help lists, without `help`. */
  subcommands(): readonly CliCommand[] {
    const listed = this.createHelp().visibleCommands(this);
    return listed.filter((each) => each instanceof CliCommand && this.commands.includes(each)) as CliCommand[];
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name, this.#finish);
  }

  /** `-o`: the first format is the default. */
  formats(...formats: readonly [string, ...string[]]): this {
    return this.addOption(
      new Option('-o, --output <format>', 'how to print the result').choices(formats).default(formats[0]),
    );
  }

  /** An option whose value is a list with commas. `initial`: the default, in the same form. */
  listOption(flags: string, description: string, initial: string): this {
    return this.addOption(new Option(flags, description).argParser(commaList).default(commaList(initial), initial));
  }

  get noteLines(): readonly string[] {
    return this.#notes;
  }

  get exampleLines(): readonly string[] {
    return this.#examples;
  }

  /** Relative to docs/; undefined if docs/cli.md says everything. */
  get documentPage(): string | undefined {
    return this.#page;
  }

  /** The page of docs/ about this command, for its entry in docs/cli.md. */
  page(path: string): this {
    this.#page = path;
    return this;
  }

  /** For --help, after the options. */
  notes(...lines: readonly string[]): this {
    this.#notes.push(...lines);
    return this.addHelpText('after', ['', ...lines].join('\n'));
  }

  /** For --help, at the end. */
  examples(...lines: readonly string[]): this {
    this.#examples.push(...lines);
    return this.addHelpText('after', ['\nExamples:', ...lines].join('\n  '));
  }

  /** `work` gets the arguments and the flags. Without a result the exit code is 0. */
  runs(work: (...given: never[]) => Promise<ExitCode | undefined | void>): this {
    return this.action(async (...given) => this.#finish((await work(...(given as never[]))) ?? exitCodes.ok));
  }
}

/** `a, b,c` → three words. */
export function commaList(text: string): string[] {
  const words = text.split(',').map((word) => word.trim());
  if (words.includes('')) throw new InvalidArgumentError('A list looks like: first,second');
  return words;
}
