/** How one try of one request can end. */
import { errorMessage } from '../../../core/outcome/error-message.ts';
import type { BusyWhy, RefusalCode, Violations } from '../../../core/outcome/outcome.ts';
import { ThrottledError } from '../../../core/ports/errors.ts';
import type { ApiProblem, JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { NoAnswer } from '../../../core/ports/signing-endpoint.ts';

/** How a request leaves the relay: finally, or until its object changes. */
export type End =
  | 'issued'
  | 'refused'
  | 'approved' // the watch then delivers it again, to be signed
  | 'denied'
  | 'left' // pending; another approver decides
  | 'ignored' // the endpoint does not know the signer, or sees the request in another state
  | 'invalid' // the endpoint cannot read the object
  | 'malformed' // the relay cannot read the object
  | 'settled' // it has a certificate or a final condition already
  | 'gone';

/**
 * Why a request is tried again: metric label, log field, and the category in the Event about a delay.
 * `alarm`: whether the operator must act, at once or only if the request keeps failing.
 * `others`: what the failure means for other requests at the same step. `throttled`: fewer calls must be in flight.
 * `failing`: they may fail too, but a missing permission or an unusable CA concerns one signer only, and the requests of
 * other signers must not wait for it.
 */
export const causes = {
  EndpointBusy: { alarm: 'never', others: 'throttled' }, // the endpoint, or a service that it depends on, throttles
  EndpointFailing: { alarm: 'never', others: 'failing' }, // the endpoint, or a service that it depends on, fails
  // The front door has no answer of the function: Lambda throttled it (docs/internals/scale.md), or it ended without an answer.
  EndpointFunctionFailed: { alarm: 'lasting', others: 'throttled' },
  EndpointUnreachable: { alarm: 'never', others: 'failing' }, // no answer: connection or timeout
  EndpointUnauthorized: { alarm: 'first', others: 'failing' }, // 401, 403, or no credentials
  EndpointUnexpected: { alarm: 'first', others: 'failing' }, // not a valid answer of the endpoint
  CertificateUnusable: { alarm: 'first', others: 'nothing' }, // issued for another key, or not a certificate
  SecondLook: { alarm: 'never', others: 'nothing' }, // attest examines the machine again minutes later
  Limited: { alarm: 'never', others: 'nothing' }, // too many requests of one machine or requester
  InProgress: { alarm: 'never', others: 'nothing' }, // the endpoint is still working on an earlier delivery
  NotPermitted: { alarm: 'never', others: 'nothing' }, // the SubjectAccessReview refuses the requester
  // The copies of Machines and of the Cluster object are incomplete or old: the management cluster does not answer.
  MachinesNotRead: { alarm: 'lasting', others: 'nothing' },
  ApiBusy: { alarm: 'never', others: 'throttled' },
  ApiUnreachable: { alarm: 'never', others: 'failing' },
  // An API server that has just started answers 401 and 403 until it has read all roles and accounts.
  ApiForbidden: { alarm: 'lasting', others: 'failing' },
  ApiRejected: { alarm: 'first', others: 'nothing' }, // the API server does not accept what the relay writes
  ObjectTooLarge: { alarm: 'never', others: 'nothing' }, // with the answer the object would exceed the API server's limit
  ApiConflict: { alarm: 'never', others: 'nothing' }, // the object keeps changing
  Internal: { alarm: 'first', others: 'nothing' }, // a defect of the relay
} as const satisfies Readonly<
  Record<string, { alarm: 'never' | 'first' | 'lasting'; others: 'nothing' | 'throttled' | 'failing' }>
>;
export type RetryCause = keyof typeof causes;

/** What attest concluded about a pending request, for the metric and the Event. */
export interface Decision {
  /** `noted`: another approver decides, and sign uses the stored verdict. */
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
      /** The endpoint asks for at least this delay. */
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

/** The endpoint's answer; or, if it did not answer, why the request is tried again. */
export async function askEndpoint<A extends { readonly kind: string }>(
  call: () => Promise<A | NoAnswer>,
): Promise<A | Retry> {
  try {
    const answer = await call();
    return isNoAnswer(answer) ? retryOf(answer) : answer;
  } catch (error) {
    return retry('EndpointUnreachable', errorMessage(error));
  }
}

function isNoAnswer(answer: { readonly kind: string }): answer is NoAnswer {
  const { kind } = answer;
  return kind === 'busy' || kind === 'functionFailed' || kind === 'unauthorized' || kind === 'unexpected';
}

function retryOf(answer: NoAnswer): Retry {
  switch (answer.kind) {
    case 'busy': {
      const { why = 'Throttled', retryAfterSeconds: afterSeconds } = answer;
      return { ...retry(busyCauses[why], why), ...(afterSeconds === undefined ? {} : { afterSeconds }) };
    }
    case 'functionFailed':
      return retry('EndpointFunctionFailed', `HTTP ${answer.status}`);
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

/** The API server refused to read or write a request. */
export function refusedByApi({ why, message }: ApiProblem): WorkResult {
  switch (why) {
    case 'NotFound':
      return done('gone');
    case 'Unauthorized':
    case 'Forbidden':
      return retry('ApiForbidden', message);
    case 'Conflict':
      return retry('ApiConflict', message);
    case 'Expired':
    case 'Invalid':
      return retry('ApiRejected', message);
    case 'TooLarge':
      return retry('ObjectTooLarge', message);
  }
}

/** A call to the API server threw, so it may or may not have taken effect. */
export function apiUnreachable(error: unknown): Retry {
  return retry(error instanceof ThrottledError ? 'ApiBusy' : 'ApiUnreachable', errorMessage(error));
}
