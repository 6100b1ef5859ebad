/** A session at a terminal: commands with what they print, as a golden file holds it. */
import { run } from '../run.ts';
import type { Ran } from '../run.ts';

/** The words of a command, for example `csr list`, to a session with it. */
export type Goldens = Readonly<Record<string, (session: Session) => Promise<void>>>;

export interface Session {
  /**
   * Runs the command and adds it to the transcript. Words are separated by blanks, `'…'` keeps one together.
   * A name in capitals that `call` gave a value, such as KUBECONFIG, stands for that value.
   * `lines`: how many lines of standard output the transcript has, for documents with tests of their own.
   */
  readonly run: (words: string, world?: Parameters<typeof run>[1] & { readonly lines?: number }) => Promise<Ran>;
  /** As `run`, for preparation: not in the transcript. */
  readonly unrecorded: Session['run'];
  /** In the transcript the value is shown by this name: paths, ports, keys and whatever else differs from run to run. */
  readonly call: (name: string, value: string) => void;
}

export interface Step extends Ran {
  readonly words: string;
}

export interface Recorded extends Session {
  readonly steps: readonly Step[];
  transcript(): string;
}

export function newSession(): Recorded {
  const steps: Step[] = [];
  const names = new Map<string, string>();
  // The longest value first: a path before the folder in which it is.
  const byLength = () => [...names].toSorted(([, a], [, b]) => b.length - a.length);
  const shown = (text: string) => byLength().reduce((rest, [name, value]) => rest.replaceAll(value, name), text);
  const argvOf = (words: string) =>
    (words.match(/'[^']*'|\S+/g) ?? []).map((word) =>
      byLength().reduce((rest, [name, value]) => rest.replaceAll(name, value), word.replace(/^'(.*)'$/s, '$1')),
    );
  return {
    steps,
    call: (name, value) => void names.set(name, value),
    async run(words, { lines: most, ...world } = {}) {
      const ran = await run(argvOf(words), world);
      steps.push({ words, ...ran, out: most === undefined ? ran.out : beginning(ran.out, most) });
      return ran;
    },
    unrecorded: (words, world) => run(argvOf(words), world),
    transcript: () =>
      steps
        .map(
          ({ words, code, out, err }) =>
            `$ countersign ${words}\n${shown(out)}${marked(shown(err))}[exit code ${code}]\n`,
        )
        .join('\n'),
  };
}

/** Standard error, marked line by line. */
function marked(text: string): string {
  return text.replaceAll(/^(?=[^\n])/gm, '2> ');
}

function beginning(text: string, lines: number): string {
  const all = text.split('\n');
  return all.length <= lines ? text : `${all.slice(0, lines).join('\n')}\n…\n`;
}
