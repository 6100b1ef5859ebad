/**
 * The output of the demo: plain, aligned lines that read the same in a log. Colour is used only on a terminal without
 * NO_COLOR (https://no-color.org), and never as the only mark.
 */
export interface Terminal {
  line(text?: string): void;
  heading(text: string): void;
  /** One step of the scenario: its name, and what the user sees of it. */
  step(what: string, seen: string): void;
  check(holds: boolean, what: string): void;
}

const labelWidth = 22;

/** Conditions of a request, coloured as the checks are. */
const conditions: Readonly<Record<string, number>> = { Approved: 32, Denied: 31, Failed: 31 };

export function createTerminal(write: (text: string) => void, colour: boolean): Terminal {
  const paint = (code: number, text: string): string => (colour ? `\u001B[${code}m${text}\u001B[0m` : text);
  const line = (text = ''): void => write(`${text}\n`);
  return {
    line,
    heading: (text) => line(`\n${paint(1, text)}`),
    step: (what, seen) => {
      const label = what.padEnd(labelWidth);
      const code = conditions[what];
      line(`  ${code === undefined ? label : paint(code, label)}  ${seen}`);
    },
    check: (holds, what) => line(`  ${' '.repeat(labelWidth)}  ${holds ? paint(32, '✓') : paint(31, '✗')} ${what}`),
  };
}

export function terminalFor(
  stream: NodeJS.WriteStream,
  environment: Readonly<Record<string, string | undefined>>,
): Terminal {
  const colour = stream.isTTY && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb';
  return createTerminal((text) => stream.write(text), colour);
}
