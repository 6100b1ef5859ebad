/**
 * The HTTP answer of each outcome (docs/signing-api.md). The body of an error is a Kubernetes Status, for the relay and
 * Kubernetes tools, and also has the field `error`, the only part that the webhook client shows.
 */
import { objectTooLarge } from '../../core/encoding/json-body.ts';
import { httpStatus, refusalMessage, refused, violation, refusalReason } from '../../core/outcome/outcome.ts';
import type { AttestOutcome } from '../../core/attest.ts';
import type { IgnoredWhy, SignOutcome } from '../../core/outcome/outcome.ts';
import { jsonAnswer } from './http.ts';
import type { HttpAnswer } from './http.ts';

/** `ok` is for the paths that sign nothing, so that no client takes their answer for an issued certificate. */
type OutcomeName = SignOutcome['kind'] | 'ok' | 'verdict' | 'looked' | 'forbidden';

export function outcomeHeader(outcome: OutcomeName): Readonly<Record<string, string>> {
  return { 'x-countersign-outcome': outcome };
}

/** The answer to a call whose body cannot be read: too large is final, so that the relay ends the request. */
export function rejected({ message, tooLarge }: { readonly message: string; readonly tooLarge?: true }): SignOutcome {
  return tooLarge === true ? refused(violation('RequestTooLarge', message)) : { kind: 'invalid', message };
}

/** The answer to a body that a server knows to be over the limit before it has read it. */
export function tooLarge(): HttpAnswer {
  return signAnswer(rejected(objectTooLarge), undefined);
}

/** A web page can post text/plain to a loopback server without a CORS preflight, but not application/json. */
export function wrongContentType(headers: ReadonlyMap<string, string>): HttpAnswer | undefined {
  const contentType = headers.get('content-type');
  if (contentType === undefined || /^application\/json *(;|$)/i.test(contentType)) return undefined;
  return errorAnswer(415, 'invalid', 'send application/json');
}

interface Cause {
  readonly reason: string;
  readonly message: string;
}

/** `object` is the posted JSON, of any type. */
export function signAnswer(outcome: SignOutcome, object: unknown): HttpAnswer {
  const status = httpStatus(outcome);
  switch (outcome.kind) {
    case 'issued':
      return jsonAnswer(status, withCertificate(object, outcome.certificatePem), outcomeHeader('issued'));
    case 'refused':
      return errorAnswer(
        status,
        'refused',
        refusalMessage(outcome.violations),
        outcome.violations.map(({ code, message }) => ({ reason: code, message })),
      );
    case 'ignored': {
      const message = ignoredMessages[outcome.why];
      return errorAnswer(status, 'ignored', message, [{ reason: outcome.why, message }]);
    }
    case 'invalid':
      return errorAnswer(status, 'invalid', outcome.message);
    case 'busy':
      // No Retry-After header: with one the webhook client calls up to 55 times in a row.
      return errorAnswer(status, 'busy', busyMessage, [{ reason: outcome.why, message: busyMessage }], {
        retryAfterSeconds: outcome.retryAfterSeconds,
      });
  }
}

const ignoredMessages: Readonly<Record<IgnoredWhy, string>> = {
  UnknownSigner: 'this cluster has no profile for the signerName',
  NotApproved: 'the request is not approved',
  Denied: 'the request is denied',
  Failed: 'the request has failed',
  AlreadyIssued: 'the request has its certificate',
};

/** The verdict, with the texts that the relay writes into conditions. Every verdict is a 200. */
export function verdictAnswer(outcome: AttestOutcome): HttpAnswer {
  return jsonAnswer(200, verdictBody(outcome), outcomeHeader('verdict'));
}

/** To a hint about removed nodes. It does not say what was found: the caller has no right to know the records. */
export function lookedAnswer(): HttpAnswer {
  return jsonAnswer(202, {}, outcomeHeader('looked'));
}

interface VerdictBody {
  readonly decision: AttestOutcome['kind'];
  /** UpperCamelCase: a refusal code, why it is ignored, or one of `Attested`, `Unattested`, `Audited`. */
  readonly reason: string;
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>>;
}

function verdictBody(outcome: AttestOutcome): VerdictBody {
  const { kind: decision } = outcome;
  switch (decision) {
    case 'approve':
      return { decision, ...approvalReason(outcome), annotations: outcome.annotations };
    case 'deny':
    case 'challenge': {
      const { violations, annotations } = outcome;
      return { decision, reason: refusalReason(violations), message: refusalMessage(violations), annotations };
    }
    case 'ignore':
      return { decision, reason: outcome.why, message: ignoredMessages[outcome.why], annotations: {} };
  }
}

function approvalReason({ identity, audit }: AttestOutcome & { readonly kind: 'approve' }): {
  readonly reason: string;
  readonly message: string;
} {
  if (audit === 'unjudged') return { reason: 'Audited', message: 'audit mode: it could not be judged now' };
  if (audit !== undefined)
    return { reason: 'Audited', message: `audit mode: it would be refused: ${refusalMessage(audit)}` };
  if (identity === undefined) return { reason: 'Unattested', message: 'this signer demands no proof' };
  return { reason: 'Attested', message: `attested as ${identity}` };
}

/** It does not name the cause, which is for the operator's log. */
const busyMessage = 'temporarily unable to sign; try again';

/** The same object with one more field. Key order, unknown fields and a key named `__proto__` stay as received. */
function withCertificate(object: unknown, certificatePem: string): object {
  const { status } = object as { readonly status?: object | null };
  const certificate = Buffer.from(certificatePem, 'utf8').toString('base64');
  return { ...(object as object), status: { ...status, certificate } };
}

/** A 4xx or 5xx. `outcome` is `invalid` if the call is wrong and not the request. */
export function errorAnswer(
  status: number,
  outcome: SignOutcome['kind'] | 'forbidden',
  message: string,
  causes: readonly Cause[] = [],
  more: { readonly headers?: Readonly<Record<string, string>>; readonly retryAfterSeconds?: number } = {},
): HttpAnswer {
  const [reason, canonicalCode] = names[status] ?? ['InternalError', 'INTERNAL'];
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(causes.length === 0 ? {} : { details: { causes } }),
    code: status,
    error: { code: status, message, status: canonicalCode },
    ...(more.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: more.retryAfterSeconds }),
  };
  return jsonAnswer(status, body, { ...outcomeHeader(outcome), ...more.headers });
}

/** metav1.StatusReason, and google.rpc.Code for the `error` shape. */
const names: Readonly<Record<number, readonly [reason: string, canonicalCode: string]>> = {
  400: ['BadRequest', 'INVALID_ARGUMENT'],
  401: ['Unauthorized', 'UNAUTHENTICATED'],
  403: ['Forbidden', 'PERMISSION_DENIED'],
  404: ['NotFound', 'NOT_FOUND'],
  405: ['MethodNotAllowed', 'UNIMPLEMENTED'],
  409: ['Conflict', 'FAILED_PRECONDITION'],
  413: ['RequestEntityTooLarge', 'INVALID_ARGUMENT'],
  415: ['UnsupportedMediaType', 'INVALID_ARGUMENT'],
  422: ['Invalid', 'FAILED_PRECONDITION'],
  503: ['ServiceUnavailable', 'UNAVAILABLE'],
};
