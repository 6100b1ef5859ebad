import { Command, InvalidArgumentError, Option } from 'commander';
import { exitCodes } from './exit.ts';
import type { ExitCode } from './exit.ts';

/** A command of this program. Its subcommands inherit its settings and report to the same `finish`. */
export class CliCommand extends Command {
  readonly #finish: (code: ExitCode) => void;

  constructor(name: string | undefined, finish: (code: ExitCode) => void) {
    super(name);
    this.#finish = finish;
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

  /** For --help, after the options. */
  notes(...lines: readonly string[]): this {
    return this.addHelpText('after', ['', ...lines].join('\n'));
  }

  /** For --help, at the end. */
  examples(...lines: readonly string[]): this {
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
