/**
 * `countersign machines prune`: reports the records of machines that no longer exist, and cleans them up. Order: two looks, revocations,
 * Node objects, records. The record comes last, so that a run that ended early is finished by the next one.
 */
import { Option } from 'commander';
import { secondLookAfter } from '../../core/attestation/second-look.ts';
import { counted } from '../../core/outcome/counted.ts';
import type { IdentityRecord } from '../../core/ports/attestation-store.ts';
import { awsFailure } from '../aws/aws-failure.ts';
import { addClusterAccess, announce, withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { chooseCluster, configurationFile } from '../cluster/cluster-choice.ts';
import { formatOutput } from '../output/output.ts';
import { addRegisterOptions, announceChange, withRegister } from '../register/place.ts';
import type { RegisterFlags } from '../register/place.ts';
import { withRevocations } from '../revocation/place.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io, OpenRegister } from '../runtime/io.ts';
import { auditItem, reasonOption } from '../runtime/reason.ts';
import type { Author } from '../runtime/reason.ts';
import { deleteNodeObject, nodeObjectsOf } from './node-objects.ts';
import type { NodeObject } from './node-objects.ts';
import { isOrphan, look, lookText, waitFor } from './orphans.ts';
import type { Finding, Orphan, Platform } from './orphans.ts';
import { inOrder, rowsTable, shownRow } from './rows.ts';
import type { Row } from './rows.ts';
import { revokeMachines } from './revoke.ts';

interface PruneFlags extends RegisterFlags, ClusterAccessFlags {
  readonly config?: string;
  readonly reason?: string;
  readonly revoke?: true;
  readonly yes?: true;
  readonly output: string;
}

export function addPrune(machines: CliCommand, io: Io): void {
  addClusterAccess(addRegisterOptions(machines.command('prune')))
    .description(
      'find records of machines that no longer exist, and retired ones beyond their grace. Shows what it would do; --yes does it.\n' +
        'Exit code 1: there are such machines and nothing was changed; 6: a record changed meanwhile and stays',
    )
    .option('--config <file>', 'countersign.yaml with attestation.aws [COUNTERSIGN_CONFIG]')
    .addOption(reasonOption())
    .addOption(new Option('--dry-run', 'change nothing (the default)').conflicts('yes'))
    .option(
      '--yes',
      'remove the records, with an audit item each, and their Node objects with --kubeconfig or --context',
    )
    .option('--revoke', 'with --yes: also revoke the certificates of these machines (cessationOfOperation)')
    .formats('table', 'json', 'yaml')
    .notes(
      'A machine is removed after two looks, two minutes apart, at which EC2 reported it as terminated, or did not know it and it was last seen',
      'more than an hour ago. --yes waits for the second look. A machine that exists, or about which no platform can be asked, stays.',
      'It needs the policy OperatorPolicyArn; --revoke also lambda:InvokeFunction on the ca function. In the cluster: list and delete nodes.',
      'Without --kubeconfig and --context, Node objects are neither read nor deleted. Only a Node with the provider ID of the machine is deleted.',
    )
    .examples(
      'countersign machines prune --cluster prod --config countersign.yaml',
      "countersign machines prune --cluster prod --config countersign.yaml --yes --reason 'the fleet of May ended'",
      "countersign machines prune --cluster prod --yes --revoke --context admin@prod --reason 'scaled in, ticket 4711'",
      'countersign machines prune --cluster prod -o json | jq -r \'.[] | select(.decision == "prune") | .node\'',
    )
    .page('runbook.md')
    .runs((flags: PruneFlags) => prune(flags, io));
}

async function prune(flags: PruneFlags, io: Io): Promise<ExitCode> {
  const { yes = false, revoke = false, reason } = flags;
  if (yes && reason === undefined) throw new CommandFailure(exitCodes.usage, '--yes needs a --reason');
  if (revoke && !yes) throw new CommandFailure(exitCodes.usage, '--revoke needs --yes: a revocation is final');
  const { name, platform } = await platformOf(flags, io);
  const place = { ...flags, ...(flags.data === undefined ? { cluster: name } : {}) };
  const firstLook = io.now();
  const findings = await withRegister(place, io, async ({ register }) => {
    const records = await Array.fromAsync(register.listIdentities());
    return ask(look(records, platform, { now: firstLook, many: true }));
  });
  io.err(`countersign: ${lookText(findings)}\n`);
  const rows =
    yes && reason !== undefined
      ? await clean({ findings, firstLook, platform, place: { ...place, reason } }, io)
      : await plan(findings, flags, io);
  const shown = inOrder(rows);
  io.out(formatOutput(flags.output, shown.map(shownRow), () => rowsTable(shown)));
  if (!yes) {
    const ready = rows.filter(({ decision }) => decision === 'prune').length;
    if (ready > 0) io.err(`countersign: nothing was changed; --yes --reason … removes ${counted(ready, 'record')}\n`);
    return ready === 0 ? exitCodes.ok : exitCodes.refused;
  }
  return rows.some(({ finding, decision }) => isOrphan(finding) && decision === 'kept')
    ? exitCodes.conflict
    : exitCodes.ok;
}

async function platformOf(flags: PruneFlags, io: Io): Promise<{ readonly name: string; readonly platform: Platform }> {
  if (configurationFile(flags.config, io) === undefined)
    throw new CommandFailure(
      exitCodes.usage,
      'which accounts are asked? --config names the countersign.yaml of the cluster',
    );
  const { cluster, source } = await chooseCluster(flags, io);
  const policy = cluster.attestation?.aws;
  if (policy === undefined)
    throw new CommandFailure(
      exitCodes.configuration,
      `${source}: cluster ${cluster.name} has no attestation.aws; of other machines no platform can be asked`,
      'countersign tofu reset removes the record of one machine',
    );
  return { name: cluster.name, platform: { policy, ec2: await io.connectEc2() } };
}

function ask<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error: unknown) => {
    throw awsFailure('EC2', error);
  });
}

/** Retired machines within their grace keep their record, but may have a Node object. */
const mayHaveNode = (finding: Finding): boolean => isOrphan(finding) || finding.record.state === 'retired';

async function plan(findings: readonly Finding[], flags: PruneFlags, io: Io): Promise<readonly Row[]> {
  const shown = findings.filter(mayHaveNode);
  const nodes = await findNodes(shown, flags, io);
  return shown.map((finding) => ({
    finding,
    decision: isOrphan(finding) ? 'prune' : 'kept',
    why: finding.why,
    ...(nodes.has(finding.record.identity) ? { nodeObject: 'found' } : {}),
  }));
}

/** Empty unless the operator named a cluster. */
async function findNodes(
  findings: readonly Finding[],
  flags: ClusterAccessFlags,
  io: Io,
): Promise<ReadonlyMap<string, NodeObject>> {
  if (flags.kubeconfig === undefined && flags.context === undefined) return new Map();
  return withCluster(flags, io, async (cluster) => {
    await announce(cluster, io);
    return nodeObjectsOf(
      findings.map(({ record }) => record),
      cluster,
    );
  });
}

interface Cleaning {
  readonly findings: readonly Finding[];
  readonly firstLook: number;
  readonly platform: Platform;
  readonly place: PruneFlags & { readonly reason: string };
}

async function clean({ findings, firstLook, platform, place }: Cleaning, io: Io): Promise<readonly Row[]> {
  const orphans = findings.filter(isOrphan);
  const wait = Math.max(0, ...orphans.map((each) => waitFor(each, firstLook, io.now())));
  if (wait > 0) {
    io.err(
      `countersign: the second look is in ${Math.ceil(wait / 1_000)} s (${secondLookAfter / 60_000} minutes after the first)\n`,
    );
    await io.pause(wait);
  }
  const { confirmed, kept, author } = await withRegister(place, io, async (open) => ({
    ...(await lookAgain(orphans, platform, open, io)),
    author: await announceChange(open, place, io),
  }));
  const revoked = place.revoke === true ? await revokeAll(confirmed, author, place, io) : undefined;
  const inGrace = findings.filter((each) => !isOrphan(each) && mayHaveNode(each));
  const deleted = await deleteNodes([...confirmed, ...inGrace], place, io);
  const more = ({ identity }: IdentityRecord) => ({
    ...(deleted.has(identity) ? { nodeObject: 'deleted' as const } : {}),
    ...(revoked?.has(identity) === true ? { revoked: revoked.get(identity) ?? 0 } : {}),
  });
  const removed = await withRegister(place, io, async (open) => {
    const rows: Row[] = [];
    for (const finding of confirmed)
      rows.push({ ...(await remove(finding, author, open, io)), ...more(finding.record) });
    return rows;
  });
  return [
    ...removed,
    ...kept,
    ...inGrace.map((finding): Row => ({ finding, decision: 'kept', why: finding.why, ...more(finding.record) })),
  ];
}

interface SecondLook {
  readonly confirmed: readonly Orphan[];
  readonly kept: readonly Row[];
}

/** Of records that did not change since the first look; a machine that was used meanwhile is alive. */
async function lookAgain(
  orphans: readonly Orphan[],
  platform: Platform,
  { store }: OpenRegister,
  io: Io,
): Promise<SecondLook> {
  const confirmed: Orphan[] = [];
  const kept: Row[] = [];
  for (const orphan of orphans) {
    const record = await store.findIdentity(orphan.record.identity);
    if (record === undefined || !isSame(record, orphan.record)) {
      kept.push({ finding: orphan, decision: 'kept', why: 'its record changed since the first look' });
      continue;
    }
    const [again] = await ask(look([record], platform, { now: io.now(), many: false }));
    if (again !== undefined && isOrphan(again)) confirmed.push(again);
    else kept.push({ finding: orphan, decision: 'kept', why: `at the second look: ${again?.why ?? 'no answer'}` });
  }
  return { confirmed, kept };
}

/** The schedule of attest may write its own first look, or erase one. */
function isSame(record: IdentityRecord, first: IdentityRecord): boolean {
  return record.firstSeen === first.firstSeen && record.lastSeen === first.lastSeen && record.uses === first.uses;
}

function revokeAll(
  confirmed: readonly Orphan[],
  author: Author,
  place: PruneFlags,
  io: Io,
): Promise<ReadonlyMap<string, number>> {
  const records = confirmed.map(({ record }) => record);
  return withRevocations(place, io, (open) => revokeMachines(records, author, open, io));
}

async function deleteNodes(findings: readonly Finding[], flags: PruneFlags, io: Io): Promise<ReadonlySet<string>> {
  const deleted = new Set<string>();
  const nodes = await findNodes(findings, flags, io);
  if (nodes.size === 0) return deleted;
  return withCluster(flags, io, async (cluster) => {
    for (const [identity, node] of nodes) if (await deleteNodeObject(node, cluster)) deleted.add(identity);
    return deleted;
  });
}

async function remove(finding: Orphan, author: Author, { register }: OpenRegister, io: Io): Promise<Row> {
  const { record, why } = finding;
  const { identity, nodeName } = record;
  const audit = auditItem({ action: 'reset', subject: identity, nodeName, before: record }, author, io);
  const { kind } = await register.reset(record, audit);
  return kind === 'written'
    ? { finding, decision: 'pruned', why }
    : { finding, decision: 'kept', why: 'its record changed since the second look' };
}
