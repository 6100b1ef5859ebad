/** The command line as a function from arguments and Io to an exit code. */
import { Command, CommanderError } from 'commander';
import { caCommand } from './commands/ca.ts';
import { configCommand } from './commands/config.ts';
import { csrCommand } from './commands/csr.ts';
import { withoutHidden } from '../core/outcome/printable-text.ts';
import { version } from '../core/version.ts';
import { CommandFailure, exitCodes } from './runtime/exit.ts';
import type { ExitCode } from './runtime/exit.ts';
import { clusterCommand } from './commands/harden.ts';
import type { Io } from './runtime/io.ts';
import { lockCommand, locksCommand, unlockCommand } from './commands/lock.ts';
import { machinesCommand } from './commands/machines.ts';
import { reportCommand } from './commands/report.ts';
import { tofuCommand } from './commands/tofu.ts';
import { tokenCommand } from './commands/token.ts';

const help = `
Examples:
  countersign config validate countersign.yaml
  kubectl get csr node-csr-1 -o json | countersign csr explain -
  countersign token create --config countersign.yaml --cluster prod

Exit codes: 0 ok, 1 refused, 2 usage, 3 configuration, 4 not found, 5 temporary, 6 conflict.
More: docs/cli.md`;

export async function main(argv: readonly string[], world: Io): Promise<ExitCode> {
  // Output may hold text from cluster objects, files and servers. No control character of it may reach the terminal, whatever a command forgot to escape.
  const io: Io = {
    ...world,
    out: (text) => world.out(withoutHidden(text)),
    err: (text) => world.err(withoutHidden(text)),
  };
  let code: ExitCode = exitCodes.ok;
  const finish = (given: ExitCode): void => {
    code = given;
  };
  const program = new Command('countersign')
    .description('Signs Kubernetes certificate requests with a CA key that no cluster holds.')
    .version(version, '-V, --version', 'print the version')
    .addHelpText('after', help)
    .addCommand(caCommand(io))
    .addCommand(csrCommand(io, finish))
    .addCommand(configCommand(io, finish))
    .addCommand(lockCommand(io))
    .addCommand(unlockCommand(io))
    .addCommand(locksCommand(io))
    .addCommand(tofuCommand(io, finish))
    .addCommand(machinesCommand(io))
    .addCommand(reportCommand(io, finish))
    .addCommand(tokenCommand(io, finish))
    .addCommand(clusterCommand(io, finish));
  prepare(program, io);
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommandFailure) {
      io.err(`countersign: ${error.message}\n${error.hint === undefined ? '' : `countersign: ${error.hint}\n`}`);
      return error.code;
    }
    // --help is not an error; commander has printed every other message itself.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    // A bug. Exit code 1 would mean that the answer is no.
    io.err(`countersign: unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return exitCodes.temporary;
  }
}

/** Commander copies these settings only to commands that are added later, so each existing command gets them here. */
function prepare(command: Command, io: Io): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text) })
    .showHelpAfterError('(--help shows arguments, options and examples)')
    .showSuggestionAfterError();
  for (const child of command.commands) prepare(child, io);
}
