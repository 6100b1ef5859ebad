/** How one try of one request can end. */
import type { BusyWhy, RefusalCode, Violations } from '../../../core/outcome/outcome.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { NoAnswer } from '../../../core/ports/signing-endpoint.ts';

/** How a request leaves the relay for good, or until somebody changes it. */
export type End =
  | 'issued'
  | 'refused'
  | 'approved' // and comes back by the watch, to be signed
  | 'denied'
  | 'left' // pending, and somebody else's to decide
  | 'ignored' // the endpoint does not know the signer, or sees another state than we do
  | 'invalid' // the endpoint cannot read the object
  | 'malformed' // nor can we
  | 'settled' // answered by somebody else, or not to be answered
  | 'gone';

/** Why a request comes back later. Metric label, log field, and the word in the Event about a delay. */
export type RetryCause =
  | 'EndpointBusy' // asked too often: it, or what it depends on
  | 'EndpointFailing' // what it depends on fails, or it does
  | 'EndpointUnreachable' // no answer: connection or timeout
  | 'EndpointUnauthorized' // 401, 403, or no credentials
  | 'EndpointUnexpected' // an answer that is not ours
  | 'CertificateUnusable' // issued, but not for this key, or not a certificate
  | 'SecondLook' // attest looks a second time, minutes after the first
  | 'Limited' // too much of one machine or requester in a while
  | 'InProgress' // another try of the same request is under way there
  | 'NotPermitted' // the requester may not have it approved (SubjectAccessReview)
  | 'ApiBusy'
  | 'ApiUnreachable'
  | 'ApiForbidden'
  | 'ApiRejected' // the API server does not take what we write
  | 'ObjectTooLarge' // the object is larger than the API server or etcd takes, with our answer on it
  | 'ApiConflict' // somebody keeps changing the object
  | 'Internal'; // a fault of the relay itself

/** What attest said about a pending request, for the metric and the owner. */
export interface Decision {
  /** `noted`: somebody else decides, and the verdict waits for whoever signs. */
  readonly kind: 'approved' | 'denied' | 'noted';
  readonly code: RefusalCode | 'AutoApproved';
  readonly message: string;
}

export type WorkResult =
  | {
      readonly kind: 'done';
      readonly end: End;
      readonly object?: JsonObject;
      readonly violations?: Violations;
      readonly decision?: Decision;
    }
  | {
      readonly kind: 'retry';
      readonly cause: RetryCause;
      readonly detail: string;
      /** Not sooner, the far side says. */
      readonly afterSeconds?: number;
    };

type Done = WorkResult & { readonly kind: 'done' };
type Retry = WorkResult & { readonly kind: 'retry' };

export function done(end: End): Done {
  return { kind: 'done', end };
}

export function retry(cause: RetryCause, detail: string): Retry {
  return { kind: 'retry', cause, detail };
}

/** The endpoint said nothing of its own, or not now. */
export function retryOf(answer: NoAnswer): Retry {
  switch (answer.kind) {
    case 'busy': {
      const { why = 'Throttled', retryAfterSeconds: afterSeconds } = answer;
      return { ...retry(busyCauses[why], why), ...(afterSeconds === undefined ? {} : { afterSeconds }) };
    }
    case 'unauthorized':
      return retry('EndpointUnauthorized', answer.message);
    case 'unexpected':
      return retry('EndpointUnexpected', `HTTP ${answer.status}: ${answer.message}`);
  }
}

const busyCauses: Readonly<Record<BusyWhy, RetryCause>> = {
  Throttled: 'EndpointBusy',
  Unavailable: 'EndpointFailing',
  Internal: 'EndpointFailing',
  InProgress: 'InProgress',
  SecondLook: 'SecondLook',
  Limited: 'Limited',
};
