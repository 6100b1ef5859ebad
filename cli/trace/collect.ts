/** Reads everything about one request. What cannot be read is named, and the rest is read all the same. */
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import type { Verdict } from '../../core/ports/attestation-store.ts';
import type { IssuingRecord } from '../../core/ports/certificate-ledger.ts';
import type { Instant } from '../../core/ports/instant.ts';
import type { Io, OpenTrace } from '../runtime/io.ts';
import { identify } from './identify.ts';
import type { Subject } from './identify.ts';
import { readEvents, readRelayLog, readRequest } from './in-cluster.ts';
import {
  auditMoment,
  functionMoment,
  invocationMoment,
  objectMoments,
  recordMoment,
  sorted,
  verdictMoment,
} from './moments.ts';
import type { Moment } from './moments.ts';
import { attempt, functions, plain, search, visit } from './reader.ts';
import type { Reader, TraceFlags, Unread } from './reader.ts';

export interface Trace {
  readonly uid: string;
  readonly object: JsonObject | undefined;
  readonly record: IssuingRecord | undefined;
  readonly verdict: Verdict | undefined;
  readonly moments: readonly Moment[];
}

export interface Collected {
  /** Absent if no request with this name or serial number was found. */
  readonly trace?: Trace;
  readonly unread: readonly Unread[];
}

const minute = 60_000;
const hour = 60 * minute;
/** kube-controller-manager deletes a pending request after 24 h, an approved one after 1 h. */
const longestLife = 26 * hour;
const mostAuditItems = 100;

export async function collect(subject: Subject, open: OpenTrace, flags: TraceFlags, io: Io): Promise<Collected> {
  const unread: Unread[] = [];
  const reader: Reader = { open, io, flags, unread, withoutCluster: false };
  const found = await identify(subject, reader);
  if (found === undefined) return { unread };
  const { uid } = found;
  const [record, verdict] = await Promise.all([
    attempt(reader, 'the record in the ledger', () => open.findRecord(uid)),
    attempt(reader, 'the verdict', () => open.findVerdict(uid, io.now())),
  ]);
  const range = rangeOf(timesOf(found.object, record, verdict), reader);
  const lines = await linesOf(uid, range, record, reader);
  const cluster = await inCluster(uid, found.object, lines, range.from, reader);
  const object = found.object ?? cluster.object;
  const moments = sorted([
    ...(object === undefined ? [] : objectMoments(object)),
    ...cluster.moments,
    ...lines,
    ...(record === undefined ? [] : [recordMoment(record)]),
    ...(verdict === undefined ? [] : [verdictMoment(verdict)]),
    ...(await auditOf(record?.identity ?? verdict?.identity, verdict?.nodeName, reader)),
  ]);
  return { trace: { uid, object, record, verdict, moments }, unread };
}

async function linesOf(
  uid: string,
  range: Range,
  record: IssuingRecord | undefined,
  reader: Reader,
): Promise<readonly Moment[]> {
  const found = await Promise.all(
    functions.map(async (of) => {
      const lines = await search(reader, { of, pattern: `{ $.uid = "${uid}" }`, ...range });
      return lines.flatMap(({ at, text }) => functionMoment(of, at, text, uid) ?? []);
    }),
  );
  const moments = found.flat();
  const { lambdaRequestId: invocation, state } = record ?? {};
  // An invocation that crashed or ran out of time wrote no line about the request, but Lambda wrote some about it.
  const silent =
    invocation !== undefined &&
    state === 'intent' &&
    plain.test(invocation) &&
    !moments.some(({ details }) => details['lambdaRequestId'] === invocation);
  if (!silent) return moments;
  const ended = await search(reader, { of: 'sign', pattern: `"${invocation}"`, ...range });
  return [...moments, ...ended.flatMap(({ at, text }) => invocationMoment('sign', at, text) ?? [])];
}

/** `known`: the object, if it was read before. `lines`: what the functions logged. */
async function inCluster(
  uid: string,
  known: JsonObject | undefined,
  lines: readonly Moment[],
  since: Instant,
  reader: Reader,
): Promise<{ readonly object: JsonObject | undefined; readonly moments: readonly Moment[] }> {
  const seen = await visit(reader, async (cluster) => {
    const events = await attempt(reader, 'its Events', () => readEvents(cluster, uid));
    const log = await attempt(reader, 'the log of the relay', () => readRelayLog(cluster, uid, since));
    if (log?.endedEarly !== undefined) reader.unread.push({ what: 'the log of the relay', why: log.endedEarly });
    const moments = [...(events ?? []), ...(log?.moments ?? [])];
    const object = known ?? (await findObject(uid, [...lines, ...moments], cluster, reader));
    return { object, moments };
  });
  return seen ?? { object: known, moments: [] };
}

/** The API server finds an object by its name only, and the logs have the name. */
async function findObject(
  uid: string,
  moments: readonly Moment[],
  cluster: ClusterConnection,
  reader: Reader,
): Promise<JsonObject | undefined> {
  const name = moments.map(({ details }) => details['name']).find((each) => typeof each === 'string');
  if (name === undefined) return undefined;
  const object = await attempt(reader, 'the request in the cluster', () => readRequest(cluster, name));
  // A later request may have the same name.
  return objectOf(object?.['metadata'])['uid'] === uid ? object : undefined;
}

interface Range {
  readonly from: Instant;
  readonly to: Instant;
}

interface Times {
  /** Nothing about the request is older. */
  readonly first?: Instant;
  /** A time at which it existed. */
  readonly some?: Instant;
}

function timesOf(
  object: JsonObject | undefined,
  record: IssuingRecord | undefined,
  verdict: Verdict | undefined,
): Times {
  const created = Date.parse(String(objectOf(object?.['metadata'])['creationTimestamp']));
  const some = record?.openedAt ?? verdict?.decidedAt;
  return {
    ...(Number.isFinite(created) ? { first: created } : {}),
    ...(some === undefined ? {} : { some }),
  };
}

/** The part of the logs in which the request can be. The clocks may differ by some minutes. */
function rangeOf({ first, some }: Times, { io, flags }: Reader): Range {
  const now = io.now();
  if (first !== undefined) return { from: first - 5 * minute, to: Math.min(now, first + longestLife) + 5 * minute };
  if (some !== undefined) return { from: some - longestLife, to: Math.min(now, some + longestLife) + 5 * minute };
  return { from: now - flags.sinceSeconds * 1_000, to: now };
}

async function auditOf(
  identity: string | undefined,
  nodeName: string | undefined,
  reader: Reader,
): Promise<readonly Moment[]> {
  if (identity === undefined && nodeName === undefined) return [];
  const items = await attempt(reader, 'the audit items', () => Array.fromAsync(reader.open.listAudit()));
  const about = (items ?? []).filter(
    (item) =>
      (identity !== undefined && item.subject === identity) ||
      (nodeName !== undefined && (item.nodeName === nodeName || item.subject === nodeName)),
  );
  return about.slice(-mostAuditItems).map(auditMoment);
}
