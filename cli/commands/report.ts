/** `countersign report`: which nodes would be denied if audit mode ended, by attest's verdicts of the last 25 hours. */
import { evidenceAnnotation } from '../../core/attest.ts';
import type { IdentityRecord, Verdict } from '../../core/ports/attestation-store.ts';
import { refusalReason } from '../../core/outcome/outcome.ts';
import type { CliCommand } from '../runtime/command.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { ExitCode } from '../runtime/exit.ts';
import type { Io } from '../runtime/io.ts';
import { withCluster } from '../cluster/cluster-access.ts';
import type { ClusterAccessFlags } from '../cluster/cluster-access.ts';
import { allPages } from '../cluster/object-answers.ts';
import { formatOutput, table } from '../output/output.ts';
import { addRegisterOptions, withRegister } from '../register/place.ts';
import type { RegisterFlags } from '../register/place.ts';
import { instantText, fullText } from '../output/tofu-text.ts';

interface ReportFlags extends RegisterFlags, ClusterAccessFlags {
  readonly output: string;
}

interface ReportRow {
  readonly node: string;
  readonly signerName?: string;
  /** `unknown`: the node sent no request in the last 25 hours, and no machine is on record under its name. */
  readonly wouldBe: 'approved' | 'denied' | 'unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly seen?: string;
}

export function reportCommand(program: CliCommand, io: Io): void {
  addRegisterOptions(program.command('report'))
    .description(
      'list which nodes would be denied if audit mode ended today, by the latest request of each node and signer in the\n' +
        'last 25 h, and count the nodes by the version of their evidence.\n' +
        'Exit code 0: no node would fail. 1: some would.',
    )
    .option(
      '--kubeconfig <file>',
      'also list the nodes of this cluster without a request or a record (needs list on nodes)',
    )
    .option('--context <name>', 'context of that kubeconfig')
    .formats('table', 'json', 'yaml')
    .notes(
      'Nodes renew their certificates rarely. A node without a request in the last 25 h is listed only with --kubeconfig.',
    )
    .examples('countersign report --cluster prod', 'countersign report --cluster prod --kubeconfig admin.conf -o json')
    .runs((flags: ReportFlags) => report(flags, io));
}

async function report(flags: ReportFlags, io: Io): Promise<ExitCode> {
  if (flags.context !== undefined && flags.kubeconfig === undefined)
    throw new CommandFailure(exitCodes.usage, '--context needs --kubeconfig');
  const nodes = flags.kubeconfig === undefined ? [] : await nodeNames(flags.kubeconfig, flags, io);
  const { verdicts, records } = await withRegister(flags, io, async ({ register }) => ({
    verdicts: await Array.fromAsync(register.listVerdicts(io.now())),
    records: await Array.fromAsync(register.listIdentities()),
  }));
  const rows = reportRows(verdicts, records, nodes);
  const failing = new Set(rows.filter(({ wouldBe }) => wouldBe !== 'approved').map(({ node }) => node));
  const counts = { nodes: new Set(rows.map(({ node }) => node)).size, failing: failing.size };
  const passing = counts.nodes - counts.failing;
  const evidence = evidenceByVersion(verdicts);
  const used = Object.entries(evidence).map(([version, names]) => `${version} by ${names.length}\n`);
  const text = () =>
    `${rowsTable(rows)}\n${used.join('')}${counts.nodes} nodes: ${counts.failing} would fail, ${passing} pass\n`;
  io.out(formatOutput(flags.output, { ...counts, passing, evidence, rows }, text));
  return counts.failing === 0 ? exitCodes.ok : exitCodes.refused;
}

/** Node names by the version of the evidence that attest accepted, to show whether an older version can be switched off. */
function evidenceByVersion(verdicts: readonly Verdict[]): Readonly<Record<string, readonly string[]>> {
  const nodes = new Map<string, Set<string>>();
  for (const { annotations, nodeName = '' } of verdicts) {
    const version = annotations[evidenceAnnotation];
    if (version !== undefined) nodes.set(version, (nodes.get(version) ?? new Set()).add(nodeName));
  }
  const versions = [...nodes.keys()].toSorted();
  return Object.fromEntries(versions.map((version) => [fullText(version), [...(nodes.get(version) ?? [])].toSorted()]));
}

/** Nodes that would fail come first. */
function reportRows(
  verdicts: readonly Verdict[],
  records: readonly IdentityRecord[],
  nodes: readonly string[],
): readonly ReportRow[] {
  const latest = new Map<string, Verdict>();
  for (const verdict of verdicts) {
    // An enforced verdict already reached the requester.
    if (verdict.mode !== 'audit') continue;
    const key = `${verdict.signerName} ${verdict.nodeName ?? ''}`;
    const before = latest.get(key);
    if (before === undefined || verdict.decidedAt > before.decidedAt) latest.set(key, verdict);
  }
  const rows = [...latest.values()].map(rowOf);
  const known = new Set([...rows.map(({ node }) => node), ...records.map(({ nodeName }) => nodeName)]);
  const silentNodes = nodes.filter((node) => !known.has(node)).map((node): ReportRow => ({ node, ...unknown }));
  const sortKey = ({ wouldBe, node, signerName = '' }: ReportRow): string => `${order[wouldBe]} ${node} ${signerName}`;
  return [...rows, ...silentNodes].toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

const order = { denied: 0, unknown: 1, approved: 2 } as const;
const unknown = {
  wouldBe: 'unknown',
  message: 'it sent no request in 25 h, and no machine is on record under its name: adopt it, or list its TPM',
} as const;

function rowOf({ nodeName = '', signerName, violations, decidedAt }: Verdict): ReportRow {
  const about = { node: nodeName, signerName, seen: instantText(decidedAt) };
  if (violations === undefined) return { ...about, wouldBe: 'approved' };
  const message = violations.map(({ code, message: text }) => `${text} [${code}]`).join('; ');
  return { ...about, wouldBe: 'denied', reason: refusalReason(violations), message };
}

function rowsTable(rows: readonly ReportRow[]): string {
  return table([
    ['NODE', 'SIGNER', 'WOULD BE', 'WHY', 'SEEN'],
    ...rows.map(({ node, signerName = '-', wouldBe, message = '-', seen = '-' }) => [
      fullText(node),
      fullText(signerName),
      wouldBe,
      fullText(message),
      seen,
    ]),
  ]);
}

async function nodeNames(kubeconfig: string, flags: ReportFlags, io: Io): Promise<readonly string[]> {
  if (!io.fileExists(kubeconfig)) throw new CommandFailure(exitCodes.notFound, `there is no file ${kubeconfig}`);
  const hints = { Forbidden: 'it needs the verb list on nodes' };
  const nodes = await withCluster(flags, io, ({ core }) =>
    allPages((page) => core.listNode({ ...page }), 'nodes', hints),
  );
  return nodes.map(({ metadata }) => metadata?.name ?? '');
}
