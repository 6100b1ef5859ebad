/** The command line as a function from arguments and Io to an exit code. */
import { CommanderError } from 'commander';
import { escapeHidden } from '../core/outcome/printable-text.ts';
import { coloured } from './output/colours.ts';
import { countersignProgram } from './program.ts';
import { CommandFailure, exitCodes } from './runtime/exit.ts';
import type { ExitCode } from './runtime/exit.ts';
import type { Io } from './runtime/io.ts';

export async function main(argv: readonly string[], unescaped: Io): Promise<ExitCode> {
  // Output may hold text from cluster objects, files and servers. No control character may reach the terminal, even if a command does not escape it.
  const io: Io = {
    ...unescaped,
    out: (text) => unescaped.out(unescaped.colours ? coloured(escapeHidden(text)) : escapeHidden(text)),
    err: (text) => unescaped.err(escapeHidden(text)),
    outFields: (fields) => unescaped.outFields(fields.map((field) => escapeHidden(field))),
  };
  let code: ExitCode = exitCodes.ok;
  try {
    const finish = (given: ExitCode): void => void (code = given);
    const program = await countersignProgram(io, finish, argv);
    await program.parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommandFailure) {
      io.err(`countersign: ${error.message}\n${error.hint === undefined ? '' : `countersign: ${error.hint}\n`}`);
      return error.code;
    }
    // --help is not an error; commander has printed every other message itself.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    // A bug; exit code 1 would mean a refusal.
    io.err(`countersign: unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return exitCodes.temporary;
  }
}
