import type { RequestObject } from './certificate-signing-request.ts';
import type { IgnoredWhy } from '../outcome/outcome.ts';

/**
 * Why the signer must ignore the request; `undefined` if it is approved and waits for a certificate. The API server does not
 * check this: it stores certificates on unapproved, denied and failed requests (measured).
 *
 * A Denied condition counts with any status, as in Kubernetes' CSR documentation. So does Failed: an unusual status can only
 * prevent signing.
 */
export function triage(object: RequestObject): IgnoredWhy | undefined {
  if (hasCondition(object, 'Denied')) return 'Denied';
  if (hasCondition(object, 'Failed')) return 'Failed';
  if (!isApproved(object)) return 'NotApproved';
  if (object.hasCertificate) return 'AlreadyIssued';
  return undefined;
}

/** Why attest must ignore the request, approved or not; `undefined` if it has no Denied or Failed condition and no certificate. */
export function triagePending(object: RequestObject): 'Denied' | 'Failed' | 'AlreadyIssued' | undefined {
  if (hasCondition(object, 'Denied')) return 'Denied';
  if (hasCondition(object, 'Failed')) return 'Failed';
  return object.hasCertificate ? 'AlreadyIssued' : undefined;
}

/** Approved must be present, with status True. An absent status is v1beta1's default, True. */
function isApproved(object: RequestObject): boolean {
  const approved = object.conditions.filter(({ type }) => type === 'Approved');
  return approved.length > 0 && approved.every(({ status }) => status === undefined || status === 'True');
}

function hasCondition(object: RequestObject, type: string): boolean {
  return object.conditions.some((condition) => condition.type === type);
}
