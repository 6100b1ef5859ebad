/** The report: facts in, one value out. */
import { instantText } from '../../output/tofu-text.ts';
import { attentionOf } from './attention.ts';
import { auditOf } from './audit.ts';
import { caRows, trustRows } from './cas.ts';
import type { HeldCertificate } from './certificates.ts';
import { valueOf } from './facts.ts';
import type { Facts, Part, PartName, Records } from './facts.ts';
import { conflictsOf, machinesOf, shownLock } from './machines.ts';
import { compareText, nodeRows, shownCertificate } from './nodes.ts';
import { requestRows } from './requests.ts';
import { reportFormat } from './shape.ts';
import type { OtherCertificate, Report, ShownPart } from './shape.ts';

const titles = {
  records: 'attestation records',
  certificates: 'certificates of the ledger',
  cas: 'CAs and profiles',
  requests: 'requests of the cluster',
  nodes: 'nodes of the cluster',
  trust: 'what the cluster trusts',
} as const satisfies Readonly<Record<PartName, string>>;

export function reportOf(facts: Facts): Report {
  const { at, version, cluster } = facts;
  const records = valueOf(facts.records);
  const held = valueOf(facts.certificates);
  const deployment = valueOf(facts.cas);
  const consumers = valueOf(facts.trust);
  const known = {
    ...(records === undefined ? {} : auditOf(records, isAttested(records) ? (valueOf(facts.nodes) ?? []) : [])),
    formatVersion: reportFormat,
    at: instantText(at),
    version,
    cluster,
    parts: (Object.keys(titles) as PartName[]).map((name) => shownPart(name, facts[name])),
    fleet: nodeRows(facts),
    otherCertificates: otherCertificates(held ?? [], at),
    ...(records === undefined ? {} : { machines: machinesOf(records) }),
    conflicts: records === undefined ? [] : conflictsOf(records),
    locks: (records?.locks ?? []).map(shownLock),
    requests: requestRows(facts),
    cas: deployment === undefined ? [] : caRows(deployment, held),
    trust: deployment === undefined || consumers === undefined ? [] : trustRows(deployment, consumers),
  } as const;
  return { ...known, attention: attentionOf(known, facts) };
}

/** Without any record the cluster does not use attestation, and its nodes need none. */
function isAttested({ identities, verdicts }: Records): boolean {
  return identities.length > 0 || verdicts.length > 0;
}

function shownPart(name: PartName, part: Part<unknown>): ShownPart {
  const { state } = part;
  if (state !== 'read') return { name, title: titles[name], state, why: part.why };
  return { name, title: titles[name], state, ...(part.note === undefined ? {} : { note: part.note }) };
}

function otherCertificates(held: readonly HeldCertificate[], at: number): readonly OtherCertificate[] {
  return held
    .filter(({ node }) => !node)
    .map((certificate) => ({ holder: certificate.holder, ...shownCertificate(certificate, at) }))
    .toSorted((a, b) => compareText(a.notAfter, b.notAfter) || compareText(a.holder, b.holder));
}
