/**
 * The story of a pending request, top to bottom: may its requester have it approved at all, which machine asks, and
 * what is written down. By signer somebody else decides (`manual`) or we do (`approve`).
 *
 * Attested requests are shown to the attest function as soon as they come up, whoever decides: it judges freshness on
 * arrival, and the sign function later goes by its verdict. We believe no more of it than it says of this very object.
 */
import type { SignerPolicy } from '../settings/options.ts';
import type { RequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import { refusalMessage, refusalReason } from '../../../core/outcome/outcome.ts';
import type { RefusalCode, Violations } from '../../../core/outcome/outcome.ts';
import { ThrottledError } from '../../../core/ports/errors.ts';
import type { JsonObject, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import type { AttestAnswer, AttestVerdict, SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import type { AskedOnce } from './asked-once.ts';
import { judge } from '../objects/request-phase.ts';
import type { Clock } from '../runtime/clock.ts';
import { accessQuestion, leaveFor } from './access-review.ts';
import type { Leave } from './access-review.ts';
import { judgeUnattested } from './policy-only-review.ts';
import { done, retry, retryOf } from './result.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';
import type { Decision, WorkResult } from './result.ts';
import { withDecision } from '../objects/status.ts';
import type { DecisionCondition } from '../objects/status.ts';

export interface ApprovalPorts {
  readonly api: RequestApi;
  readonly signer: SigningEndpoint;
  readonly clock: Clock;
  /** A signer without one is `manual` and not attested. */
  readonly policies: ReadonlyMap<string, SignerPolicy>;
  /** Attested requests that somebody else decides about, and that attest has seen in this run. */
  readonly asked: AskedOnce;
}

/** The annotation that names the machine an approval is for. */
const identityAnnotation = 'countersign.dev/identity';
const approvedReason = 'AutoApproved';

/** Whether there is anything to do with its pending requests. */
export function decides(policy: SignerPolicy | undefined): boolean {
  return policy?.approval === 'approve' || policy?.attestation !== undefined;
}

/** `json` is the object as the API server gave it, and what any write of ours holds for; `object` is the same, decoded. */
export async function decideRequest(
  json: JsonObject,
  object: RequestObject,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  const policy = object.signerName === undefined ? undefined : ports.policies.get(object.signerName);
  if (policy === undefined || !decides(policy)) return done('left');
  if (policy.approval === 'manual') return note(json, object, ports, signal);

  // Whoever may not ask spends no proof and claims no name: the review comes first.
  const leave = leaveFor(policy, object);
  const granted = await askLeave(leave, json, object, ports, signal);
  if ('kind' in granted) return granted;

  const { judgedHere } = policy;
  const answer =
    judgedHere === undefined
      ? await attest(json, ports, signal)
      : ({ kind: 'verdict', verdict: judgeUnattested(judgedHere, json, object) } as const);
  switch (answer.kind) {
    case 'verdict':
      return conclude(json, answer.verdict, leave, granted, ports, signal);
    case 'refused': {
      const reason = refusalReason(answer.violations);
      return deny(json, { reason, message: refusalMessage(answer.violations), annotations: {} }, ports, signal);
    }
    case 'invalid':
      return done('invalid');
    case 'unanswered':
      return answer.result;
    case 'busy':
    case 'unauthorized':
    case 'unexpected':
      return retryOf(answer);
  }
}

/** Without a review and without attest: such a request is not approved for any requester, and sign would refuse it. */
export async function refusePending(
  json: JsonObject,
  { uid, signerName }: RequestObject,
  violations: Violations,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  const policy = signerName === undefined ? undefined : ports.policies.get(signerName);
  if (policy === undefined || !decides(policy)) return done('left');
  const [reason, message] = [refusalReason(violations), refusalMessage(violations)];
  if (policy.approval === 'approve') return deny(json, { reason, message, annotations: {} }, ports, signal);
  if (ports.asked.has(uid)) return done('left');
  ports.asked.add(uid);
  return { ...done('left'), decision: { kind: 'noted', code: reason, message } };
}

/** Somebody else decides: attest hears of it, once, and nothing is written on the object. */
async function note(
  json: JsonObject,
  { uid }: RequestObject,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  if (ports.asked.has(uid)) return done('left');
  const answer = await attest(json, ports, signal);
  switch (answer.kind) {
    case 'verdict':
      ports.asked.add(uid);
      return { ...done('left'), ...noted(answer.verdict) };
    case 'refused':
    case 'invalid':
      ports.asked.add(uid);
      return done(answer.kind === 'invalid' ? 'invalid' : 'left');
    case 'unanswered':
      return answer.result;
    case 'busy':
    case 'unauthorized':
    case 'unexpected':
      return retryOf(answer);
  }
}

function noted(verdict: AttestVerdict): { decision?: Decision } {
  if (verdict.decision === 'ignore') return {};
  const code = verdict.decision === 'approve' ? approvedReason : verdict.reason;
  return { decision: { kind: 'noted', code, message: verdict.message } };
}

/** Which of the permissions the requester has, or why we do not go on. */
interface Granted {
  /** What the in-tree approver says of it, where it would. */
  readonly message?: string;
}

async function askLeave(
  leave: Leave,
  json: JsonObject,
  object: RequestObject,
  { api }: ApprovalPorts,
  signal: AbortSignal,
): Promise<Granted | WorkResult> {
  if (leave.kind !== 'permissions') return {};
  for (const { subresource, message } of leave.permissions) {
    const question = accessQuestion(json, object, subresource);
    if (question === undefined) return done('malformed');
    try {
      const answer = await api.reviewAccess(question, signal);
      if (answer.ok && answer.value) return message === undefined ? {} : { message };
      if (answer.ok) continue;
      const forbidden = answer.why === 'Unauthorized' || answer.why === 'Forbidden';
      return retry(forbidden ? 'ApiForbidden' : 'ApiRejected', answer.message);
    } catch (error) {
      return retry(error instanceof ThrottledError ? 'ApiBusy' : 'ApiUnreachable', errorMessage(error));
    }
  }
  // Not a refusal: a binding that is made later lets it through, as in-tree.
  const names = leave.permissions.map(({ subresource }) => subresource).join(' and ');
  return retry('NotPermitted', `no leave to create certificatesigningrequests/${names}`);
}

async function attest(
  json: JsonObject,
  { signer }: ApprovalPorts,
  signal: AbortSignal,
): Promise<AttestAnswer | { readonly kind: 'unanswered'; readonly result: WorkResult }> {
  try {
    return await signer.attest(json, undefined, signal);
  } catch (error) {
    return { kind: 'unanswered', result: retry('EndpointUnreachable', errorMessage(error)) };
  }
}

async function conclude(
  json: JsonObject,
  verdict: AttestVerdict,
  leave: Leave,
  granted: Granted,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  switch (verdict.decision) {
    case 'ignore':
      return done('ignored');
    // A node that has to answer a challenge does so with another request: this one is over.
    case 'challenge':
    case 'deny':
      return deny(json, verdict, ports, signal);
    case 'approve':
      break;
  }
  const { annotations } = verdict;
  const identity = annotations[identityAnnotation];
  // Nothing was there to ask about, so nobody gave leave. The rules would not have let it through either.
  if (leave.kind === 'unrecognised') return done('left');
  // The other half of an attested approval: without a machine in it, it is an answer about another configuration.
  if (leave.attested && identity === undefined)
    return retry('EndpointUnexpected', 'an attested request was approved without naming a machine');
  const message = granted.message ?? (identity === undefined ? unattestedMessage : attestedMessage(identity));
  const condition: DecisionCondition = { type: 'Approved', reason: approvedReason, message, annotations };
  return write(json, condition, approvedReason, ports, signal);
}

const unattestedMessage = 'The requester is one of those whom the profile of this signer names.';

function attestedMessage(identity: string): string {
  return `The request was made by machine ${identity}, as it proved.`;
}

function deny(
  json: JsonObject,
  {
    reason,
    message,
    annotations,
  }: Pick<DecisionCondition, 'message' | 'annotations'> & { readonly reason: RefusalCode },
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  return write(json, { type: 'Denied', reason, message, annotations }, reason, ports, signal);
}

/**
 * Writes the decision, with its annotations, in one PUT that holds for exactly the object that was judged: its UID and
 * resourceVersion. After any change, and after an answer that was lost, nothing of this try counts any more: the next
 * one looks, asks for leave again and gets the verdict that is on record. Crash here: the object shows what is written.
 */
async function write(
  json: JsonObject,
  condition: DecisionCondition,
  code: Decision['code'],
  { api, clock }: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  const { type, message } = condition;
  let answer;
  try {
    answer = await api.updateApproval(withDecision(json, condition, clock.now()), signal);
  } catch (error) {
    return retry(error instanceof ThrottledError ? 'ApiBusy' : 'ApiUnreachable', errorMessage(error));
  }
  if (answer.ok) {
    // Taken and thrown away, as an admission webhook can: counting it as done would leave the request pending.
    if (decisionOn(answer.value) !== type) return retry('ApiRejected', 'the decision was accepted and not stored');
    const kind = type === 'Approved' ? 'approved' : 'denied';
    return { ...done(kind), object: answer.value, decision: { kind, code, message } };
  }
  switch (answer.why) {
    case 'NotFound':
      return done('gone');
    case 'Unauthorized':
    case 'Forbidden':
      return retry('ApiForbidden', answer.message);
    case 'Conflict':
      return retry('ApiConflict', answer.message);
    case 'Expired':
    case 'Invalid':
      return retry('ApiRejected', answer.message);
    case 'TooLarge':
      return retry('ObjectTooLarge', answer.message);
  }
}

function decisionOn(json: JsonObject): 'Approved' | 'Denied' | undefined {
  const judgement = judge(json);
  if (judgement.kind === 'candidate') return 'Approved';
  return judgement.kind === 'settled' && judgement.why === 'Denied' ? 'Denied' : undefined;
}
