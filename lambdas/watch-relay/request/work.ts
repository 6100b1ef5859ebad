/**
 * One try of one request: read it; if it is pending, decide (approval.ts); if it is approved, call the sign function and
 * write its answer to the status.
 *
 * Nothing is remembered between tries. After a failure at any point the next try reads the object and calls sign again; the
 * sign function returns the same certificate for the same UID, and the API server stores the first one only.
 */
import { violation } from '../../../core/outcome/outcome.ts';
import type { Violations } from '../../../core/outcome/outcome.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import { decideRequest, refusePending } from './approval.ts';
import type { ApprovalPorts } from './approval.ts';
import { classify, oversizedMessage, sizeOf, uidOf, withoutManagedFields } from '../objects/request-phase.ts';
import { certificateProblem } from '../objects/check-relayed-certificate.ts';
import type { Clock } from '../runtime/clock.ts';
import type { RequestKey } from '../schedule/queue.ts';
import { apiUnreachable, askEndpoint, done, refusedByApi, retry } from './result.ts';
import type { RetryCause, WorkResult } from './result.ts';
import { certificateOf, withCertificate, withFailed } from '../objects/status.ts';

const oversized = [violation('RequestTooLarge', oversizedMessage)] as const;
/** PUTs of one try. A conflict means that another client changed the object, which is rare after the approval. */
const maxWrites = 3;
/** Nothing was written: read the object again, since it may have changed. */
const rereadAfter: ReadonlySet<RetryCause> = new Set(['ApiConflict', 'ApiRejected']);

/** `cached`: the object from the watch or list, if it is not oversized; without it the object is read. */
export async function relayRequest(
  key: RequestKey,
  cached: JsonObject | undefined,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  const found: Found | WorkResult =
    cached === undefined ? await read(key, ports, signal) : { kind: 'object', object: cached, bytes: 0 };
  if (found.kind !== 'object') return found;
  const phase = classify(found.object, found.bytes);
  switch (phase.kind) {
    case 'settled':
    case 'malformed':
      return done(phase.kind);
    case 'pending':
      return phase.oversized
        ? refusePending(found.object, phase.object, oversized, ports, signal)
        : decideRequest(found.object, phase.object, ports, signal);
    case 'approved':
      if (phase.oversized) return write(found.object, failedUpdate(oversized, ports.clock), key, ports, signal);
      return signRequest(key, found.object, phase.object.request, ports, signal);
  }
}

async function signRequest(
  key: RequestKey,
  object: JsonObject,
  request: Uint8Array,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  const answer = await askEndpoint(() => ports.signer.sign(object, signal));
  switch (answer.kind) {
    case 'issued': {
      const { certificatePem } = answer;
      const problem = certificateProblem(certificatePem, request);
      if (problem !== undefined) return retry('CertificateUnusable', problem);
      return write(object, issuedUpdate(certificatePem), key, ports, signal);
    }
    case 'refused':
      return write(object, failedUpdate(answer.violations, ports.clock), key, ports, signal);
    case 'ignored':
    case 'invalid':
      return done(answer.kind);
    case 'retry':
      return answer;
  }
}

/** An answer to write into the status, and how to recognise it in an object. */
interface StatusUpdate {
  apply(object: JsonObject): JsonObject;
  isStoredIn(object: JsonObject): boolean;
  readonly result: WorkResult & { readonly kind: 'done' };
}

function issuedUpdate(certificatePem: string): StatusUpdate {
  const apply = (object: JsonObject): JsonObject => withCertificate(object, certificatePem);
  const written = certificateOf(apply({}));
  return { apply, isStoredIn: (object) => certificateOf(object) === written, result: { kind: 'done', end: 'issued' } };
}

function failedUpdate(violations: Violations, clock: Clock): StatusUpdate {
  return {
    apply: (object) => withFailed(object, violations, clock.now()),
    // A Failed condition of another client counts too: a request fails only once.
    isStoredIn: (object) => {
      const phase = classify(object);
      return phase.kind === 'settled' && phase.why === 'Failed';
    },
    result: { kind: 'done', end: 'refused', violations },
  };
}

/**
 * Writes the answer at most once. The PUT is valid only for the resourceVersion that was classified: after any other
 * change the object is read and classified again, so that no certificate is written to a request that has been denied
 * meanwhile (the API server would store it). After a crash here the next try sees in the object whether it was written.
 */
async function write(
  object: JsonObject,
  update: StatusUpdate,
  key: RequestKey,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  let current = object;
  let last = retry('ApiConflict', '');
  for (let writes = 0; writes < maxWrites; writes += 1) {
    try {
      const answer = await ports.api.updateStatus(update.apply(current), signal);
      if (answer.ok && update.isStoredIn(answer.value)) return { ...update.result, object: answer.value };
      // An admission webhook can remove the answer from the update. If that ended the try, each event would start it over.
      if (answer.ok) return retry('ApiRejected', 'the API server did not store the status');
      const refused = refusedByApi(answer.problem);
      if (refused.kind === 'done' || !rereadAfter.has(refused.cause)) return refused;
      last = refused;
    } catch (error) {
      last = apiUnreachable(error); // the next read shows whether it was written
      if (last.cause === 'ApiBusy') return last;
    }
    const found = await read(key, ports, signal);
    if (found.kind !== 'object') return found;
    if (update.isStoredIn(found.object)) return { ...update.result, object: found.object };
    const phase = classify(found.object);
    if (phase.kind !== 'approved') return done(phase.kind === 'malformed' ? 'malformed' : 'settled');
    // The API server would reject the same PUT again now, but perhaps not after an upgrade.
    if (last.cause === 'ApiRejected') return last;
    current = found.object;
  }
  return last;
}

/** `bytes`: the size of the object's JSON as stored; 0 for a cached object, which is not oversized. */
interface Found {
  readonly kind: 'object';
  readonly object: JsonObject;
  readonly bytes: number;
}

async function read(key: RequestKey, { api }: ApprovalPorts, signal: AbortSignal): Promise<Found | WorkResult> {
  try {
    const answer = await api.get(key.name, signal);
    if (!answer.ok) return refusedByApi(answer.problem);
    // Another UID: the request was deleted, and a later one has its name.
    if (uidOf(answer.value) !== key.uid) return done('gone');
    return { kind: 'object', object: withoutManagedFields(answer.value), bytes: sizeOf(answer.value) };
  } catch (error) {
    return apiUnreachable(error);
  }
}
