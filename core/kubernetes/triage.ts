import type { RequestObject } from './certificate-signing-request.ts';
import type { IgnoredWhy } from '../outcome/outcome.ts';

/**
 * Whether the signer must ignore the request. The API server does not check this: it stores certificates on unapproved, denied
 * and failed requests (measured), so the signer must check.
 *
 * A condition counts if it is present, whatever its status, as in Kubernetes' CSR documentation for Approved and Denied. So does
 * Failed: an odd status can only prevent signing.
 */
export function triage(object: RequestObject): IgnoredWhy | undefined {
  if (hasCondition(object, 'Denied')) return 'Denied';
  if (hasCondition(object, 'Failed')) return 'Failed';
  if (!isApproved(object)) return 'NotApproved';
  if (object.hasCertificate) return 'AlreadyIssued';
  return undefined;
}

/** The same before approval: only a request without a decision and without a certificate is evaluated. */
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
