import type { ControlPlane } from './control-plane.ts';
import { eventually } from '../stack/requests.ts';

type Admin = Pick<ControlPlane, 'admin'>;

export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  /** Of the object; all of them without. */
  readonly name?: string;
  /** All of them without. */
  readonly namespace?: string;
}

interface Subject {
  readonly user: string;
  readonly groups?: readonly string[];
}

/**
 * When the API server's authorizer has seen a change to roles or bindings. It watches them as every client does, so that a
 * request right after the write may still be judged by the rules before it.
 */
export function untilTaken(plane: Admin, subject: Subject, right: Right): Promise<void> {
  const why = `${subject.user} may no longer ${right.verb} ${right.resource}`;
  return eventually(async () => !(await isAllowed(plane, subject, right)), why);
}

export function untilGranted(plane: Admin, subject: Subject, right: Right): Promise<void> {
  return eventually(() => isAllowed(plane, subject, right), `${subject.user} may ${right.verb} ${right.resource}`);
}

export async function isAllowed({ admin }: Admin, { user, groups = [] }: Subject, right: Right): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, groups, resourceAttributes: right },
  };
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  const { status } = await admin.expectOk<{ status: { allowed: boolean } }>(path, { method: 'POST', body });
  return status.allowed;
}
