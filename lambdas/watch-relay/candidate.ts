import { decodeRequestObject } from '../../core/kubernetes.ts';
import type { RequestObject } from '../../core/kubernetes.ts';
import type { IgnoredWhy } from '../../core/outcome.ts';
import type { JsonObject } from '../../core/ports.ts';
import { triage } from '../../core/triage.ts';

/** What the relay makes of an object before it asks anybody. */
export type Judgement =
  /** Approved and unanswered: the sign function's to answer. */
  | { readonly kind: 'candidate'; readonly object: RequestObject }
  /** Nobody has decided yet. */
  | { readonly kind: 'pending'; readonly object: RequestObject }
  | { readonly kind: 'settled'; readonly why: IgnoredWhy; readonly uid: string }
  /** Not an object that the API server should have given us. */
  | { readonly kind: 'malformed'; readonly message: string };

export function judge(json: JsonObject): Judgement {
  let decoded = decodeRequestObject(json);
  // Too large to sign is the sign function's refusal, with its own words. All we need to know is whether it is approved.
  if (!decoded.ok && decoded.tooLarge === true) decoded = decodeRequestObject(withoutRequest(json));
  if (!decoded.ok) return { kind: 'malformed', message: decoded.message };
  const why = triage(decoded.object);
  // An Approved condition that says otherwise is somebody's decision, whatever it means.
  const undecided = !decoded.object.conditions.some(({ type }) => type === 'Approved');
  if (why === 'NotApproved' && undecided && !decoded.object.hasCertificate)
    return { kind: 'pending', object: decoded.object };
  if (why !== undefined) return { kind: 'settled', why, uid: decoded.object.uid };
  return { kind: 'candidate', object: decoded.object };
}

/** The object's UID, if it has one: enough to forget it. */
export function uidOf(json: JsonObject): string | undefined {
  return metadataField(json, 'uid');
}

export function nameOf(json: JsonObject): string | undefined {
  return metadataField(json, 'name');
}

export function resourceVersionOf(json: JsonObject): string | undefined {
  return metadataField(json, 'resourceVersion');
}

function metadataField(json: JsonObject, field: string): string | undefined {
  const metadata = json['metadata'];
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const value = (metadata as JsonObject)[field];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function withoutRequest(json: JsonObject): JsonObject {
  return { ...json, spec: { ...(json['spec'] as JsonObject), request: 'AA==' } };
}
