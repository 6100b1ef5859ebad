/**
 * All commands of the program, in the order of --help. A part is loaded if one of its commands is named on the command line, so that
 * --help and completions do not wait for what only other commands need.
 */
import { Help } from 'commander';
import { version } from '../core/version.ts';
import { CliCommand } from './runtime/command.ts';
import type { ExitCode } from './runtime/exit.ts';
import type { Io } from './runtime/io.ts';

type AddCommands = (program: CliCommand, io: Io) => void;

interface Part {
  /** Each command that it adds to the program, with its line of --help. */
  readonly commands: Readonly<Record<string, string>>;
  readonly load: () => Promise<AddCommands>;
}

const parts: readonly Part[] = [
  {
    commands: { init: 'write a first countersign.yaml, from a few answers' },
    load: async () => (await import('./start/init.ts')).initCommand,
  },
  {
    commands: { dev: 'the signing side on this machine, with a stand-in of a cluster: for trying things' },
    load: async () => (await import('./start/dev.ts')).devCommand,
  },
  {
    commands: { ca: 'create, import, show and replace a CA whose key is in KMS or in a folder' },
    load: async () => {
      const [{ caCommands }, { rotateCommand }] = await Promise.all([
        import('./commands/ca.ts'),
        import('./rotation/command.ts'),
      ]);
      return (program, io) => rotateCommand(caCommands(program, io), io);
    },
  },
  {
    commands: { kubeadm: "sign and renew certificates of kubeadm's control plane, without ca.key" },
    load: async () => (await import('./kubeadm/command.ts')).kubeadmCommands,
  },
  {
    commands: { cert: 'list, find, show, export and revoke the certificates that this signer issued' },
    load: async () => {
      const [{ certCommands }, { revocationCommands }] = await Promise.all([
        import('./inventory/command.ts'),
        import('./revocation/command.ts'),
      ]);
      return (program, io) => revocationCommands(certCommands(program, io), io);
    },
  },
  {
    commands: { audit: 'compare what was signed with what was recorded' },
    load: async () => (await import('./inventory/audit.ts')).auditCommands,
  },
  {
    commands: { csr: 'list, show, explain, approve and deny certificate signing requests' },
    load: async () => (await import('./commands/csr.ts')).csrCommands,
  },
  {
    commands: { config: 'check, test and document countersign.yaml' },
    load: async () => {
      const [{ configCommands }, { addTest }, { addDiff }] = await Promise.all([
        import('./commands/config.ts'),
        import('./inventory/cases.ts'),
        import('./inventory/diff.ts'),
      ]);
      return (program, io) => {
        const config = configCommands(program, io);
        addTest(config, io);
        addDiff(config, io);
      };
    },
  },
  {
    commands: {
      lock: 'refuse every certificate to a node or machine, or for a key, from now on',
      unlock: 'end a lock',
      locks: 'list what is locked',
    },
    load: async () => (await import('./commands/lock.ts')).lockCommands,
  },
  {
    commands: { tofu: 'trust on first use: which machine each node name belongs to' },
    load: async () => (await import('./commands/tofu.ts')).tofuCommands,
  },
  {
    commands: { machines: 'the list of machines that may join, where only listed ones may' },
    load: async () => {
      const [{ machinesCommands }, { addPrune }] = await Promise.all([
        import('./commands/machines.ts'),
        import('./prune/prune.ts'),
      ]);
      return (program, io) => addPrune(machinesCommands(program, io), io);
    },
  },
  {
    commands: { report: 'which nodes would be denied if audit mode ended today' },
    load: async () => (await import('./report/command.ts')).reportCommand,
  },
  {
    commands: { relay: 'the relay of a cluster: its Helm values' },
    load: async () => (await import('./relay/command.ts')).relayCommands,
  },
  {
    commands: { status: 'whether a cluster works now: relay, endpoint, rules in force, CAs, tables' },
    load: async () => (await import('./status/command.ts')).statusCommand,
  },
  {
    commands: { doctor: 'whether a set-up can work: Node.js, file, logins, clocks, rights, approvers' },
    load: async () => (await import('./doctor/command.ts')).doctorCommand,
  },
  {
    commands: { token: 'bootstrap tokens, with which machines may request a certificate' },
    load: async () => (await import('./commands/token.ts')).tokenCommands,
  },
  {
    commands: { cluster: 'find and close ways to certificates that bypass the signer' },
    load: async () => (await import('./commands/harden.ts')).clusterCommands,
  },
  {
    commands: { aws: 'check the AWS account of a deployment' },
    load: async () => (await import('./commands/aws.ts')).awsCommands,
  },
  {
    commands: { trace: 'follow one request through the cluster, the logs and the records' },
    load: async () => (await import('./trace/command.ts')).traceCommand,
  },
  {
    commands: { completion: 'print the completion for bash, zsh or fish', __complete: '' },
    load: async () => (await import('./shell/completion.ts')).completionCommands,
  },
  {
    commands: { version: 'print the version, the commit and Node’s version' },
    load: async () => (await import('./shell/version.ts')).versionCommand,
  },
];

const help = `
Examples:
  countersign init
  countersign config validate countersign.yaml
  kubectl get csr node-csr-1 -o json | countersign csr explain -
  countersign token create --config countersign.yaml --cluster prod

Exit codes: 0 ok, 1 refused, 2 usage, 3 configuration, 4 not found, 5 temporary, 6 conflict.
More: docs/cli.md`;

/** `finish` gets the exit code of the command that ran. `argv`: only the commands named in it can run; without it all can. */
export async function countersignProgram(
  io: Io,
  finish: (code: ExitCode) => void,
  argv?: readonly string[],
): Promise<CliCommand> {
  const program = new CliCommand('countersign', finish);
  const usual = new Help();
  program
    .description('Signs Kubernetes certificate requests with a CA key that no cluster holds.')
    .version(version, '-V, --version', 'print the version; countersign version prints more')
    .addHelpText('after', help)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text) })
    // The arguments of commands that are not loaded are not known.
    .configureHelp({
      subcommandTerm: (each) => (each.parent === program ? each.name() : usual.subcommandTerm(each)),
    })
    .showSuggestionAfterError();
  const isNamed = ({ commands }: Part) => Object.keys(commands).some((name) => argv?.includes(name) ?? true);
  const loaded = await Promise.all(
    parts.map(async (part) => ({ ...part, add: isNamed(part) ? await part.load() : addNames(part) })),
  );
  for (const { commands, add } of loaded) {
    add(program, io);
    for (const command of program.commands) command.summary(commands[command.name()] ?? command.summary());
  }
  return program;
}

/** For --help and for suggestions. */
function addNames({ commands }: Part): AddCommands {
  return (program) => {
    for (const name of Object.keys(commands)) program.command(name, { hidden: name.startsWith('__') });
  };
}
