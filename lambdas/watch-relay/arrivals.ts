/** Handles an object of a list or watch: queues its key if there is work to do. */
import { nodesGroup, nodeUserPrefix } from '../../core/policy/in-tree-rules.ts';
import { isAddressable } from '../../core/kubernetes/certificate-signing-request.ts';
import type { RequestObject } from '../../core/kubernetes/certificate-signing-request.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { decides } from './request/approval.ts';
import type { AskedOnce } from './request/asked-once.ts';
import { createdAt, classify, nameOf, sizeOf, uidOf, withoutManagedFields } from './objects/request-phase.ts';
import type { Clock } from './runtime/clock.ts';
import type { EventSink } from './request/events.ts';
import type { createLineLimit, Log } from './runtime/log.ts';
import type { RelayMetrics } from './observe/metrics.ts';
import type { ObjectCache } from './objects/object-cache.ts';
import type { RelayOptions } from './settings/options.ts';
import type { Arrival, RequestKey, RequestQueue } from './schedule/queue.ts';
import type { Step } from './schedule/fair-queue.ts';

/**
 * An ordinary request with evidence is smaller. A larger one counts as several of its requester's requests in flight:
 * 24 requests of 190 KB in flight keep the API server so busy that a join takes seconds.
 */
const bytesPerPlace = 16_384;

/** The part of the session that an arriving object changes. */
export interface ArrivalSession {
  readonly queue: RequestQueue;
  readonly held: ObjectCache;
  readonly events: EventSink;
  readonly asked: AskedOnce;
  /** Limits log lines that a requester can cause repeatedly. */
  readonly lineLimit: ReturnType<typeof createLineLimit>;
}

export interface ArrivalPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RelayMetrics;
}

/** Queues the key of a request that needs work, and caches its object if there is room. */
export function takeArrival(
  signerName: string,
  object: JsonObject,
  bytes: number | undefined,
  session: ArrivalSession,
  { policies }: RelayOptions,
  ports: ArrivalPorts,
): void {
  const { log, metrics } = ports;
  const { queue, held, events, asked } = session;
  const size = bytes ?? sizeOf(object);
  const phase = classify(object, size);
  // An approval is never removed, so a pending state that arrives after it is stale and must be ignored; otherwise the
  // request would wait for an approver again.
  if (phase.kind === 'pending' && queue.stepOf(phase.object.uid) === 'sign') return;
  const toDecide = phase.kind === 'pending' && decides(policies.get(signerName)) && !asked.has(phase.object.uid);
  if (phase.kind === 'approved' || toDecide) {
    const { uid, name, username: requester } = phase.object;
    const key = { uid, name, signerName };
    if (phase.oversized) {
      reportOversized({ ...key, requester, bytes: size }, session, ports);
      // No client can write to an object whose name does not fit into a URL.
      if (!isAddressable(name)) return forgetArrival(object, session);
      held.drop(uid);
    } else held.put(uid, withoutManagedFields(object), size);
    const attested = policies.get(signerName)?.attestation !== undefined;
    const endpointStep = phase.kind === 'approved' ? 'sign' : attested ? 'attest' : 'approve';
    const step = phase.oversized ? 'refuse' : endpointStep;
    const created = createdAt(object) ?? ports.clock.now();
    const added = queue.add(key, arrivalOf(phase.object, step, size, created));
    if (added === 'backlogged') {
      log.warn({ ...key, requester }, 'many requests of one requester wait');
      events.backlogged(key);
    }
    return;
  }
  if (phase.kind === 'pending') {
    held.drop(phase.object.uid);
    return;
  }
  forgetArrival(object, session);
  if (phase.kind === 'malformed') {
    metrics.malformed(signerName);
    const due = session.lineLimit('malformed');
    const fields = { signerName, name: nameOf(object), uid: uidOf(object), detail: phase.message, ...due };
    if (due !== undefined) log.error(fields, 'object malformed');
  }
}

/** Counts and logs an oversized object, without an alarm, since a requester can create any number of them. */
export function reportOversized(
  fields: Partial<RequestKey> & { readonly signerName: string; readonly requester?: string; readonly bytes: number },
  { lineLimit }: ArrivalSession,
  { log, metrics }: ArrivalPorts,
): void {
  metrics.oversized(fields.signerName);
  const due = lineLimit('oversized');
  if (due !== undefined) log.warn({ ...fields, ...due }, 'object too large');
}

function arrivalOf({ username, groups }: RequestObject, step: Step, bytes: number, created: Instant): Arrival {
  // The API server authenticated the user: only nodes of the cluster have this name and group.
  const node = username.startsWith(nodeUserPrefix) && groups.includes(nodesGroup);
  // Oversized requests are refused one at a time, and do not count as requests in flight.
  const weight = step === 'refuse' ? 0 : Math.max(1, Math.ceil(bytes / bytesPerPlace));
  return { requester: username, priority: node ? 'renewal' : 'other', step, weight, createdAt: created };
}

export function forgetArrival(object: JsonObject, { queue, held, asked }: ArrivalSession): void {
  const uid = uidOf(object);
  if (uid === undefined) return;
  held.drop(uid);
  asked.drop(uid);
  queue.forget(uid);
}
