/** Reads and approves CertificateSigningRequest objects, as an approver does. */
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';

export interface SeenCondition {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
}

export function nameOf(object: JsonObject): string {
  return (object['metadata'] as { readonly name?: string } | undefined)?.name ?? '';
}

export function conditionIn(object: JsonObject, type: string): SeenCondition | undefined {
  return conditionsIn(object).find((condition) => condition.type === type);
}

export function certificatePemIn(object: JsonObject): string | undefined {
  const certificate = statusOf(object)['certificate'];
  return typeof certificate === 'string' ? Buffer.from(certificate, 'base64').toString('utf8') : undefined;
}

/** The object with the condition that `kubectl certificate approve` adds, for a PUT to /approval. */
export function approved(object: JsonObject): JsonObject {
  const condition = {
    type: 'Approved',
    status: 'True',
    reason: 'CountersignDemo',
    message: 'Approved by the user who runs the demo.',
  };
  return { ...object, status: { ...statusOf(object), conditions: [...conditionsIn(object), condition] } };
}

function statusOf(object: JsonObject): JsonObject {
  return (object['status'] as JsonObject | undefined) ?? {};
}

function conditionsIn(object: JsonObject): readonly SeenCondition[] {
  return (statusOf(object)['conditions'] as readonly SeenCondition[] | undefined) ?? [];
}
