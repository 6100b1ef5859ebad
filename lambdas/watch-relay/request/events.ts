import type { Violations } from '../../../core/outcome/outcome.ts';
import { refusalMessage, refusalReason } from '../../../core/outcome/outcome.ts';
import type { JsonObject, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import type { Clock } from '../runtime/clock.ts';
import type { RequestKey } from '../schedule/queue.ts';
import { microTime, truncate } from '../objects/status.ts';
import type { Decision, RetryCause } from './result.ts';

/** Limits of events.k8s.io/v1: note in bytes, reportingInstance in characters. */
const maxNoteBytes = 1_024;
const maxInstanceLength = 128;
/** More than this unsent: the API server has other worries than our Events. */
const maxWaiting = 256;

/**
 * Tells the owner of a request what `kubectl describe csr` should show: why it was refused, or that it hangs and on
 * what. Not that it was issued: the object says so, and a burst of certificates must not become a burst of Events.
 *
 * Best effort, one at a time, never waited for. Names are made of the request's UID, so a repetition meets
 * "already exists" and there is at most one Event of each sort per request.
 */
export interface EventSink {
  refused(key: RequestKey, violations: Violations): void;
  /** Attest said no: written as Denied, or noted for whoever decides. */
  denied(key: RequestKey, decision: Decision): void;
  delayed(key: RequestKey, cause: RetryCause): void;
  /** Many of the same requester wait. */
  backlogged(key: RequestKey): void;
  /** When all that were taken in have been tried. */
  idle(): Promise<void>;
}

export function createEventSink(
  api: RequestApi,
  clock: Clock,
  /** Which replica says it. */
  instance: string,
  signal: AbortSignal,
  count: (result: 'created' | 'failed' | 'dropped') => void,
): EventSink {
  const waiting: JsonObject[] = [];
  let sending: Promise<void> | undefined;

  async function send(): Promise<void> {
    try {
      for (let event = waiting.shift(); event !== undefined && !signal.aborted; event = waiting.shift()) {
        try {
          const answer = await api.createEvent(event, signal);
          count(answer.ok || answer.why === 'Conflict' ? 'created' : 'failed');
        } catch {
          count('failed');
        }
      }
    } finally {
      sending = undefined;
    }
  }

  function post({ uid, name }: RequestKey, sort: string, reason: string, note: string): void {
    if (waiting.length >= maxWaiting) return count('dropped');
    waiting.push({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: `countersign-${uid.toLowerCase()}.${sort}`, namespace: 'default' },
      eventTime: microTime(clock.now()),
      type: 'Warning',
      reason,
      note: truncate(note, maxNoteBytes),
      action: 'Sign',
      reportingController: 'countersign.dev/watch-relay',
      reportingInstance: instance.slice(0, maxInstanceLength),
      regarding: { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', name, uid },
    });
    // Not at once: a call that throws before it waits for anything would have it over before it is `sending`.
    sending ??= Promise.resolve().then(send);
  }

  return {
    refused: (key, violations) => post(key, 'refused', refusalReason(violations), notes(violations)),
    denied: (key, { kind, code, message }) =>
      post(
        key,
        'denied',
        code,
        kind === 'denied' ? message : `Whoever approves it: it would not be signed. ${message}`,
      ),
    backlogged: (key) =>
      post(key, 'delayed', 'SigningDelayed', 'Many requests of the same requester wait; they are answered in turn.'),
    // The category only: details of the operator's configuration are not the requester's to read.
    delayed: (key, cause) =>
      post(key, 'delayed', 'SigningDelayed', `Not signed yet, and tried again until it is: ${delays[cause]}.`),
    idle: async () => sending,
  };
}

/** The condition carries the in-tree text; the Event adds which code each violation has. */
function notes(violations: Violations): string {
  const codes = [...new Set(violations.map(({ code }) => code))];
  return codes.length === 1 ? refusalMessage(violations) : violations.map((v) => `${v.code}: ${v.message}`).join('; ');
}

const delays: Readonly<Record<RetryCause, string>> = {
  EndpointBusy: 'the signing endpoint is busy',
  EndpointFailing: 'the signing endpoint cannot answer now',
  EndpointUnreachable: 'the signing endpoint cannot be reached',
  EndpointUnauthorized: 'the signing endpoint does not accept the relay',
  EndpointUnexpected: 'the signing endpoint gives an answer that is not its own',
  CertificateUnusable: 'the signing endpoint gave a certificate that is not for this request',
  SecondLook: 'the machine is looked at a second time, minutes after the first',
  Limited: 'its machine or its requester has too many requests in a short time',
  InProgress: 'the signing endpoint is at it already',
  NotPermitted: 'its requester may not have such requests approved (SubjectAccessReview)',
  ApiBusy: 'the API server is busy',
  ApiUnreachable: 'the API server cannot be reached',
  ApiForbidden: 'the relay may not write to this request',
  ApiRejected: 'the API server rejects what the relay writes',
  ObjectTooLarge: 'the object is too large for an answer to be stored in it',
  ApiConflict: 'the request keeps changing',
  Internal: 'of a fault in the relay',
};
