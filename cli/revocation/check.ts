/** Whether an API server refuses revoked certificates. */
import type { ClusterClients } from '../../adapters/kubernetes/clients.ts';
import type { Revocation } from '../../core/ports/revocations.ts';
import { failIfRefused } from '../cluster/object-answers.ts';

export interface Obeyed {
  readonly serial: string;
  readonly refused: boolean;
  /** The reason that the API server gave. */
  readonly answer: string;
}

/**
 * Asks with SubjectAccessReviews, which go through the same authorizers as requests. No role is bound to the user, so the
 * answer is about the certificate alone. `denied` is what an authorizer refused; no opinion is not.
 */
export async function checkObeys(
  { authorization }: Pick<ClusterClients, 'authorization'>,
  revocations: readonly Revocation[],
): Promise<readonly Obeyed[]> {
  const results: Obeyed[] = [];
  for (const { serial, fingerprint } of revocations) {
    const review = await failIfRefused(
      authorization.createSubjectAccessReview({
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: {
            user: 'countersign:revocation-check',
            extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
            nonResourceAttributes: { path: '/countersign-revocation-check', verb: 'get' },
          },
        },
      }),
      'create subjectaccessreviews',
    );
    const { denied = false, reason = '', evaluationError = '' } = review.status ?? {};
    results.push({ serial, refused: denied, answer: reason || evaluationError || 'no opinion' });
  }
  return results;
}
