/**
 * The CertificateSigningRequests of a stand-in API server, in memory: the rules of certificates.k8s.io/v1 that a signer
 * depends on, as strict as the real one where both were compared (test/suites). Source: k8s.io/kubernetes
 * pkg/registry/certificates/certificates/strategy.go and pkg/apis/certificates/validation.
 */
import { randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { objectOf } from '../../core/encoding/json-object.ts';

export interface Requester {
  readonly username: string;
  readonly groups: readonly string[];
}

/** A "no" as metav1.Status has it. */
export interface ApiProblem {
  readonly code: 400 | 404 | 405 | 409 | 410 | 413 | 415 | 422;
  readonly reason: string;
  readonly message: string;
}
export type Stored =
  { readonly ok: true; readonly object: JsonObject } | { readonly ok: false; readonly problem: ApiProblem };

export interface StoreEvent {
  readonly type: 'ADDED' | 'MODIFIED';
  readonly object: JsonObject;
  readonly version: number;
}

export interface CsrStore {
  create(object: JsonObject, requester: Requester): Stored;
  get(name: string): Stored;
  /** PUT on a subresource; the spec is never changed by it. */
  update(name: string, subresource: 'approval' | 'status', object: JsonObject): Stored;
  /** By name, from the one after `after` on. */
  list(after: string): readonly JsonObject[];
  readonly version: () => number;
  /** All changes after this version, now and later; nothing when they are no longer known: list anew. */
  watch(version: number, each: (event: StoreEvent) => void): (() => void) | undefined;
}

interface Condition extends JsonObject {
  readonly type: string;
  readonly status?: string;
}

/** Changes kept for watches that come back; a real server forgets after some minutes. */
const keptEvents = 1_000;
const decisions = ['Approved', 'Denied'];
const mustBeTrue = new Set([...decisions, 'Failed']);

export function createCsrStore(now: () => Instant): CsrStore {
  const objects = new Map<string, JsonObject>();
  const events: StoreEvent[] = [];
  const watchers = new Set<(event: StoreEvent) => void>();
  let version = 1;

  function store(type: StoreEvent['type'], object: JsonObject): Stored {
    version += 1;
    const metadata = objectOf(object['metadata']);
    const stored = { ...object, metadata: { ...metadata, resourceVersion: String(version) } };
    objects.set(text(metadata['name']), stored);
    const event: StoreEvent = { type, object: stored, version };
    events.push(event);
    if (events.length > keptEvents) events.shift();
    for (const each of watchers) each(event);
    return { ok: true, object: stored };
  }

  return {
    create(object, requester) {
      const metadata = objectOf(object['metadata']);
      const name = metadata['name'] ?? `${text(metadata['generateName'])}${randomBytes(3).toString('hex').slice(0, 5)}`;
      if (typeof name !== 'string' || !/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(name))
        return invalid('metadata.name: must be a lower-case DNS name');
      if (objects.has(name))
        return problem(409, 'AlreadyExists', `certificatesigningrequests "${name}" already exists`);
      const spec = { ...objectOf(object['spec']), username: requester.username, groups: requester.groups };
      const wrong = specProblem(spec);
      if (wrong !== undefined) return invalid(wrong);
      return store('ADDED', {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: {
          name,
          uid: randomUUID(),
          creationTimestamp: metaTime(now()),
          ...pick(metadata, 'generateName', 'labels', 'annotations'),
        },
        spec,
        status: {},
      });
    },

    get: (name) => found(objects.get(name), name),

    update(name, subresource, object) {
      const old = found(objects.get(name), name);
      if (!old.ok) return old;
      const { uid, resourceVersion } = objectOf(object['metadata']);
      const stored = objectOf(old.object['metadata']);
      // An update without a resourceVersion is unconditional, as on the real server.
      if (
        (resourceVersion ?? stored['resourceVersion']) !== stored['resourceVersion'] ||
        (uid ?? stored['uid']) !== stored['uid']
      )
        return problem(
          409,
          'Conflict',
          `the object "${name}" has been modified; please apply your changes to the latest version`,
        );
      const before = objectOf(old.object['status']);
      const after = objectOf(object['status']);
      const conditions = nextConditions(subresource, conditionsOf(before), conditionsOf(after), now());
      if (typeof conditions === 'string') return invalid(conditions);
      const certificate = subresource === 'status' ? after['certificate'] : before['certificate'];
      const wrong = certificateProblem(before['certificate'], certificate);
      if (wrong !== undefined) return invalid(wrong);
      const status = {
        ...(conditions.length === 0 ? {} : { conditions }),
        ...(certificate === undefined ? {} : { certificate }),
      };
      // A write that changes nothing is no event, and keeps its resourceVersion.
      const metadata = { ...stored, ...pick(objectOf(object['metadata']), 'labels', 'annotations') };
      const updated = { ...old.object, metadata, status };
      if (JSON.stringify(updated) === JSON.stringify(old.object)) return old;
      return store('MODIFIED', updated);
    },

    list: (after) =>
      [...objects.keys()]
        .filter((name) => name > after)
        .toSorted()
        .map((name) => objects.get(name) ?? {}),
    version: () => version,

    watch(from, each) {
      const oldest = events[0]?.version ?? version + 1;
      if (from > version || from < oldest - 1) return undefined;
      for (const event of events) if (event.version > from) each(event);
      watchers.add(each);
      return () => watchers.delete(each);
    },
  };
}

/** The first rule of creation that is broken. */
function specProblem(spec: JsonObject): string | undefined {
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

/** Conditions as stored after the write, or what is wrong. Only /approval decides, and a condition is never removed. */
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
    // What was sent without times gets those it had, or now.
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

function found(object: JsonObject | undefined, name: string): Stored {
  return object === undefined
    ? problem(404, 'NotFound', `certificatesigningrequests.certificates.k8s.io "${name}" not found`)
    : { ok: true, object };
}

function invalid(message: string): Stored {
  return problem(422, 'Invalid', message);
}

export function problem(code: ApiProblem['code'], reason: string, message: string): Stored & { ok: false } {
  return { ok: false, problem: { code, reason, message } };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function pick(object: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(keys.filter((key) => object[key] !== undefined).map((key) => [key, object[key]]));
}

function metaTime(instant: Instant): string {
  return `${new Date(instant).toISOString().slice(0, 19)}Z`;
}
