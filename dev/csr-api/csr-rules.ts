/**
 * The validation rules of the Kubernetes API server for CertificateSigningRequests (v1), as far as signers depend on them.
 * The real kube-apiserver passes the same tests (test/contract). Source: k8s.io/kubernetes
 * pkg/registry/certificates/certificates/strategy.go and pkg/apis/certificates/validation.
 */
import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { objectOf } from '../../core/encoding/json-object.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import type { Instant } from '../../core/ports/instant.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';

/** A refusal, with the fields of metav1.Status. */
export interface ApiProblem {
  readonly code: 400 | 404 | 405 | 409 | 410 | 413 | 415 | 422;
  readonly reason: string;
  readonly message: string;
}
export type Stored = Result<JsonObject, ApiProblem>;

interface Condition extends JsonObject {
  readonly type: string;
  readonly status?: string;
}

const decisions = ['Approved', 'Denied'];
const mustBeTrue = new Set([...decisions, 'Failed']);

/**
 * The object after a PUT on a subresource, or why the API server refuses the PUT. If nothing changes, it is the same object.
 * Neither subresource changes the spec.
 */
export function written(old: JsonObject, subresource: 'approval' | 'status', sent: JsonObject, now: Instant): Stored {
  const { uid, resourceVersion } = objectOf(sent['metadata']);
  const stored = objectOf(old['metadata']);
  // An update without a resourceVersion is unconditional, as on the real server.
  if (
    (resourceVersion ?? stored['resourceVersion']) !== stored['resourceVersion'] ||
    (uid ?? stored['uid']) !== stored['uid']
  )
    return problem(
      409,
      'Conflict',
      `the object "${textOf(stored['name'])}" has been modified; please apply your changes to the latest version`,
    );
  const before = objectOf(old['status']);
  const after = objectOf(sent['status']);
  const conditions = nextConditions(subresource, conditionsOf(before), conditionsOf(after), now);
  if (typeof conditions === 'string') return invalid(conditions);
  const certificate = subresource === 'status' ? after['certificate'] : before['certificate'];
  const wrong = certificateProblem(before['certificate'], certificate);
  if (wrong !== undefined) return invalid(wrong);
  const status = {
    ...(conditions.length === 0 ? {} : { conditions }),
    ...(certificate === undefined ? {} : { certificate }),
  };
  const described = pick({ ...stored, ...objectOf(sent['metadata']) }, 'labels', 'annotations');
  const changed = !isDeepStrictEqual([described, status], [pick(stored, 'labels', 'annotations'), before]);
  return success(changed ? { ...old, metadata: { ...stored, ...described }, status } : old);
}

/** The first validation rule of creation that the spec breaks. */
export function specProblem(spec: JsonObject): string | undefined {
  const { signerName, request, usages, expirationSeconds } = spec;
  if (typeof signerName !== 'string' || !/^[a-z0-9.-]+\.[a-z0-9.-]+\/[A-Za-z0-9._-]+$/.test(signerName))
    return 'spec.signerName: must be a fully qualified domain and path of the form "example.com/signer-name"';
  if (signerName === 'kubernetes.io/legacy-unknown')
    return `spec.signerName: the signer ${signerName} is not allowed via this API version`;
  const pem = typeof request === 'string' ? Buffer.from(request, 'base64').toString('latin1') : '';
  if (!pem.includes('-----BEGIN CERTIFICATE REQUEST-----'))
    return 'spec.request: PEM block type must be CERTIFICATE REQUEST';
  if (!Array.isArray(usages) || usages.length === 0) return 'spec.usages: Required value';
  if (expirationSeconds !== undefined && !(typeof expirationSeconds === 'number' && expirationSeconds >= 600))
    return 'spec.expirationSeconds: may not specify a duration less than 600 seconds (10 minutes)';
  return undefined;
}

/** Conditions as stored after the write, or what is wrong. Only /approval may add a decision; no write may remove a condition. */
function nextConditions(
  subresource: 'approval' | 'status',
  before: readonly Condition[],
  sent: readonly Condition[],
  now: Instant,
): readonly Condition[] | string {
  const count = (list: readonly Condition[], wanted: string): number =>
    list.filter(({ type }) => type === wanted).length;
  for (const type of [...decisions, 'Failed'])
    if (count(sent, type) < count(before, type))
      return `status.conditions: Forbidden: updates may not remove a condition of type "${type}"`;
  for (const type of decisions)
    if (subresource === 'status' && count(sent, type) > count(before, type))
      return `status.conditions: Forbidden: updates may not add a condition of type "${type}"`;
  const types = new Set(sent.map(({ type }) => type));
  if (types.size < sent.length) return 'status.conditions: Duplicate value';
  if (decisions.every((type) => types.has(type)))
    return 'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive';
  for (const { type, status } of sent)
    if (mustBeTrue.has(type) && status !== 'True')
      return `status.conditions: Invalid value: ${type} must have status "True"`;
  return sent.map((condition) => {
    const old = before.find(({ type }) => type === condition.type);
    if (subresource === 'status' && old !== undefined && decisions.includes(condition.type)) return old;
    // A condition without times keeps its earlier transition time, or gets the current time.
    return {
      lastUpdateTime: metaTime(now),
      lastTransitionTime: old?.['lastTransitionTime'] ?? metaTime(now),
      ...condition,
    };
  });
}

function certificateProblem(before: unknown, after: unknown): string | undefined {
  if (before === after) return undefined;
  if (before !== undefined) return 'status.certificate: Forbidden: updates may not modify a set certificate';
  if (typeof after !== 'string') return 'status.certificate: must be base64';
  const blocks =
    Buffer.from(after, 'base64')
      .toString('latin1')
      .match(/-----BEGIN [^]*?-----END [^]*?-----\n?/g) ?? [];
  try {
    for (const block of blocks) void new X509Certificate(block);
  } catch {
    return 'status.certificate: Invalid value: must be PEM CERTIFICATE blocks';
  }
  return blocks.length === 0 ? 'status.certificate: Invalid value: no PEM block' : undefined;
}

function conditionsOf(status: JsonObject): readonly Condition[] {
  const { conditions } = status;
  return Array.isArray(conditions) ? (conditions as readonly Condition[]) : [];
}

export function invalid(message: string): Stored {
  return problem(422, 'Invalid', message);
}

export function problem(code: ApiProblem['code'], reason: string, message: string): Stored & { ok: false } {
  return failure({ code, reason, message });
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function pick(object: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(keys.filter((key) => object[key] !== undefined).map((key) => [key, object[key]]));
}

export function metaTime(instant: Instant): string {
  return `${new Date(instant).toISOString().slice(0, 19)}Z`;
}
