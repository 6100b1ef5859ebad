/** `countersign aws preflight`: what a deployment needs from the account, checked before anything is made. */
import type { ClusterFlags } from '../cluster/cluster-choice.ts';
import { addClusterOptions, configurationFile, readConfiguration } from '../cluster/cluster-choice.ts';
import { formatOutput } from '../output/output.ts';
import { permissions } from '../preflight/check.ts';
import type { PlannedCluster } from '../preflight/check.ts';
import { preflight } from '../preflight/preflight.ts';
import { preflightText } from '../preflight/report-text.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

export function awsCommands(program: CliCommand, io: Io): void {
  const aws = program.command('aws').description('check the AWS account of a deployment');
  addClusterOptions(aws.command('preflight'))
    .description(
      'check, before anything is made, whether the account can hold the clusters of countersign.yaml: login, region, CDK\n' +
        'bootstrap, quotas, principals, names of stacks. Exit code 1 if a check fails. It only reads.',
    )
    .formats('table', 'json', 'yaml')
    .notes(
      'Without --cluster: all clusters of the file.',
      '',
      'Permissions (a check whose permission is missing is shown as “!”):',
      ...Object.entries(permissions).map(([permission, use]) => `  ${permission.padEnd(40)} ${use}`),
    )
    .examples('countersign aws preflight', 'countersign aws preflight --config countersign.yaml --cluster prod -o json')
    .runs((flags: ClusterFlags & { readonly output: string }) => check(flags, io));
}

async function check(flags: ClusterFlags & { readonly output: string }, io: Io): Promise<ExitCode> {
  const places = await preflight(await planned(flags, io), (region) => io.connectAccount(region));
  const failed = places.some(({ checks }) => checks.some(({ result }) => result === 'fail'));
  io.out(formatOutput(flags.output, { ready: !failed, places }, () => preflightText(places)));
  return failed ? exitCodes.refused : exitCodes.ok;
}

async function planned(flags: ClusterFlags, io: Io): Promise<readonly PlannedCluster[]> {
  const file = configurationFile(flags.config, io);
  if (file === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      'there is no ./countersign.yaml',
      'name a file: countersign aws preflight --config FILE',
    );
  const { clusters, deployments } = await readConfiguration(file, io, { toDeploy: true });
  const wanted = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  const names = wanted === undefined ? [...clusters.keys()] : [wanted];
  return names.map((name) => {
    const [cluster, deployment] = [clusters.get(name), deployments.get(name)];
    if (cluster !== undefined && deployment !== undefined) return { cluster, deployment };
    const hint = `it has ${[...clusters.keys()].join(', ')}`;
    throw new CommandFailure(exitCodes.notFound, `${file} has no cluster ${name}`, hint);
  });
}
