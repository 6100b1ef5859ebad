import type { ControlPlane } from './control-plane.ts';
import { eventually } from './stack-requests.ts';

export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  /** Of the object; all of them without. */
  readonly name?: string;
}

/**
 * When the API server's authorizer has heard of a change to roles or bindings: it watches them as everybody does, so that
 * who asks right after the write may still be judged by the rules before it.
 */
export async function untilTaken(
  { admin }: ControlPlane,
  { user, groups = [] }: { readonly user: string; readonly groups?: readonly string[] },
  right: Right,
): Promise<void> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, groups, resourceAttributes: right },
  };
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  await eventually(async () => {
    const { status } = await admin.expectOk<{ status: { allowed: boolean } }>(path, { method: 'POST', body });
    return !status.allowed;
  }, `${user} may no longer ${right.verb} ${right.resource}`);
}
