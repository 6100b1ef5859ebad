/** The answer of `countersign machines prune`, for people and for programs. */
import { table } from '../output/output.ts';
import { fullText, instantText } from '../output/tofu-text.ts';
import type { Finding } from './orphans.ts';

/** What becomes of one machine. */
export interface Row {
  readonly finding: Finding;
  readonly decision: 'prune' | 'pruned' | 'kept';
  readonly why: string;
  readonly nodeObject?: 'found' | 'deleted';
  readonly revoked?: number;
}

const sortKey = ({ finding: { record } }: Row): string => `${record.nodeName} ${record.identity}`;

export function inOrder(rows: readonly Row[]): readonly Row[] {
  return rows.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

export function shownRow({ finding: { record, state }, decision, why, nodeObject, revoked }: Row): object {
  const { nodeName: node, identity, providerId, lastSeen } = record;
  const found = state === 'live' ? 'retired' : state;
  return { node, identity, providerId, lastSeen: instantText(lastSeen), found, decision, why, nodeObject, revoked };
}

export function rowsTable(rows: readonly Row[]): string {
  return table([
    ['NODE', 'IDENTITY', 'LAST SEEN', 'DECISION', 'NODE OBJECT', 'REVOKED', 'WHY'],
    ...rows.map(({ finding: { record }, decision, why, nodeObject = '-', revoked }) => [
      fullText(record.nodeName),
      fullText(record.identity),
      instantText(record.lastSeen),
      decision,
      nodeObject,
      revoked === undefined ? '-' : String(revoked),
      fullText(why),
    ]),
  ]);
}
