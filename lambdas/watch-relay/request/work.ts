/**
 * One request's life in the relay, top to bottom: look at it; while it is pending, decide (approval.ts); once it is
 * approved, ask the sign function and write down what it said.
 *
 * Nothing is remembered between tries. Whatever happens in the middle, the next try looks at the object and asks
 * again; the sign function gives the same certificate for the same UID, and the API server stores the first one only.
 */
import { violation } from '../../../core/outcome/outcome.ts';
import type { Violations } from '../../../core/outcome/outcome.ts';
import { ThrottledError } from '../../../core/ports/errors.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { SignAnswer } from '../../../core/ports/signing-endpoint.ts';
import { decideRequest, refusePending } from './approval.ts';
import type { ApprovalPorts } from './approval.ts';
import { classify, oversizedMessage, sizeOf, uidOf, withoutManagedFields } from '../objects/request-phase.ts';
import { certificateProblem } from '../objects/check-relayed-certificate.ts';
import type { Clock } from '../runtime/clock.ts';
import type { RequestKey } from '../schedule/queue.ts';
import { done, retry, retryOf } from './result.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';
import type { WorkResult } from './result.ts';
import { certificateOf, withCertificate, withFailed } from '../objects/status.ts';

const oversized = [violation('RequestTooLarge', oversizedMessage)] as const;
/** PUTs of one try. Each conflict is a change by somebody else, which is rare in an approved request's life. */
const maxWrites = 3;

/**
 * `passedBy` is the object if it just came by watch or list, and is not oversized; without it the API server is asked.
 */
export async function relayRequest(
  key: RequestKey,
  passedBy: JsonObject | undefined,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  const found: Found | WorkResult =
    passedBy === undefined ? await read(key, ports, signal) : { kind: 'object', object: passedBy, bytes: 0 };
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
      if (phase.oversized) return write(found.object, refusedEnding(oversized, ports.clock), key, ports, signal);
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
  let answer: SignAnswer;
  try {
    answer = await ports.signer.sign(object, signal);
  } catch (error) {
    return retry('EndpointUnreachable', errorMessage(error));
  }
  switch (answer.kind) {
    case 'issued': {
      const { certificatePem } = answer;
      const problem = certificateProblem(certificatePem, request);
      if (problem !== undefined) return retry('CertificateUnusable', problem);
      return write(object, issuedEnding(certificatePem), key, ports, signal);
    }
    case 'refused':
      return write(object, refusedEnding(answer.violations, ports.clock), key, ports, signal);
    case 'ignored':
    case 'invalid':
      return done(answer.kind);
    case 'busy':
    case 'unauthorized':
    case 'unexpected':
      return retryOf(answer);
  }
}

/** What is to be written, and how to see that it was. */
interface Ending {
  apply(object: JsonObject): JsonObject;
  isIn(object: JsonObject): boolean;
  readonly result: WorkResult & { readonly kind: 'done' };
}

function issuedEnding(certificatePem: string): Ending {
  const apply = (object: JsonObject): JsonObject => withCertificate(object, certificatePem);
  const written = certificateOf(apply({}));
  return { apply, isIn: (object) => certificateOf(object) === written, result: { kind: 'done', end: 'issued' } };
}

function refusedEnding(violations: Violations, clock: Clock): Ending {
  return {
    apply: (object) => withFailed(object, violations, clock.now()),
    // Anybody's Failed will do: a request fails only once.
    isIn: (object) => {
      const phase = classify(object);
      return phase.kind === 'settled' && phase.why === 'Failed';
    },
    result: { kind: 'done', end: 'refused', violations },
  };
}

/**
 * Writes it, exactly once as far as anyone can see. The PUT holds only for the resourceVersion we judged: after any
 * other change the object is judged anew, so that no certificate lands on a request that was denied meanwhile (the
 * API server would store it). Crash here: the object shows whether it was written, the next try looks.
 */
async function write(
  object: JsonObject,
  ending: Ending,
  key: RequestKey,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  let current = object;
  let last = retry('ApiConflict', '');
  for (let writes = 0; writes < maxWrites; writes += 1) {
    try {
      const answer = await ports.api.updateStatus(ending.apply(current), signal);
      if (answer.ok && ending.isIn(answer.value)) return { ...ending.result, object: answer.value };
      // Taken and thrown away, as an admission webhook can: counting it as done would begin it again with every event.
      if (answer.ok) return retry('ApiRejected', 'the status was accepted and not stored');
      if (answer.why === 'NotFound') return done('gone');
      if (answer.why === 'Unauthorized' || answer.why === 'Forbidden') return retry('ApiForbidden', answer.message);
      // Nothing was written, and the same again would not be: no look at it, which moves as much.
      if (answer.why === 'TooLarge') return retry('ObjectTooLarge', answer.message);
      last = retry(answer.why === 'Conflict' ? 'ApiConflict' : 'ApiRejected', answer.message);
    } catch (error) {
      if (error instanceof ThrottledError) return retry('ApiBusy', errorMessage(error));
      last = retry('ApiUnreachable', errorMessage(error)); // written or not: only a look tells
    }
    const found = await read(key, ports, signal);
    if (found.kind !== 'object') return found;
    if (ending.isIn(found.object)) return { ...ending.result, object: found.object };
    const phase = classify(found.object);
    if (phase.kind !== 'approved') return done(phase.kind === 'malformed' ? 'malformed' : 'settled');
    // The same again would be rejected again; later, a mended server or relay may take it.
    if (last.cause === 'ApiRejected') return last;
    current = found.object;
  }
  return last;
}

/** `bytes` of its JSON as the API server has it; 0 for what was measured before. */
interface Found {
  readonly kind: 'object';
  readonly object: JsonObject;
  readonly bytes: number;
}

async function read(key: RequestKey, { api }: ApprovalPorts, signal: AbortSignal): Promise<Found | WorkResult> {
  try {
    const answer = await api.get(key.name, signal);
    // The name may have passed to a later request, which has a key of its own.
    if (answer.ok && uidOf(answer.value) !== key.uid) return done('gone');
    if (answer.ok) return { kind: 'object', object: withoutManagedFields(answer.value), bytes: sizeOf(answer.value) };
    switch (answer.why) {
      case 'NotFound':
        return done('gone');
      case 'Unauthorized':
      case 'Forbidden':
        return retry('ApiForbidden', answer.message);
      case 'Conflict':
      case 'Expired':
      case 'Invalid':
        return retry('ApiRejected', answer.message);
      case 'TooLarge':
        return retry('ObjectTooLarge', answer.message);
    }
  } catch (error) {
    return retry(error instanceof ThrottledError ? 'ApiBusy' : 'ApiUnreachable', errorMessage(error));
  }
}
