/** Exit codes of commands, for scripts (docs/cli.md). */
export const exitCodes = {
  ok: 0,
  /** The command worked, and its answer is "no": a refusal, a failed check. */
  refused: 1,
  /** The command line is wrong. */
  usage: 2,
  /** countersign.yaml, a login or another setting is wrong. */
  configuration: 3,
  notFound: 4,
  /** A service did not answer; the same command may work later. */
  temporary: 5,
  /** The object exists already or was changed at the same time; nothing was overwritten. */
  conflict: 6,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends a command. `message`: what is wrong; `hint`: what to do next, if there is something to do. */
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
