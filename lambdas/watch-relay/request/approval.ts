/**
 * Decides a pending request: the access review of its requester, the verdict of attest, and the decision that is
 * written. For each signer either another approver decides (`manual`) or the relay does (`approve`).
 *
 * Requests with evidence are sent to the attest function as soon as they arrive, for both kinds of signers: attest checks
 * the evidence's freshness on arrival, and the sign function later uses its verdict. A verdict counts for one object only.
 */
import type { SignerPolicy } from '../settings/options.ts';
import type { RequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import type { Violations } from '../../../core/outcome/outcome.ts';
import type { JsonObject, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import type { AttestContext, AttestVerdict, SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import { failure, success } from '../../../core/outcome/result.ts';
import type { Result } from '../../../core/outcome/result.ts';
import { decodeFor } from '../../../core/read-and-check-request.ts';
import type { MachineLookup } from '../cluster-api/lookup.ts';
import type { AskedOnce } from './asked-once.ts';
import { classify } from '../objects/request-phase.ts';
import type { Clock } from '../runtime/clock.ts';
import { accessQuestion, requiredReviews } from './access-review.ts';
import type { AccessReview } from './access-review.ts';
import { denied, reviewByPolicy } from './policy-only-review.ts';
import { apiUnreachable, askEndpoint, done, refusedByApi, retry } from './result.ts';
import type { Decision, WorkResult } from './result.ts';
import { withDecision } from '../objects/status.ts';
import type { DecisionCondition } from '../objects/status.ts';

export interface ApprovalPorts {
  readonly api: RequestApi;
  readonly signer: SigningEndpoint;
  readonly clock: Clock;
  /** By signer name. A signer without a policy is `manual` and not attested. */
  readonly policies: ReadonlyMap<string, SignerPolicy>;
  /** With `attestation.machines: clusterApi`: what the management cluster has about the machine of a request. */
  readonly machines?: MachineLookup;
  /** Requests with evidence of `manual` signers that attest has answered since the relay started. */
  readonly asked: AskedOnce;
}

/** The annotation that names the machine an approval is for. */
const identityAnnotation = 'countersign.dev/identity';
const approvedReason = 'AutoApproved';

/** Whether the relay acts on pending requests of such a signer. */
export function decides(policy: SignerPolicy | undefined): boolean {
  return policy?.approval === 'approve' || policy?.attestation !== undefined;
}

/** `json`: the object as the API server sent it, with which each write is made; `object`: the same, decoded. */
export async function decideRequest(
  json: JsonObject,
  object: RequestObject,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  const policy = ports.policies.get(object.signerName ?? '');
  if (policy === undefined || !decides(policy)) return done('left');
  if (policy.approval === 'manual') return attestOnly(json, object, policy, ports, signal);

  // The review comes first: a requester without the permission must not use up evidence or claim a machine's name.
  const review = requiredReviews(policy, object);
  const granted = await reviewAccess(review, json, object, ports, signal);
  if (granted.kind !== 'granted') return granted;

  const { localProfile } = policy;
  const answer =
    localProfile === undefined
      ? await askAttest(policy, json, object, ports, signal)
      : ({ kind: 'verdict', verdict: reviewByPolicy(localProfile, json, object) } as const);
  switch (answer.kind) {
    case 'verdict':
      return applyVerdict(json, answer.verdict, review, granted, ports, signal);
    case 'refused':
      return deny(json, denied(answer.violations), ports, signal);
    case 'invalid':
      return done('invalid');
    case 'retry':
      return answer;
  }
}

/** Refuses an oversized request without a review and without attest: sign refuses it for every requester. */
export async function refusePending(
  json: JsonObject,
  { uid, signerName }: RequestObject,
  violations: Violations,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  const policy = ports.policies.get(signerName ?? '');
  if (policy === undefined || !decides(policy)) return done('left');
  const denial = denied(violations);
  if (policy.approval === 'approve') return deny(json, denial, ports, signal);
  if (ports.asked.has(uid)) return done('left');
  ports.asked.add(uid);
  return { ...done('left'), decision: { kind: 'noted', code: denial.reason, message: denial.message } };
}

/** Another approver decides: attest is called once, and nothing is written to the object. */
async function attestOnly(
  json: JsonObject,
  object: RequestObject,
  policy: SignerPolicy,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  const { uid } = object;
  if (ports.asked.has(uid)) return done('left');
  const answer = await askAttest(policy, json, object, ports, signal);
  switch (answer.kind) {
    case 'verdict':
      ports.asked.add(uid);
      return { ...done('left'), ...noted(answer.verdict) };
    case 'refused':
    case 'invalid':
      ports.asked.add(uid);
      return done(answer.kind === 'invalid' ? 'invalid' : 'left');
    case 'retry':
      return answer;
  }
}

/** Requests of signers without attestation have no machine, so nothing is looked up for them. */
async function askAttest(
  policy: SignerPolicy,
  json: JsonObject,
  object: RequestObject,
  ports: ApprovalPorts,
  signal: AbortSignal,
) {
  const found = policy.attestation === undefined ? success(undefined) : await lookUp(policy, object, ports, signal);
  if (!found.ok) return found.problem;
  return askEndpoint(() => ports.signer.attest(json, found.value, signal));
}

async function lookUp(
  policy: SignerPolicy,
  object: RequestObject,
  { machines }: ApprovalPorts,
  signal: AbortSignal,
): Promise<Result<AttestContext | undefined, ReturnType<typeof retry>>> {
  const decoded = machines === undefined ? undefined : decodeFor(policy, object.request);
  // Attest refuses a request that cannot be decoded, before it needs a Machine.
  if (machines === undefined || decoded?.ok !== true) return success(undefined);
  try {
    const found = await machines(decoded.value, signal);
    if (found.ok) return success({ clusterApi: found.value });
    const { why, message } = found.problem;
    if (why === 'NotRead') return failure(retry('MachinesNotRead', message));
    return failure(retry(why === 'Unauthorized' || why === 'Forbidden' ? 'ApiForbidden' : 'ApiRejected', message));
  } catch (error) {
    return failure(apiUnreachable(error));
  }
}

function noted(verdict: AttestVerdict): { decision?: Decision } {
  if (verdict.decision === 'ignore') return {};
  const code = verdict.decision === 'approve' ? approvedReason : verdict.reason;
  return { decision: { kind: 'noted', code, message: verdict.message } };
}

/** The permission that the requester has. */
interface Granted {
  readonly kind: 'granted';
  /** The in-tree approver's message for this permission, if it has one. */
  readonly message?: string;
}

async function reviewAccess(
  review: AccessReview,
  json: JsonObject,
  object: RequestObject,
  { api }: ApprovalPorts,
  signal: AbortSignal,
): Promise<Granted | WorkResult> {
  if (review.kind !== 'permissions') return { kind: 'granted' };
  for (const { subresource, message } of review.permissions) {
    const question = accessQuestion(json, object, subresource);
    if (question === undefined) return done('malformed');
    try {
      const answer = await api.reviewAccess(question, signal);
      if (answer.ok && answer.value) return { kind: 'granted', ...(message === undefined ? {} : { message }) };
      if (answer.ok) continue;
      const { why } = answer.problem;
      const forbidden = why === 'Unauthorized' || why === 'Forbidden';
      return retry(forbidden ? 'ApiForbidden' : 'ApiRejected', answer.problem.message);
    } catch (error) {
      return apiUnreachable(error);
    }
  }
  // The request is not denied: after a binding is created, a later review permits it, as in-tree.
  const names = review.permissions.map(({ subresource }) => subresource).join(' and ');
  return retry('NotPermitted', `the requester may not create certificatesigningrequests/${names}`);
}

async function applyVerdict(
  json: JsonObject,
  verdict: AttestVerdict,
  review: AccessReview,
  granted: Granted,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  switch (verdict.decision) {
    case 'ignore':
      return done('ignored');
    // A node answers a challenge with another request, so this one is denied.
    case 'challenge':
    case 'deny':
      return deny(json, verdict, ports, signal);
    case 'approve':
      break;
  }
  const { annotations } = verdict;
  const identity = annotations[identityAnnotation];
  // No permission exists for such a request, so none was reviewed. Attest does not approve it either.
  if (review.kind === 'unrecognised') return done('left');
  // An attested approval must name a machine; otherwise the endpoint has another configuration.
  if (review.attested && identity === undefined)
    return retry('EndpointUnexpected', 'attest approved the request without naming a machine');
  const message = granted.message ?? (identity === undefined ? unattestedMessage : attestedMessage(identity));
  const condition: DecisionCondition = { type: 'Approved', reason: approvedReason, message, annotations };
  return write(json, condition, approvedReason, ports, signal);
}

const unattestedMessage = 'The profile of this signer names the requester.';

function attestedMessage(identity: string): string {
  return `Attestation showed that machine ${identity} made the request.`;
}

function deny(
  json: JsonObject,
  { reason, message, annotations }: ReturnType<typeof denied>,
  ports: ApprovalPorts,
  signal: AbortSignal,
): Promise<WorkResult> {
  return write(json, { type: 'Denied', reason, message, annotations }, reason, ports, signal);
}

/**
 * Writes the decision and its annotations in one PUT that is valid only for the object that was decided: its UID and
 * resourceVersion. After any change or a lost answer the next try reads the object, reviews access again and gets the
 * stored verdict. After a crash here the object shows whether the decision was written.
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
    return apiUnreachable(error);
  }
  if (!answer.ok) return refusedByApi(answer.problem);
  // An admission webhook can remove the decision from the update: counting it as done would leave the request pending.
  if (decisionOn(answer.value) !== type) return retry('ApiRejected', 'the API server did not store the decision');
  const kind = type === 'Approved' ? 'approved' : 'denied';
  return { ...done(kind), object: answer.value, decision: { kind, code, message } };
}

function decisionOn(json: JsonObject): 'Approved' | 'Denied' | undefined {
  const phase = classify(json);
  if (phase.kind === 'approved') return 'Approved';
  return phase.kind === 'settled' && phase.why === 'Denied' ? 'Denied' : undefined;
}
