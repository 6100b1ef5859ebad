/** `countersign relay values`. docs/deploy.md */
import { InvalidArgumentError, Option } from 'commander';
import { stringify } from 'yaml';
import { stackNames } from '../../core/configuration/resolve/deployment.ts';
import { readText } from '../cluster/cluster-choice.ts';
import { formatOutput } from '../output/output.ts';
import type { CliCommand } from '../runtime/command.ts';
import type { Io } from '../runtime/io.ts';
import { addDeployedPlace, deployedPlace } from '../trace/place.ts';
import type { PlaceFlags } from '../trace/place.ts';
import { admittedAccount, chartName, credentialKinds, relayValues } from './values.ts';
import type { DeployedCluster, Image, ValuesChoice } from './values.ts';

type ValuesFlags = Omit<PlaceFlags, 'data'> & ValuesChoice & { readonly output: string };

export function relayCommands(program: CliCommand, io: Io): void {
  const relay = program.command('relay').description('install the relay of a cluster');
  addDeployedPlace(relay.command('values'))
    .description('print Helm values of deploy/chart from the outputs of the deployed stack and countersign.yaml')
    .addOption(
      new Option('--auth <method>', 'if the cluster has an endpoint for roles and one for tokens').choices([
        'aws',
        'token',
      ]),
    )
    .addOption(
      new Option('--credentials <kind>', 'with which AWS credentials the relay assumes the caller role')
        .choices([...credentialKinds])
        .default('webIdentity'),
    )
    .option(
      '--role-arn <arn>',
      'for webIdentity: the role of the relay (default: the only one in access.iam.principals)',
      roleArn,
    )
    .option('--image <name>', 'the image of the relay: REPOSITORY@sha256:… or REPOSITORY:TAG', imageOf)
    .formats('yaml', 'json')
    .notes(
      'It needs cloudformation:DescribeStacks. With a countersign.yaml the values have the signers; if the relay approves or sends evidence',
      'for one of them, they have the whole file, from which the chart also derives the rights: write them again after each change.',
    )
    .page('deploy.md#5-install-the-relay')
    .examples(
      'countersign relay values --config countersign.yaml --image registry.example.com/countersign/watch-relay@sha256:… > relay-values.yaml',
      'countersign relay values --cluster prod --credentials podIdentity',
      'countersign relay values --cluster prod --auth token -o json',
    )
    .runs((flags: ValuesFlags) => printValues(flags, io));
}

async function printValues(flags: ValuesFlags, io: Io): Promise<void> {
  const { cluster, region, file } = await deployedPlace(flags, io);
  const outputs = await io.stackOutputs({ cluster, region });
  const deployed: DeployedCluster = {
    cluster,
    outputs,
    ...(file === undefined ? {} : { file: { ...file, text: await readText(file.path, io) } }),
  };
  const values = relayValues(deployed, flags);
  io.out(formatOutput(flags.output === 'json' ? 'json' : 'text', values, () => valuesText(values, deployed, flags)));
}

/** The part of the values that is a file is printed as one, so that a reviewer can compare them. */
function valuesText(values: object, { cluster, file }: DeployedCluster, { image }: ValuesChoice): string {
  const { namespace } = admittedAccount(file?.deployment);
  const comments = [
    `From the outputs of stack ${stackNames(cluster).service}${file === undefined ? '' : ` and from ${file.path}`}, by countersign relay values.`,
    `helm upgrade --install ${chartName} deploy/chart -n ${namespace} -f relay-values.yaml`,
    ...(image === undefined
      ? ['Add your image: --image, or helm’s --set image.repository=… --set image.digest=…']
      : []),
    ...(file === undefined
      ? ['Without a countersign.yaml the signers are the chart’s default: --config names the file.']
      : []),
  ];
  return `${comments.map((line) => `# ${line}\n`).join('')}${stringify(values, { lineWidth: 0, blockQuote: 'literal' })}`;
}

function roleArn(text: string): string {
  if (/^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/.test(text)) return text;
  throw new InvalidArgumentError('It is the ARN of a role, such as arn:aws:iam::111122223333:role/relay.');
}

function imageOf(text: string): Image {
  const [, repository, tag, digest] =
    /^([a-z0-9](?:[a-z0-9._/-]|:(?=[0-9]+\/))*)(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/.exec(
      text,
    ) ?? [];
  if (repository === undefined)
    throw new InvalidArgumentError('It is REPOSITORY, REPOSITORY:TAG or REPOSITORY@sha256:….');
  return { repository, ...(tag === undefined ? {} : { tag }), ...(digest === undefined ? {} : { digest }) };
}
