/** `countersign status`. */
import { Option } from 'commander';
import { addClusterAccess } from '../cluster/cluster-access.ts';
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';
import { addDeployedPlace } from '../trace/place.ts';
import { status } from './status.ts';
import type { StatusFlags } from './status.ts';

/** The places at which the command looks, and the form of its answer. */
export function addStatusOptions(command: CliCommand): CliCommand {
  return addClusterAccess(addDeployedPlace(command))
    .option('--url <URL>', 'the endpoint (default: the output of the stack); http: without a login, for the dev server')
    .option('--token-file <file>', 'ask the endpoint with the service-account token in this file')
    .addOption(new Option('--skip-kubernetes', 'do not look at the relay').conflicts(['kubeconfig', 'context']))
    .option('--skip-aws', 'do not ask AWS: the endpoint of --url, and the relay')
    .formats('table', 'json', 'yaml');
}

export function statusCommand(program: CliCommand, io: Io): void {
  addStatusOptions(program.command('status'))
    .description(
      'show whether a cluster works now: relay, endpoint, rules in force, CAs, tables, last faults. It only reads',
    )
    .notes(
      'Each part is read on its own; one that cannot be read says which right is missing. Exit codes: 0 healthy, 1 something does not work,',
      '5 nothing wrong was seen, and not everything could be seen. countersign doctor says whether a set-up can work at all.',
      'On AWS it needs cloudformation:DescribeStacks, dynamodb:DescribeTable and DescribeContinuousBackups, lambda:InvokeFunction on the ca function,',
      'logs:FilterLogEvents, and to be admitted by the endpoint: as the caller role if the login may assume it, otherwise as itself.',
      'In the cluster: list deployments (apps), get leases of the relay’s namespace, list events in the namespace default.',
    )
    .examples(
      'countersign status --config countersign.yaml --cluster prod',
      'countersign status --cluster prod --skip-aws --context admin@prod',
      'countersign status --cluster prod -o json | jq -r \'.state, (.checks[] | select(.result == "fail") | .seen)\'',
      'countersign status --cluster demo --url http://127.0.0.1:8443 --skip-aws --skip-kubernetes',
    )
    .runs((flags: StatusFlags) => status(flags, io));
}
