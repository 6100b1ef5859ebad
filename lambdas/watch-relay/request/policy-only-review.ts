/**
 * The verdict for a cluster that has no attest function: the rules of core/attest.ts without attestation. Sign applies
 * them again. `json` is decoded here, since `object` may lack the content of a request that is too large (classify).
 */
import { decodeRequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import type { RequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import { refusalMessage, refusalReason, violation } from '../../../core/outcome/outcome.ts';
import type { Violations } from '../../../core/outcome/outcome.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { AttestVerdict } from '../../../core/ports/signing-endpoint.ts';
import type { Profile } from '../../../core/policy/profile.ts';
import { readAndCheckRequest } from '../../../core/read-and-check-request.ts';

export function reviewByPolicy(profile: Profile, json: JsonObject, object: RequestObject): AttestVerdict {
  const decoded = decodeRequestObject(json);
  if (!decoded.ok && decoded.problem.tooLarge === true)
    return denied([violation('RequestTooLarge', decoded.problem.message)]);
  const checked = readAndCheckRequest(object, new Map([[object.signerName ?? '', profile]]), undefined);
  if (checked.kind === 'ignored') return { decision: 'ignore', reason: checked.why };
  if (checked.violations !== undefined) return denied(checked.violations);
  return { decision: 'approve', message: '', annotations: {} };
}

export function denied(violations: Violations): AttestVerdict & { readonly decision: 'deny' | 'challenge' } {
  const [reason, message] = [refusalReason(violations), refusalMessage(violations)];
  return { decision: 'deny', reason, message, annotations: {} };
}
