import { Option } from 'commander';
import { foundMachine, instanceFilters, placesOf } from '../../core/attestation/aws/fleet.ts';
import { instanceOf } from '../../core/attestation/aws/instance-identity.ts';
import type { FoundMachine } from '../../core/attestation/aws/fleet.ts';
import type { AwsAttestation, NodeNameRule } from '../../core/configuration/providers/aws.ts';
import { violation } from '../../core/outcome/outcome.ts';
import { planAdoptions, writeAdoption } from '../register/adoption.ts';
import type { Adoption } from '../register/adoption.ts';
import { awsFailure } from '../aws/aws-failure.ts';
import { chooseCluster, configurationFile } from '../cluster/cluster-choice.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { formatOutput, table } from '../output/output.ts';
import { auditItem, reasonOption } from '../runtime/reason.ts';
import { addRegisterOptions, announceChange, withRegister } from '../register/place.ts';
import type { RegisterFlags } from '../register/place.ts';
import { fullText } from '../output/tofu-text.ts';

interface AdoptFlags extends RegisterFlags {
  readonly config?: string;
  readonly node?: string;
  readonly identity?: string;
  readonly nameRule?: string;
  readonly reason?: string;
  readonly yes?: boolean;
  readonly output: string;
}

export function addAdopt(tofu: CliCommand, io: Io): void {
  addRegisterOptions(tofu.command('adopt'))
    .description(
      'enrol running machines, by their facts in EC2, so that no other machine gets their node names.\n' +
        'Shows what it would do; --yes does it. Exit code 6: a name or machine has a different record.',
    )
    .option('--config <file>', 'countersign.yaml with attestation.aws [COUNTERSIGN_CONFIG]')
    .option('--node <name>', 'one machine, by this node name: for names that only a pattern permits')
    .option('--identity <id>', 'that machine, such as aws#aws/123456789012/eu-central-1/i-0123456789abcdef0')
    .option('--name-rule <rule>', 'the rule of attestation.aws.nodeName that names the machines, if several do')
    .addOption(reasonOption())
    .addOption(new Option('--dry-run', 'write nothing (the default)').conflicts('yes'))
    .option('--yes', 'write the records')
    .formats('table', 'json', 'yaml')
    .notes(
      'Adopts the instances that pass attestation.aws of countersign.yaml, with your AWS login (ec2:DescribeInstances,',
      "sts:AssumeRole of the roles under accounts). They get a record without a key. The node's next renewal, with full",
      'evidence, adds the key. Machines with a TPM cannot be adopted: no API tells which TPM a running node has.',
    )
    .examples(
      'countersign tofu adopt --cluster prod --config countersign.yaml',
      "countersign tofu adopt --cluster prod --config countersign.yaml --yes --reason 'attestation begins'",
      "countersign tofu adopt --cluster prod --node cp-1 --identity aws#aws/123456789012/eu-central-1/i-0123456789abcdef0 --yes --reason 'named by hand'",
    )
    .runs((flags: AdoptFlags) => adopt(flags, io));
}

async function adopt(flags: AdoptFlags, io: Io): Promise<ExitCode> {
  const { node, identity, yes = false, reason } = flags;
  if ((node === undefined) !== (identity === undefined))
    throw new CommandFailure(exitCodes.usage, 'one machine is adopted by --node and --identity together');
  if (yes && reason === undefined) throw new CommandFailure(exitCodes.usage, '--yes needs a --reason');
  const { name, aws } = await policyOf(flags, io);
  const place = { ...flags, ...(flags.data === undefined ? { cluster: name } : {}) };

  const adoptions = await withRegister(place, io, async (open) => {
    const found =
      identity === undefined ? allMachines(aws, nameRules(aws, flags.nameRule), io) : oneMachine(aws, identity, io);
    const machines = await found.catch((error: unknown) => {
      throw awsFailure('EC2', error);
    });
    const records = await Array.fromAsync(open.register.listIdentities());
    const entries = aws.machines === 'listed' ? await open.register.listMachines() : undefined;
    const planned = planAdoptions(machines, { records, listed: entries?.map((entry) => entry.name) }, node);
    if (!yes || reason === undefined) return planned;
    const author = await announceChange(open, { ...place, reason }, io);
    const done: Adoption[] = [];
    for (const each of planned)
      done.push(
        await writeAdoption(each, open, io.now(), ({ identity: subject, nodeName }) =>
          auditItem({ action: 'adopt', subject, nodeName }, author, io),
        ),
      );
    return done;
  });

  io.out(formatOutput(flags.output, adoptions.map(shown), () => adoptionsTable(adoptions)));
  const ready = adoptions.filter(({ decision }) => decision === 'adopt').length;
  if (!yes) io.err(`countersign: nothing was written; --yes --reason … adopts ${ready} of ${adoptions.length}\n`);
  return exitCode(adoptions, identity !== undefined);
}

/** EC2 tells which instances run; of a TPM only the node itself can tell. */
const noTpm =
  'no API tells which TPM a running node has, so it cannot be adopted: list it (countersign machines allow tpm#…); it goes on record with its next request';

async function policyOf(flags: AdoptFlags, io: Io): Promise<{ readonly name: string; readonly aws: AwsAttestation }> {
  if (configurationFile(flags.config, io) === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      'which machines may join? --config names the countersign.yaml of the cluster',
    );
  const { cluster, source } = await chooseCluster(flags, io);
  const aws = cluster.attestation?.aws;
  if (aws === undefined)
    throw new CommandFailure(
      exitCodes.configuration,
      `${source}: cluster ${cluster.name} has no attestation.aws; machines of other platforms cannot be adopted`,
      cluster.attestation?.tpm === undefined ? undefined : noTpm,
    );
  return { name: cluster.name, aws };
}

/** The rules that name the machines; EC2 does not show which rule a machine uses, so `--name-rule` can choose one. */
function nameRules({ nodeName }: AwsAttestation, wanted: string | undefined): readonly NodeNameRule[] {
  if (wanted === undefined) return nodeName;
  const chosen = nodeName.filter((rule) => ruleText(rule) === wanted);
  if (chosen.length > 0) return chosen;
  throw new CommandFailure(
    exitCodes.usage,
    `--name-rule ${wanted} is not a rule of attestation.aws.nodeName`,
    `it has ${nodeName.map(ruleText).join(', ')}`,
  );
}

function ruleText(rule: NodeNameRule): string {
  if (rule.kind === 'tag') return `tag:${rule.key}`;
  return rule.kind === 'pattern' ? `pattern:${rule.pattern}` : rule.kind;
}

async function allMachines(
  aws: AwsAttestation,
  rules: readonly NodeNameRule[],
  io: Io,
): Promise<readonly FoundMachine[]> {
  const ec2 = await io.connectEc2();
  const filters = instanceFilters(aws);
  const found: FoundMachine[] = [];
  for (const place of placesOf(aws))
    for await (const instance of ec2.listInstances(place, filters))
      // EC2 filtered by state already, but the state may have changed since.
      if (instance.state === 'running') found.push(foundMachine(aws, place, instance, rules));
  return found.toSorted((a, b) => (a.identity < b.identity ? -1 : 1));
}

async function oneMachine(aws: AwsAttestation, identity: string, io: Io): Promise<readonly FoundMachine[]> {
  const named = instanceOf(identity);
  if (named === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      `${fullText(identity)} is not an EC2 instance`,
      identity.startsWith('tpm#')
        ? noTpm
        : 'it looks like aws#aws/123456789012/eu-central-1/i-0123456789abcdef0; insecure machines cannot be adopted',
    );
  const place = placesOf(aws).find(({ account, region }) => account === named.account && region === named.region);
  if (place === undefined)
    throw new CommandFailure(
      exitCodes.refused,
      `attestation.aws has no account ${named.account} in region ${named.region}`,
    );
  const ec2 = await io.connectEc2();
  const instance = await ec2.describeInstance(place, named.instanceId);
  if (instance === 'notFound')
    throw new CommandFailure(exitCodes.notFound, `EC2 has no instance ${named.instanceId} in that account and region`);
  const machine = foundMachine(aws, place, instance);
  if (instance.state === 'running') return [machine];
  const stopped = violation('IdentityNotAllowed', `the instance is ${instance.state}`);
  return [{ ...machine, violations: [stopped, ...machine.violations] }];
}

/** A refused machine is an error only if the operator named it: a list of all machines may hold machines that policy refuses. */
function exitCode(adoptions: readonly Adoption[], single: boolean): ExitCode {
  const some = (...decisions: readonly Adoption['decision'][]): boolean =>
    adoptions.some(({ decision }) => decisions.includes(decision));
  if (some('conflict')) return exitCodes.conflict;
  return single && some('refused', 'no name') ? exitCodes.refused : exitCodes.ok;
}

function shown({ identity, nodeName: node, decision, why, machine: { providerId } }: Adoption): object {
  return { identity, node, providerId, decision, why: why === '' ? undefined : why };
}

function adoptionsTable(adoptions: readonly Adoption[]): string {
  return table([
    ['NODE', 'IDENTITY', 'DECISION', 'WHY'],
    ...adoptions.map(({ nodeName = '-', identity, decision, why }) => [
      fullText(nodeName),
      fullText(identity),
      decision,
      fullText(why),
    ]),
  ]);
}
