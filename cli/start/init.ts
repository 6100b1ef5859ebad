/** `countersign init`: a first countersign.yaml, from a few answers, and its schema beside it. */
import { basename, join } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { configurationSchema, parseConfiguration } from '../../core/configuration/parse.ts';
import { regionName } from '../../core/ports/region-name.ts';
import { problemText } from '../cluster/cluster-choice.ts';
import { json } from '../output/output.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { canAttest, firstConfiguration, platforms } from './first-configuration.ts';
import type { Answers, Platform } from './first-configuration.ts';

interface InitFlags {
  readonly cluster?: string;
  readonly platform?: Platform;
  readonly account?: string;
  readonly region?: string;
  readonly attestation?: boolean;
  readonly yes?: boolean;
}

const configurationName = 'countersign.yaml';
const schemaName = 'countersign.schema.json';
const defaults = { cluster: 'demo', platform: 'kubeadm' } as const;

export function initCommand(program: CliCommand, io: Io): void {
  program
    .command('init')
    .description(
      'write a first countersign.yaml and its schema, from a few answers. It asks for what no option says; existing files are kept.',
    )
    .argument('[folder]', 'where', '.')
    .option('--cluster <name>', `name of the cluster (default: ${defaults.cluster})`, clusterName)
    .addOption(
      new Option('--platform <kind>', `how the cluster runs (default: ${defaults.platform})`).choices(platforms),
    )
    .option(
      '--account <id>',
      'AWS account of the signing side, with --region (default: that of your login at deployment)',
      accountId,
    )
    .option('--region <name>', 'AWS Region of the signing side', regionOf)
    .option(
      '--attestation',
      'each node proves which machine it is: on EC2 with the platform of AWS, on bare metal with its TPM',
    )
    .option('--no-attestation', 'the approver of a request decides which machine it is')
    .option('--yes', 'ask nothing: the defaults for what no option says')
    .notes(
      'Default of --attestation: yes where the machines are known, which on EC2 takes --account and --region; not on EKS.',
    )
    .examples(
      'countersign init',
      'countersign init --yes',
      'countersign init --cluster prod --platform kubeadm --account 111122223333 --region eu-central-1',
    )
    .page('quick-start.md')
    .runs(async (folder: string, flags: InitFlags) => init(folder, await answer(flags, io), io));
}

async function init(folder: string, answers: Answers, io: Io): Promise<void> {
  const text = firstConfiguration(answers, Buffer.from(io.randomBytes(4)).toString('hex'));
  const parsed = parseConfiguration(text, configurationName);
  // A combination of answers that the tests do not know.
  if (!parsed.ok) throw new Error(parsed.problem.map(problemText).join('\n'));
  const [file, schema] = [join(folder, configurationName), join(folder, schemaName)];
  for (const path of [file, schema])
    if (io.fileExists(path))
      throw new CommandFailure(
        exitCodes.conflict,
        `there is a ${path} already; nothing was written`,
        'countersign config validate checks it; another folder: countersign init FOLDER',
      );
  await io.writeNew(file, text);
  await io.writeNew(schema, json(configurationSchema()));
  const elsewhere = folder === '.' ? '' : ` --config ${file}`;
  io.out(`${file} and ${basename(schema)} are written. Read the file: it says who gets which certificates.

Next:

  countersign config validate${folder === '.' ? '' : ` ${file}`}
  countersign dev${elsewhere} --write-kubeconfig dev.kubeconfig
`);
}

/** Throws CommandFailure if something is to be asked, and no terminal is there to ask. */
async function answer(flags: InitFlags, io: Io): Promise<Answers> {
  const { ask } = io;
  if (flags.yes === true || ask === undefined) {
    if (flags.yes !== true && (flags.cluster === undefined || flags.platform === undefined))
      throw new CommandFailure(
        exitCodes.usage,
        'standard input is no terminal, so nothing can be asked: --cluster and --platform are needed',
        `or --yes, for the defaults (--cluster ${defaults.cluster} --platform ${defaults.platform})`,
      );
    return complete({ ...defaults, ...flags });
  }
  const question = async <T>(
    given: T | undefined,
    text: string,
    initial: string,
    read: (word: string) => T,
  ): Promise<T> => {
    while (given === undefined) {
      const word = (await ask(`${text}${initial === '' ? '' : ` [${initial}]`}: `)).trim() || initial;
      try {
        return read(word);
      } catch (error) {
        if (!(error instanceof InvalidArgumentError)) throw error;
        io.err(`${error.message}\n`);
      }
    }
    return given;
  };
  const cluster = await question(flags.cluster, 'Name of the cluster', defaults.cluster, clusterName);
  const platform = await question(
    flags.platform,
    `How it runs (${platforms.join(', ')})`,
    defaults.platform,
    platformOf,
  );
  const account = await question(
    flags.account,
    'AWS account of the signing side (empty: that of your login at deployment)',
    '',
    (word) => (word === '' ? '' : accountId(word)),
  );
  const region = account === '' ? flags.region : await question(flags.region, 'AWS Region', '', regionOf);
  const known = {
    cluster,
    platform,
    ...(account === '' ? {} : { account }),
    ...(region === undefined ? {} : { region }),
  };
  const { attestation: initial } = complete(known);
  const asked = 'Shall each node prove which machine it is (yes, no)?';
  const attestation = canAttest(complete({ ...known, attestation: false }))
    ? await question(flags.attestation, asked, initial ? 'yes' : 'no', yesOrNo)
    : flags.attestation;
  return complete({ ...known, ...(attestation === undefined ? {} : { attestation }) });
}

/** Throws CommandFailure if answers do not fit together. */
function complete({
  cluster,
  platform,
  account,
  region,
  attestation,
}: InitFlags & Pick<Answers, 'cluster' | 'platform'>): Answers {
  if ((account === undefined) !== (region === undefined))
    throw new CommandFailure(
      exitCodes.usage,
      '--account and --region belong together',
      'give both, or neither: then your login at deployment decides',
    );
  const place = account === undefined || region === undefined ? {} : { place: { account, region } };
  const possible = canAttest({ platform, ...place });
  if (attestation === true && !possible)
    throw new CommandFailure(
      exitCodes.usage,
      platform === 'eks'
        ? '--attestation: nodes of EKS log in with IAM, and Countersign does not sign for them'
        : '--attestation: the machines must be in one account and Region',
      platform === 'eks' ? 'leave it out; docs/eks.md' : 'give --account and --region',
    );
  return { cluster, platform, ...place, attestation: attestation ?? possible };
}

function clusterName(text: string): string {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text))
    throw new InvalidArgumentError('Not a DNS label (lower-case letters, digits, inner hyphens).');
  return text;
}

function accountId(text: string): string {
  if (!/^\d{12}$/.test(text)) throw new InvalidArgumentError('An account has twelve digits.');
  return text;
}

function regionOf(text: string): string {
  if (!regionName.test(text)) throw new InvalidArgumentError('Not a Region such as eu-central-1.');
  return text;
}

function platformOf(text: string): Platform {
  const found = platforms.find((platform) => platform === text);
  if (found === undefined) throw new InvalidArgumentError(`One of ${platforms.join(', ')}.`);
  return found;
}

function yesOrNo(text: string): boolean {
  if (!/^(y|yes|n|no)$/i.test(text)) throw new InvalidArgumentError('yes or no.');
  return /^y/i.test(text);
}
