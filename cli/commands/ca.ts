import { randomBytes } from 'node:crypto';
import { InvalidArgumentError, Option } from 'commander';
import { CaUnusableError, createEmbeddedCa, loadEmbeddedCa } from '../../adapters/embedded/authority.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import { caConfiguration } from '../../core/configuration/parse.ts';
import type { CaConfiguration } from '../../core/configuration/model/cluster.ts';
import { caText } from '../output/ca-text.ts';
import type { ShownCa } from '../output/ca-text.ts';
import { chooseCluster } from '../cluster/cluster-choice.ts';
import { initDeployedCa, loadDeployedCa } from '../aws/deployed-ca.ts';
import type { DeployedFlags } from '../aws/deployed-ca.ts';
import { caImportCommands } from '../ca/import.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';

interface ShowFlags extends Partial<DeployedFlags> {
  readonly data?: string;
  readonly name: string;
  readonly output: string;
}

interface InitFlags extends ShowFlags {
  readonly subject?: string;
  readonly keySpec?: string;
  readonly signatureAlgorithm?: string;
  readonly validity?: string;
  readonly pathLen?: number;
  readonly config?: string;
}

/** The command `ca`, for further commands about CAs. */
export function caCommands(program: CliCommand, io: Io): CliCommand {
  const ca = program
    .command('ca')
    .description('create, import, show and replace a CA whose key is in KMS, or in a folder of this machine');

  addPlace(ca.command('init'), `${clusterText}; with --config one of that file`, ['function', 'region'])
    .description(
      'create a CA: its self-signed certificate, and with --data its key. An existing CA is never overwritten (exit code 6)',
    )
    .option('--name <name>', 'name of the CA, as in countersign.yaml', caName, 'ca')
    .option('--subject <name>', 'such as "CN=prod CA,O=Example Corp"; also OU and C (default: CN=Countersign <name>)')
    .option('--key-spec <spec>', 'P-256, P-384, P-521, RSA-2048, RSA-3072 or RSA-4096 (default: P-256)')
    .option('--signature-algorithm <name>', 'as in countersign.yaml (default: the one that fits the key)')
    .option('--validity <duration>', 'lifetime of the CA, such as 3650d (default: 3650d)')
    .option('--path-len <n>', 'how many CAs may be below this one (default: 0)', Number)
    .addOption(
      new Option('--config <file>', 'take all of this from the CA of that name in a countersign.yaml').conflicts(
        caFlags,
      ),
    )
    .formats('table', 'json', 'yaml', 'pem')
    .notes('The countersign.yaml of the deployment defines a deployed CA, and the deployment created its key.')
    .examples(
      'countersign ca init --cluster prod',
      'countersign ca init --data ./data',
      "countersign ca init --data ./data --name web --subject 'CN=web CA,O=Example Corp' --key-spec P-384 --validity 730d",
      'countersign ca init --data ./data --config countersign.yaml --cluster prod',
    )
    .runs(async (flags: InitFlags) => io.out(await caText(await init(flags, io), flags.output)));

  addPlace(ca.command('show'), clusterText, ['cluster', 'function', 'region'])
    .description('show the CA certificate: subject, validity, fingerprint, key; -o pem prints the certificate itself')
    .option('--name <name>', 'name of the CA', caName, 'ca')
    .formats('table', 'json', 'yaml', 'pem')
    .examples(
      'countersign ca show --data ./data',
      "countersign ca show --cluster prod -o pem > client-ca.crt   # for the API server's --client-ca-file",
    )
    .runs(async (flags: ShowFlags) => io.out(await caText(await show(flags, io), flags.output)));

  caImportCommands(ca, addNamedCa, io);
  return ca;
}

const clusterText = 'deployed cluster of the CA [COUNTERSIGN_CLUSTER]';

/** Flags that name a CA and say where it is. */
export function addNamedCa(command: CliCommand): CliCommand {
  return addPlace(command, `${clusterText}; with --config one of that file`, ['function', 'region']).option(
    '--name <name>',
    'name of the CA, as in countersign.yaml',
    caName,
    'ca',
  );
}

/** Flags that say where the CA is: in a deployed cluster or in a folder. `deployedOnly`: flags that conflict with --data. */
function addPlace(command: CliCommand, aboutCluster: string, deployedOnly: string[]): CliCommand {
  return command
    .option('--cluster <name>', aboutCluster)
    .option('--function <name>', 'its ca function, if it does not have the name that the deployment gives it')
    .option('--region <name>', 'AWS region of the cluster’s stack (default: as for the aws command line)')
    .addOption(
      new Option('--data <dir>', 'instead of a deployed cluster: folder of the CA’s files').conflicts(deployedOnly),
    );
}

async function init(flags: InitFlags, io: Io): Promise<ShownCa> {
  const { data, config, cluster } = flags;
  if (data === undefined) return initDeployedCa(deployedFlags(flags, io), io);
  if (cluster !== undefined && config === undefined)
    throw new CommandFailure(exitCodes.usage, '--data means a CA of this machine; leave out --cluster');
  const ca = config === undefined ? caFromFlags(flags) : await caFromFile(flags, io);
  const { created, authority } = await orUnusable(() => createEmbeddedCa(data, ca, { now: io.now(), randomBytes }));
  if (!created)
    throw new CommandFailure(
      exitCodes.conflict,
      `there already is a CA ${ca.name} in ${data}; it was left as it is`,
      `countersign ca show --data ${data} --name ${ca.name} shows it; another --name creates another CA`,
    );
  return shownCa(authority);
}

async function show(flags: ShowFlags, io: Io): Promise<ShownCa> {
  const { data, name } = flags;
  if (data === undefined) return loadDeployedCa(deployedFlags(flags, io), io);
  return shownCa(await orUnusable(() => loadEmbeddedCa(data, name)));
}

function deployedFlags(flags: InitFlags, io: Io): DeployedFlags {
  const cluster = flags.cluster ?? (io.environment['COUNTERSIGN_CLUSTER'] || undefined);
  if (cluster === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      'which CA? --cluster names a deployed cluster, --data a folder of this machine',
      'countersign ca init --help shows examples of both',
    );
  const conflicting = [...caFlags, 'config' as const].filter((key) => flags[key] !== undefined);
  if (conflicting.length > 0)
    throw new CommandFailure(
      exitCodes.usage,
      `the deployment defines the CA; leave out ${conflicting.map(flagText).join(', ')}`,
    );
  return { ...flags, cluster };
}

function shownCa({ name, certificate, signer }: Authority): ShownCa {
  return { name, certificate, keyId: signer.keyId, signatureAlgorithm: signer.algorithm };
}

/** Turns a missing or incomplete CA into a CommandFailure. Every other error is a bug. */
async function orUnusable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CaUnusableError && error.why === 'Missing')
      throw new CommandFailure(exitCodes.notFound, error.message, 'countersign ca init creates one');
    if (error instanceof CaUnusableError || (error instanceof Error && 'syscall' in error))
      throw new CommandFailure(exitCodes.configuration, error.message);
    throw error;
  }
}

function caFromFlags({ name, subject, keySpec, signatureAlgorithm, validity, pathLen }: InitFlags): CaConfiguration {
  const fields = {
    subject: subject === undefined ? { commonName: `Countersign ${name}` } : subjectOf(subject),
    keySpec,
    signatureAlgorithm,
    validity,
    pathLen,
  };
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  const checked = caConfiguration(name, given);
  if (checked.ok) return checked.value;
  const problems = checked.problem.map(({ key, message }) => `${flagText(key)}: ${message}`);
  throw new CommandFailure(exitCodes.usage, problems.join('\n'), 'countersign ca init --help shows what each may be');
}

async function caFromFile(flags: InitFlags, io: Io): Promise<CaConfiguration> {
  const { cluster, source } = await chooseCluster(flags, io);
  const ca = cluster.cas.get(flags.name);
  if (ca !== undefined) return ca;
  throw new CommandFailure(
    exitCodes.notFound,
    `${source} has no CA ${flags.name} in cluster ${cluster.name}`,
    `--name is one of ${[...cluster.cas.keys()].join(', ')}`,
  );
}

const caFlags: (keyof InitFlags)[] = ['subject', 'keySpec', 'signatureAlgorithm', 'validity', 'pathLen'];

function flagText(key: string): string {
  return `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The same names as in countersign.yaml. They have no slash, since a folder gets this name. */
function caName(text: string): string {
  const checked = caConfiguration(text, { subject: { commonName: 'x' } });
  if (checked.ok) return text;
  throw new InvalidArgumentError(checked.problem.map(({ message }) => message).join('; '));
}

const subjectKeys: Readonly<Record<string, string>> = {
  CN: 'commonName',
  O: 'organization',
  OU: 'organizationalUnit',
  C: 'country',
};

/** Reads the part of RFC 4514 that a CA needs. A comma inside a value is written `\,`. */
function subjectOf(text: string): Readonly<Record<string, string>> {
  const parts = text.split(/(?<!\\),/).map((part) => part.trim().replaceAll('\\,', ','));
  const subject: Record<string, string> = {};
  for (const part of parts) {
    const [, type = '', value = ''] = /^([A-Za-z]+)=(.*)$/s.exec(part) ?? [];
    const key = subjectKeys[type.toUpperCase()];
    if (key === undefined || subject[key] !== undefined)
      throw new CommandFailure(
        exitCodes.usage,
        `--subject: ${key === undefined ? `"${part}" is not understood` : `${type} is given twice`}`,
        'it looks like "CN=prod CA,O=Example Corp" and may hold CN, O, OU and C, each once',
      );
    subject[key] = value;
  }
  return subject;
}
