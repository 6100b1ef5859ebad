import { refusalMessage, refusalReason } from '../../../core/outcome/outcome.ts';
import type { Violations } from '../../../core/outcome/outcome.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import { objectOf } from '../../../core/encoding/json-object.ts';

/** Limited, since etcd stores the message, and each client gets it, for as long as the object exists. */
export const maxMessageBytes = 32_768;

/** Sets status.certificate only. A `[]byte` is base64 in JSON. */
export function withCertificate(object: JsonObject, certificatePem: string): JsonObject {
  const certificate = Buffer.from(certificatePem, 'utf8').toString('base64');
  return { ...object, status: { ...statusOf(object), certificate } };
}

export interface DecisionCondition {
  readonly type: 'Approved' | 'Denied';
  readonly reason: string;
  readonly message: string;
  /** They replace annotations of the same name. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** The object with the condition and its annotations. The API server requires status "True" (v1). */
export function withDecision(object: JsonObject, decision: DecisionCondition, now: Instant): JsonObject {
  const { type, reason, message, annotations } = decision;
  const metadata = objectOf(object['metadata']);
  const annotated =
    Object.keys(annotations).length === 0
      ? metadata
      : { ...metadata, annotations: { ...objectOf(metadata['annotations']), ...annotations } };
  return { ...withCondition(object, { type, reason, message }, now), metadata: annotated };
}

/** The API server requires status "True" for `Failed` (measured). */
export function withFailed(object: JsonObject, violations: Violations, now: Instant): JsonObject {
  const failed = { type: 'Failed', reason: refusalReason(violations), message: refusalMessage(violations) };
  return withCondition(object, failed, now);
}

/** The other conditions stay in order, or the API server refuses the update. The API server sets lastTransitionTime. */
function withCondition(
  object: JsonObject,
  { type, reason, message }: { readonly type: string; readonly reason: string; readonly message: string },
  now: Instant,
): JsonObject {
  const status = statusOf(object);
  const conditions = Array.isArray(status['conditions']) ? (status['conditions'] as readonly unknown[]) : [];
  const condition = {
    type,
    status: 'True',
    reason,
    message: truncate(message, maxMessageBytes),
    lastUpdateTime: metaTime(now),
  };
  return { ...object, status: { ...status, conditions: [...conditions, condition] } };
}

export function certificateOf(object: JsonObject): string | undefined {
  const certificate = statusOf(object)['certificate'];
  return typeof certificate === 'string' && certificate !== '' ? certificate : undefined;
}

/** The time of the approval in whole seconds, if the object has it. */
export function approvedAt(object: JsonObject): Instant | undefined {
  const conditions = statusOf(object)['conditions'];
  if (!Array.isArray(conditions)) return undefined;
  const approved = (conditions as readonly unknown[]).map(objectOf).find(({ type }) => type === 'Approved');
  const time = approved?.['lastUpdateTime'];
  const instant = typeof time === 'string' ? Date.parse(time) : Number.NaN;
  return Number.isNaN(instant) ? undefined : instant;
}

/** metav1.Time: RFC 3339 in whole seconds. */
export function metaTime(instant: Instant): string {
  return `${new Date(instant).toISOString().slice(0, 19)}Z`;
}

/** metav1.MicroTime: RFC 3339 with exactly six digits; the API server refuses others. */
export function microTime(instant: Instant): string {
  return new Date(instant).toISOString().replace('Z', '000Z');
}

/** At most `maxBytes` of UTF-8 in whole characters; a shortened text ends with an ellipsis. */
export function truncate(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= maxBytes) return bytes.toString('utf8');
  let end = maxBytes - 3; // for the ellipsis
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${bytes.toString('utf8', 0, end)}…`;
}

function statusOf(object: JsonObject): JsonObject {
  return objectOf(object['status']);
}
