import { counted } from '../../core/outcome/counted.ts';
import { configurationSchema, parseConfiguration } from '../../core/configuration/parse.ts';
import type { Configuration } from '../../core/configuration/model/cluster.ts';
import { rulesFingerprint } from '../../core/configuration/rules-fingerprint.ts';
import { signerDocuments } from '../../core/configuration/signer-documents.ts';
import {
  addClusterOptions,
  chooseCluster,
  configurationFile,
  problemsText,
  problemText,
  readConfiguration,
  readText,
} from '../cluster/cluster-choice.ts';
import type { ClusterFlags } from '../cluster/cluster-choice.ts';
import { configurationReference } from '../output/configuration-reference.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { formatOutput, table } from '../output/output.ts';

/** The command `config`, for further commands about countersign.yaml. */
export function configCommands(program: CliCommand, io: Io): CliCommand {
  const config = program.command('config').description('check and document countersign.yaml');

  config
    .command('validate')
    .description('check the file: every problem with its line, exit code 3 if there is one')
    .argument('[file]', 'default: COUNTERSIGN_CONFIG, then ./countersign.yaml')
    .option('--all', 'print all problems; without it ten at most')
    .formats('table', 'json', 'yaml')
    .examples('countersign config validate', 'countersign config validate examples/countersign.yaml -o json')
    .runs((file: string | undefined, flags: ValidateFlags) => validate(file, flags, io));

  config
    .command('schema')
    .description('print the JSON Schema, for editors; -o markdown prints the reference of all keys')
    .formats('json', 'markdown')
    .examples(
      'countersign config schema > countersign.schema.json',
      '# first line of countersign.yaml, for editors with the YAML language server:',
      '# yaml-language-server: $schema=./countersign.schema.json',
    )
    .runs(async ({ output }: { output: string }) =>
      io.out(formatOutput(output, configurationSchema(), configurationReference)),
    );

  addClusterOptions(config.command('docs'))
    .description('print what each signer permits, for its users (Markdown)')
    .argument('[file]', 'default: --config, then ./countersign.yaml, then the default rules')
    .examples('countersign config docs > signers.md', 'countersign config docs countersign.yaml --cluster prod')
    .runs(async (file: string | undefined, flags: ClusterFlags) => io.out(await documents(file, flags, io)));
  return config;
}

interface ValidateFlags {
  readonly all?: boolean;
  readonly output: string;
}

async function validate(
  argument: string | undefined,
  { all = false, output }: ValidateFlags,
  io: Io,
): Promise<ExitCode> {
  const file = configurationFile(argument, io);
  if (file === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      'there is no ./countersign.yaml',
      'name a file: countersign config validate FILE',
    );
  const parsed = parseConfiguration(await readText(file, io), file);
  const warnings = parsed.ok ? parsed.value.warnings : [];
  const problems = parsed.ok ? [] : parsed.problem;
  const signers = parsed.ok ? signersOf(parsed.value.configuration) : [];
  const clusters = parsed.ok ? fingerprintsOf(parsed.value.configuration) : [];
  const shown = { valid: parsed.ok, problems, warnings, signers, clusters };
  if (output !== 'table') io.out(formatOutput(output, shown, () => ''));
  else {
    for (const warning of warnings) io.err(`warning: ${problemText(warning)}\n`);
    if (problems.length > 0) io.err(problemsText(problems, all ? problems.length : undefined));
    if (parsed.ok) {
      io.out(`${file} is valid: ${counted(clusters.length, 'cluster')}, ${counted(signers.length, 'signer')}\n\n`);
      io.out(table([['CLUSTER', 'SIGNER', 'CA', 'APPROVAL'], ...signers.map((signer) => Object.values(signer))]));
      const rows = clusters.map(({ cluster, rulesSha256 }) => [cluster, rulesSha256]);
      io.out(`\n${table([['CLUSTER', 'RULES (SHA-256)'], ...rows])}`);
    } else io.err(`${file} is not valid: ${counted(problems.length, 'problem')}\n`);
  }
  return parsed.ok ? exitCodes.ok : exitCodes.configuration;
}

function fingerprintsOf({ clusters }: Configuration) {
  return [...clusters.values()].map((cluster) => ({ cluster: cluster.name, rulesSha256: rulesFingerprint(cluster) }));
}

function signersOf({ clusters }: Configuration) {
  return [...clusters.values()].flatMap(({ name, profiles, approval }) =>
    [...profiles.values()].map(({ signerName, ca }) => ({
      cluster: name,
      signerName,
      ca,
      approval: approval.get(signerName) ?? 'manual',
    })),
  );
}

/** The pages of one cluster, or of several clusters with a title each. */
async function documents(argument: string | undefined, flags: ClusterFlags, io: Io): Promise<string> {
  const file = configurationFile(argument ?? flags.config, io);
  if (file === undefined || flags.cluster !== undefined) {
    const { cluster } = await chooseCluster({ ...flags, config: file }, io);
    return signerDocuments(cluster);
  }
  const clusters = [...(await readConfiguration(file, io)).clusters.values()];
  const titled = clusters.map((cluster) => `# Signers of cluster ${cluster.name}\n\n${signerDocuments(cluster)}`);
  return clusters.length === 1 ? clusters.map(signerDocuments).join('') : titled.join('\n');
}
