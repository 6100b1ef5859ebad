import { isObject, objectOf } from '../../../core/encoding/json-object.ts';
import { decodeRequestObject, maxRelayedBytes } from '../../../core/kubernetes/certificate-signing-request.ts';
import type { RequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import type { IgnoredWhy } from '../../../core/outcome/outcome.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import { triage } from '../../../core/kubernetes/triage.ts';

/** The longest name that decodeRequestObject accepts, in characters. */
const maxNameLength = 1_024;

/** The message of the Failed condition, and of the answer to webhook clients. */
export const oversizedMessage = `the request object is larger than ${maxRelayedBytes / 1_024} KiB, or its name is too long`;

export type RequestPhase =
  /** Approved, without certificate or Failed condition: to be signed, or refused if it is oversized. */
  | { readonly kind: 'approved'; readonly object: RequestObject; readonly oversized: boolean }
  /** Neither approved nor denied. */
  | { readonly kind: 'pending'; readonly object: RequestObject; readonly oversized: boolean }
  | { readonly kind: 'settled'; readonly why: IgnoredWhy; readonly uid: string }
  /** Not a valid object. */
  | { readonly kind: 'malformed'; readonly message: string };

/** An object is oversized if its JSON (`bytes`) is too large or its name too long. The relay itself refuses it. */
export function classify(json: JsonObject, bytes = 0): RequestPhase {
  const name = nameOf(json) ?? '';
  const longName = name.length > maxNameLength;
  let decoded = decodeRequestObject(longName ? withName(json, name.slice(0, maxNameLength)) : json);
  // The sign function refuses a request that is too large. Here only its phase matters.
  if (!decoded.ok && decoded.problem.tooLarge === true)
    decoded = decodeRequestObject(withoutContent(withName(json, name.slice(0, maxNameLength))));
  if (!decoded.ok) return { kind: 'malformed', message: decoded.problem.message };
  const object = { ...decoded.value, name };
  const oversized = longName || bytes > maxRelayedBytes;
  const why = triage(decoded.value);
  // An Approved condition whose status is not True is a decision too.
  const undecided = !decoded.value.conditions.some(({ type }) => type === 'Approved');
  if (why === 'NotApproved' && undecided && !decoded.value.hasCertificate)
    return { kind: 'pending', object, oversized };
  if (why !== undefined) return { kind: 'settled', why, uid: decoded.value.uid };
  return { kind: 'approved', object, oversized };
}

export function uidOf(json: JsonObject): string | undefined {
  return metadataField(json, 'uid');
}

export function nameOf(json: JsonObject): string | undefined {
  return metadataField(json, 'name');
}

/** By the API server's clock, in whole seconds; undefined if it cannot be read. */
export function createdAt(json: JsonObject): Instant | undefined {
  const instant = Date.parse(metadataField(json, 'creationTimestamp') ?? '');
  return Number.isNaN(instant) ? undefined : instant;
}

export function resourceVersionOf(json: JsonObject): string | undefined {
  return metadataField(json, 'resourceVersion');
}

function metadataField(json: JsonObject, field: string): string | undefined {
  const value = objectOf(json['metadata'])[field];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Bytes of the object's JSON; without managedFields if they are nested too deeply for JSON.stringify. */
export function sizeOf(json: JsonObject): number {
  try {
    return Buffer.byteLength(JSON.stringify(json));
  } catch {
    return Buffer.byteLength(JSON.stringify(withoutManagedFields(json)));
  }
}

/**
 * A requester can nest metadata.managedFields arbitrarily: 5 000 levels are too deep for JSON.stringify, 100 for the sign
 * function. If an update has no managedFields, the API server keeps those that it has.
 */
export function withoutManagedFields(json: JsonObject): JsonObject {
  const { metadata } = json;
  if (!isObject(metadata) || !('managedFields' in metadata)) return json;
  const { managedFields: _, ...rest } = metadata;
  return { ...json, metadata: rest };
}

function withName(json: JsonObject, name: string): JsonObject {
  return { ...json, metadata: { ...(json['metadata'] as JsonObject), name } };
}

function withoutContent(json: JsonObject): JsonObject {
  return { ...json, spec: { ...(json['spec'] as JsonObject), request: 'AA==', usages: [], groups: [] } };
}
