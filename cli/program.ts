/** All commands of the program. */
import { awsCommands } from './commands/aws.ts';
import { caCommands } from './commands/ca.ts';
import { auditCommands } from './inventory/audit.ts';
import { certCommands } from './inventory/command.ts';
import { addTest } from './inventory/cases.ts';
import { addDiff } from './inventory/diff.ts';
import { configCommands } from './commands/config.ts';
import { csrCommands } from './commands/csr.ts';
import { version } from '../core/version.ts';
import { CliCommand } from './runtime/command.ts';
import type { ExitCode } from './runtime/exit.ts';
import { clusterCommands } from './commands/harden.ts';
import type { Io } from './runtime/io.ts';
import { kubeadmCommands } from './kubeadm/command.ts';
import { lockCommands } from './commands/lock.ts';
import { machinesCommands } from './commands/machines.ts';
import { relayCommands } from './relay/command.ts';
import { reportCommand } from './report/command.ts';
import { revocationCommands } from './revocation/command.ts';
import { rotateCommand } from './rotation/command.ts';
import { shellCommands } from './shell/command.ts';
import { tofuCommands } from './commands/tofu.ts';
import { tokenCommands } from './commands/token.ts';
import { devCommand } from './start/dev.ts';
import { traceCommand } from './trace/command.ts';

const help = `
Examples:
  countersign config validate countersign.yaml
  kubectl get csr node-csr-1 -o json | countersign csr explain -
  countersign token create --config countersign.yaml --cluster prod

Exit codes: 0 ok, 1 refused, 2 usage, 3 configuration, 4 not found, 5 temporary, 6 conflict.
More: docs/cli.md`;

/** `finish` gets the exit code of the command that ran. */
export function countersignProgram(io: Io, finish: (code: ExitCode) => void): CliCommand {
  const program = new CliCommand('countersign', finish);
  program
    .description('Signs Kubernetes certificate requests with a CA key that no cluster holds.')
    .version(version, '-V, --version', 'print the version; countersign version prints more')
    .addHelpText('after', help)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text) })
    .showSuggestionAfterError();
  devCommand(program, io);
  rotateCommand(caCommands(program, io), io);
  kubeadmCommands(program, io);
  revocationCommands(certCommands(program, io), io);
  auditCommands(program, io);
  csrCommands(program, io);
  const config = configCommands(program, io);
  addTest(config, io);
  addDiff(config, io);
  lockCommands(program, io);
  tofuCommands(program, io);
  machinesCommands(program, io);
  reportCommand(program, io);
  relayCommands(program, io);
  tokenCommands(program, io);
  clusterCommands(program, io);
  awsCommands(program, io);
  traceCommand(program, io);
  shellCommands(program, io);
  return program;
}
