/** The nodes of the report: from the records, the certificates and the cluster, each under its name. */
import type { IdentityRecord } from '../../../core/ports/attestation-store.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import { instantText } from '../../output/tofu-text.ts';
import { stateOf } from './certificates.ts';
import type { CertificateState, HeldCertificate } from './certificates.ts';
import { valueOf } from './facts.ts';
import type { Facts } from './facts.ts';

/**
 * What a node needs, the worst first. `none`: it is in the cluster, and the ledger has no certificate of it. `gone`: it is not in the
 * cluster any more, so its certificate may end. `unread`: the certificates were not read.
 */
export const standings = ['ended', 'late', 'none', 'revoked', 'locked', 'unread', 'due', 'valid', 'gone'] as const;
export type Standing = (typeof standings)[number];

export interface ShownCertificate {
  readonly signerName: string;
  readonly serial: string;
  readonly notBefore: string;
  readonly notAfter: string;
  readonly state: CertificateState;
}

export interface NodeRow {
  readonly node: string;
  readonly standing: Standing;
  /** Absent: the cluster was not read. */
  readonly inCluster?: boolean;
  /** The machine on record under this name. */
  readonly machine?: string;
  readonly lastSeen?: string;
  /** The latest of each signer, the next to end first. */
  readonly certificates: readonly ShownCertificate[];
}

export function nodeRows({ at, records, certificates, nodes }: Facts): readonly NodeRow[] {
  const present = valueOf(nodes);
  const known = valueOf(records);
  const held = Map.groupBy(
    (valueOf(certificates) ?? []).filter(({ node }) => node),
    ({ holder }) => holder,
  );
  const active = new Map<string, IdentityRecord>();
  for (const record of known?.identities ?? []) if (record.state === 'active') active.set(record.nodeName, record);
  const locked = new Set(known?.locks.flatMap(({ nodeName, identity }) => [nodeName, identity]));
  const inCluster = present === undefined ? undefined : new Set(present);
  const names = new Set([...(present ?? []), ...active.keys(), ...held.keys()]);
  const rows = [...names].map((node): NodeRow => {
    const record = active.get(node);
    const shown = (held.get(node) ?? []).map((certificate) => shownCertificate(certificate, at)).toSorted(earlierEnd);
    const isThere = inCluster?.has(node);
    const isLocked = locked.has(node) || (record !== undefined && locked.has(record.identity));
    return {
      node,
      standing: standingOf(shown, { isThere, isLocked, isRead: certificates.state === 'read' }),
      ...(isThere === undefined ? {} : { inCluster: isThere }),
      ...(record === undefined ? {} : { machine: record.identity, lastSeen: instantText(record.lastSeen) }),
      certificates: shown,
    };
  });
  const rank = new Map(standings.map((standing, index) => [standing, index]));
  return rows.toSorted(
    (a, b) =>
      (rank.get(a.standing) ?? 0) - (rank.get(b.standing) ?? 0) ||
      compareText(a.certificates[0]?.notAfter ?? '9', b.certificates[0]?.notAfter ?? '9') ||
      compareText(a.node, b.node),
  );
}

export function shownCertificate(certificate: HeldCertificate, now: Instant): ShownCertificate {
  const { signerName, serial, notBefore, notAfter } = certificate;
  return {
    signerName,
    serial,
    notBefore: instantText(notBefore),
    notAfter: instantText(notAfter),
    state: stateOf(certificate, now),
  };
}

function standingOf(
  certificates: readonly ShownCertificate[],
  { isThere, isLocked, isRead }: { isThere: boolean | undefined; isLocked: boolean; isRead: boolean },
): Standing {
  if (isThere === false) return 'gone';
  if (isLocked) return 'locked';
  if (!isRead) return 'unread';
  const states = new Set(certificates.map(({ state }) => state));
  const worst = (['ended', 'late', 'revoked', 'due', 'valid'] as const).find((state) => states.has(state));
  return worst ?? 'none';
}

function earlierEnd(a: ShownCertificate, b: ShownCertificate): number {
  return compareText(a.notAfter, b.notAfter);
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
