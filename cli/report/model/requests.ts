/** Requests without a certificate: those of the cluster, and those that attest refused in the last 25 hours. */
import { refusalReason } from '../../../core/outcome/outcome.ts';
import type { Verdict } from '../../../core/ports/attestation-store.ts';
import { instantText } from '../../output/tofu-text.ts';
import type { RequestView } from '../../requests/request-view.ts';
import { valueOf } from './facts.ts';
import type { Facts } from './facts.ts';
import { isConflict } from './machines.ts';
import { compareText } from './nodes.ts';

export interface RequestRow {
  /** Of the object. Absent for requests that only attest's records tell of. */
  readonly name?: string;
  /** `refused`: by attest, and the cluster was not read or has deleted the request since. */
  readonly state: 'pending' | 'approved' | 'denied' | 'failed' | 'refused';
  /** Of a request its creation; of `refused` the last verdict. */
  readonly since: string;
  readonly signerName: string;
  readonly requester?: string;
  /** The subject, or why the request cannot be read; of `refused` the node. */
  readonly subject: string;
  readonly reason?: string;
  readonly message?: string;
  /** Only of `refused`: how many with the same node, signer and reason. */
  readonly times?: number;
}

const states = ['pending', 'approved', 'failed', 'denied', 'refused'] as const satisfies readonly RequestRow['state'][];

/** Those that wait first, the oldest of them on top; then the others, the latest on top. First-use conflicts of the records are elsewhere. */
export function requestRows({ requests, records }: Pick<Facts, 'requests' | 'records'>): readonly RequestRow[] {
  const listed = valueOf(requests) ?? [];
  const uids = new Set(listed.map(({ uid }) => uid));
  const verdicts = (valueOf(records)?.verdicts ?? []).filter(({ uid }) => !uids.has(uid));
  const rows = [...listed.flatMap((request) => requestRow(request) ?? []), ...refusedByAttest(verdicts)];
  return rows.toSorted(
    (a, b) =>
      states.indexOf(a.state) - states.indexOf(b.state) ||
      (a.state === 'pending' || a.state === 'approved' ? compareText(a.since, b.since) : compareText(b.since, a.since)),
  );
}

function requestRow(request: RequestView): RequestRow | undefined {
  const { name, state, createdAt, signerName, requester, asked, reason, message } = request;
  if (state === 'issued') return undefined;
  const subject = 'problem' in asked ? `cannot be read: ${asked.problem}` : asked.subject;
  return {
    name,
    state,
    since: createdAt,
    signerName,
    requester,
    subject,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
}

function refusedByAttest(verdicts: readonly Verdict[]): readonly RequestRow[] {
  const rows = new Map<string, RequestRow>();
  for (const { decision, mode, violations, nodeName = '', signerName, decidedAt } of verdicts) {
    // In audit mode the request was approved: the audit rows tell of it.
    if (decision !== 'deny' || mode !== 'enforce' || violations === undefined) continue;
    const reason = refusalReason(violations);
    if (violations.some(({ code }) => isConflict(code))) continue;
    const key = JSON.stringify([reason, signerName, nodeName]);
    const before = rows.get(key);
    const since = instantText(decidedAt);
    const latest = before !== undefined && before.since > since ? before : undefined;
    rows.set(key, {
      state: 'refused',
      signerName,
      subject: nodeName === '' ? '' : `node ${nodeName}`,
      reason,
      since: latest?.since ?? since,
      message: latest?.message ?? violations.map(({ message }) => message).join('; '),
      times: (before?.times ?? 0) + 1,
    });
  }
  return [...rows.values()];
}
