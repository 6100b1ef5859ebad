/** How a command ends; scripts branch on these numbers (docs/cli.md). */
export const exitCodes = {
  ok: 0,
  /** The answer is no. */
  refused: 1,
  /** The command line is wrong. */
  usage: 2,
  /** countersign.yaml, or something else that was configured, is wrong. */
  configuration: 3,
  notFound: 4,
  /** Something did not answer; the same command may work later. */
  temporary: 5,
  /** It exists already, or others change it meanwhile; nothing is overwritten. */
  conflict: 6,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends a command with a sentence that says what is wrong and, where there is one, what to do next. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly code: ExitCode;
  readonly hint: string | undefined;

  constructor(code: ExitCode, message: string, hint?: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}
