/** Which rules a command uses: a cluster of countersign.yaml, or the default cluster if there is no file. */
import { defaultCluster, parseConfiguration } from '../../core/configuration/parse.ts';
import type { Problem } from '../../core/configuration/problem-list.ts';
import type { ClusterConfiguration, Configuration } from '../../core/configuration/model/cluster.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import { maxInputBytes } from '../runtime/io.ts';
import type { Io } from '../runtime/io.ts';

export interface ClusterFlags {
  readonly config?: string | undefined;
  readonly cluster?: string;
}

const defaultFile = 'countersign.yaml';

export function addClusterOptions(command: CliCommand): CliCommand {
  return command
    .option('--config <file>', 'countersign.yaml with the rules [COUNTERSIGN_CONFIG]')
    .option('--cluster <name>', 'cluster of that file [COUNTERSIGN_CLUSTER]');
}

/** The file that the flag or the environment names, else ./countersign.yaml; undefined if that does not exist. */
export function configurationFile(flag: string | undefined, io: Io): string | undefined {
  return (
    flag ??
    (io.environment['COUNTERSIGN_CONFIG'] || undefined) ??
    (io.fileExists(defaultFile) ? defaultFile : undefined)
  );
}

export interface ChosenCluster {
  readonly cluster: ClusterConfiguration;
  /** The countersign.yaml of the cluster; absent for the default rules. */
  readonly file?: string;
  /** Where the rules come from, for messages. */
  readonly source: string;
}

export async function chooseCluster(flags: ClusterFlags, io: Io): Promise<ChosenCluster> {
  const wanted = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  const file = configurationFile(flags.config, io);
  if (file === undefined) {
    const cluster = defaultCluster(wanted ?? 'default');
    return { cluster, source: 'the default rules; --config names a countersign.yaml' };
  }
  const { clusters } = await readConfiguration(file, io);
  const names = [...clusters.keys()];
  const name = wanted ?? (names.length === 1 ? names[0] : undefined);
  if (name === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `${file} has several clusters`,
      `--cluster names one of ${names.join(', ')}`,
    );
  const cluster = clusters.get(name);
  if (cluster === undefined)
    throw new CommandFailure(exitCodes.notFound, `${file} has no cluster ${name}`, `it has ${names.join(', ')}`);
  return { cluster, file, source: file };
}

/** Reads and checks the file. Warnings go to standard error, problems end the command. */
export async function readConfiguration(
  file: string,
  io: Io,
  options: Parameters<typeof parseConfiguration>[2] = {},
): Promise<Configuration> {
  const parsed = parseConfiguration(await readText(file, io), file, options);
  if (!parsed.ok) throw new CommandFailure(exitCodes.configuration, problemsText(parsed.problem).trimEnd());
  for (const warning of parsed.value.warnings) io.err(`warning: ${problemText(warning)}\n`);
  return parsed.value.configuration;
}

/** A problem in the format of compiler errors, so that editors can jump to the line. */
export function problemText({ file, line, column, path, message }: Problem): string {
  return `${file}:${line}:${column}: ${path === '' ? '' : `${path}: `}${message}`;
}

const mostProblems = 10;

/** A line for each problem, ten at most: a file with more of them is usually not the one that the operator meant. */
export function problemsText(problems: readonly Problem[], most = mostProblems): string {
  const lines = problems.slice(0, most).map((problem) => `${problemText(problem)}\n`);
  const more = problems.length - lines.length;
  const [{ file } = { file: '' }] = problems;
  return `${lines.join('')}${more > 0 ? `… and ${more} more: countersign config validate --all ${file}\n` : ''}`;
}

export async function readText(file: string, io: Io): Promise<string> {
  return Buffer.from(await readBytes(file, io)).toString('utf8');
}

/** `-` is standard input. Throws CommandFailure if the file cannot be read. */
export async function readBytes(file: string, io: Io): Promise<Uint8Array> {
  try {
    return await io.read(file);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENOENT') throw new CommandFailure(exitCodes.notFound, `there is no file ${file}`);
    if (code === 'EFBIG')
      throw new CommandFailure(
        exitCodes.refused,
        `${file} is larger than ${maxInputBytes / 1_048_576} MiB, and was not read to its end`,
      );
    throw new CommandFailure(exitCodes.configuration, `${file} cannot be read (${code || String(error)})`);
  }
}
