import type { Violations } from '../../../core/outcome/outcome.ts';
import { refusalReason } from '../../../core/outcome/outcome.ts';
import type { JsonObject, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import type { Clock } from '../runtime/clock.ts';
import type { RequestKey } from '../schedule/queue.ts';
import { microTime, truncate } from '../objects/status.ts';
import type { Decision, RetryCause } from './result.ts';

/** Limits of events.k8s.io/v1: note in bytes, reportingInstance in characters. */
const maxNoteBytes = 1_024;
const maxInstanceLength = 128;
/** If more Events wait, the API server is overloaded, and new Events are dropped. */
const maxWaiting = 256;

/**
 * Events for `kubectl describe csr`: why a request was refused, or what delays it. There is no Event for an issued
 * certificate: the object shows it, and a burst of certificates must not become a burst of Events.
 *
 * Best effort, one at a time; no request waits for its Event. The name contains the request's UID, so that a request has
 * at most one Event of each kind.
 */
export interface EventSink {
  refused(key: RequestKey, violations: Violations): void;
  /** Attest refused the request. The relay wrote Denied, or another approver decides. */
  denied(key: RequestKey, decision: Decision): void;
  delayed(key: RequestKey, cause: RetryCause): void;
  backlogged(key: RequestKey): void;
  /** Resolves when each Event has been tried once. */
  idle(): Promise<void>;
}

export function createEventSink(
  api: RequestApi,
  clock: Clock,
  /** Names this replica. */
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
          count(answer.ok || answer.problem.why === 'Conflict' ? 'created' : 'failed');
        } catch {
          count('failed');
        }
      }
    } finally {
      sending = undefined;
    }
  }

  /** `ending` is never cut off. */
  function post({ uid, name }: RequestKey, kind: string, reason: string, text: string, ending = ''): void {
    const note = truncate(text, maxNoteBytes - Buffer.byteLength(ending)) + ending;
    if (waiting.length >= maxWaiting) return count('dropped');
    waiting.push({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: `countersign-${uid.toLowerCase()}.${kind}`, namespace: 'default' },
      eventTime: microTime(clock.now()),
      type: 'Warning',
      reason,
      note,
      action: 'Sign',
      reportingController: 'countersign.dev/watch-relay',
      reportingInstance: instance.slice(0, maxInstanceLength),
      regarding: { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', name, uid },
    });
    // Started later: if the first call throws synchronously, `send` would end before `sending` is set.
    sending ??= Promise.resolve().then(send);
  }

  return {
    refused: (key, violations) =>
      post(
        key,
        'refused',
        refusalReason(violations),
        byCode(violations),
        `. More: countersign csr explain ${key.name}`,
      ),
    // Attest decides by records too, which csr explain does not read.
    denied(key, { kind, code, message }) {
      const text = kind === 'denied' ? message : `If it is approved, it will not be signed. ${message}`;
      post(key, 'denied', code, text, `. More: countersign trace ${key.name}`);
    },
    backlogged: (key) =>
      post(key, 'delayed', 'SigningDelayed', 'Many requests of the same requester wait; they are answered in turn.'),
    // Only the category: the requester must not read details of the operator's configuration.
    delayed: (key, cause) =>
      post(key, 'delayed', 'SigningDelayed', `Not signed yet, and tried again until it is: ${delays[cause]}.`),
    idle: async () => sending,
  };
}

/**
 * The condition has the in-tree text, the reason of the Event is the code of the first violation. So its messages come first and
 * without it; those of each other code follow behind that code.
 */
function byCode(violations: Violations): string {
  const first = refusalReason(violations);
  const groups = Map.groupBy(violations, ({ code }) => code);
  const texts = [...groups].map(([code, same]) => {
    const messages = same.map(({ message }) => message).join('; ');
    return code === first ? messages : `${code}: ${messages}`;
  });
  return texts.join('. ');
}

const delays: Readonly<Record<RetryCause, string>> = {
  EndpointBusy: 'the signing endpoint is busy',
  EndpointFailing: 'the signing endpoint cannot answer now',
  EndpointFunctionFailed: 'the function of the signing endpoint gives no answer',
  EndpointUnreachable: 'the signing endpoint cannot be reached',
  EndpointUnauthorized: 'the signing endpoint does not accept the relay',
  EndpointUnexpected: 'the signing endpoint gives an unexpected answer',
  CertificateUnusable: 'the signing endpoint gave a certificate that is not for this request',
  SecondLook: 'the machine is examined a second time, minutes after the first',
  Limited: 'its machine or its requester sends too many requests in a short time',
  InProgress: 'the signing endpoint works on an earlier delivery of it',
  NotPermitted: 'its requester lacks the permission for an approval (SubjectAccessReview)',
  MachinesNotRead: 'the relay cannot read the Machines of the management cluster',
  ApiBusy: 'the API server is busy',
  ApiUnreachable: 'the API server cannot be reached',
  ApiForbidden: 'the relay may not write to this request',
  ApiRejected: 'the API server rejects what the relay writes',
  ObjectTooLarge: 'the object is too large for an answer to be stored in it',
  ApiConflict: 'the request keeps changing',
  Internal: 'a defect of the relay',
};
