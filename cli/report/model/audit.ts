/** Which nodes would be denied if audit mode ended, by attest's verdicts of the last 25 hours. */
import { evidenceAnnotation } from '../../../core/attest.ts';
import { refusalReason } from '../../../core/outcome/outcome.ts';
import type { Verdict } from '../../../core/ports/attestation-store.ts';
import { fullText, instantText } from '../../output/tofu-text.ts';
import type { Records } from './facts.ts';

export interface AuditRow {
  readonly node: string;
  readonly signerName?: string;
  /** `unknown`: the node sent no request in the last 25 hours, and no machine is on record under its name. */
  readonly wouldBe: 'approved' | 'denied' | 'unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly seen?: string;
}

export interface Audit {
  readonly nodes: number;
  readonly failing: number;
  readonly passing: number;
  /** Node names by the version of the evidence that attest accepted, to show whether an older version can be switched off. */
  readonly evidence: Readonly<Record<string, readonly string[]>>;
  readonly rows: readonly AuditRow[];
}

/** `nodes`: names of Node objects; empty if they were not read. */
export function auditOf({ verdicts, identities }: Records, nodes: readonly string[]): Audit {
  const rows = auditRows(verdicts, new Set(identities.map(({ nodeName }) => nodeName)), nodes);
  const failing = new Set(rows.filter(({ wouldBe }) => wouldBe !== 'approved').map(({ node }) => node)).size;
  const all = new Set(rows.map(({ node }) => node)).size;
  return { nodes: all, failing, passing: all - failing, evidence: evidenceByVersion(verdicts), rows };
}

function evidenceByVersion(verdicts: readonly Verdict[]): Audit['evidence'] {
  const nodes = new Map<string, Set<string>>();
  for (const { annotations, nodeName = '' } of verdicts) {
    const version = annotations[evidenceAnnotation];
    if (version !== undefined) nodes.set(version, (nodes.get(version) ?? new Set()).add(nodeName));
  }
  const versions = [...nodes.keys()].toSorted();
  return Object.fromEntries(versions.map((version) => [fullText(version), [...(nodes.get(version) ?? [])].toSorted()]));
}

/** Nodes that would fail come first. */
function auditRows(
  verdicts: readonly Verdict[],
  recorded: ReadonlySet<string>,
  nodes: readonly string[],
): readonly AuditRow[] {
  const latest = new Map<string, Verdict>();
  for (const verdict of verdicts) {
    // An enforced verdict already reached the requester.
    if (verdict.mode !== 'audit') continue;
    const key = `${verdict.signerName} ${verdict.nodeName ?? ''}`;
    const before = latest.get(key);
    if (before === undefined || verdict.decidedAt > before.decidedAt) latest.set(key, verdict);
  }
  const rows = [...latest.values()].map(rowOf);
  const known = new Set([...rows.map(({ node }) => node), ...recorded]);
  const silentNodes = nodes.filter((node) => !known.has(node)).map((node): AuditRow => ({ node, ...unknown }));
  const sortKey = ({ wouldBe, node, signerName = '' }: AuditRow): string => `${order[wouldBe]} ${node} ${signerName}`;
  return [...rows, ...silentNodes].toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

const order = { denied: 0, unknown: 1, approved: 2 } as const;
const unknown = {
  wouldBe: 'unknown',
  message: 'it sent no request in 25 h, and no machine is on record under its name: adopt it, or list its TPM',
} as const;

function rowOf({ nodeName = '', signerName, violations, decidedAt }: Verdict): AuditRow {
  const about = { node: nodeName, signerName, seen: instantText(decidedAt) };
  if (violations === undefined) return { ...about, wouldBe: 'approved' };
  const message = violations.map(({ code, message: text }) => `${text} [${code}]`).join('; ');
  return { ...about, wouldBe: 'denied', reason: refusalReason(violations), message };
}
