import { failure, success } from '../../core/outcome/result.ts';
import { isAddressable } from '../../core/kubernetes/certificate-signing-request.ts';
import type {
  AccessQuestion,
  ApiAnswer,
  ApiProblem,
  JsonObject,
  RequestApi,
  RequestPage,
  WatchEvent,
} from '../../core/ports/kubernetes-api.ts';
import { interpret, refusalOf } from './answer.ts';
import { connectTransport } from './login.ts';
import type { KubernetesLogin } from './login.ts';
import type { HttpCall, KubernetesTransport } from './transport.ts';
import { trustObjects } from './trust-objects.ts';
import type { TrustObjects } from './trust-objects.ts';
import { decodeWatch } from './watch.ts';
import { isObject, objectOf } from '../../core/encoding/json-object.ts';

export interface KubernetesApi {
  readonly requests: RequestApi;
  /** Create and delete a request: for the demo, since the relay does neither. */
  create(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  remove(name: string, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  lease(namespace: string, name: string): KubernetesLease;
  readonly trust: TrustObjects;
  /** The URL, for a log line. */
  readonly server: string;
  close(): void;
}

/** One Lease of coordination.k8s.io/v1. Like RequestApi: a refusal is a value; an unknown result is thrown. */
export interface KubernetesLease {
  get(signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** `Conflict` if it exists. */
  create(spec: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** `Conflict` unless the Lease still has this resourceVersion. */
  update(lease: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
}

const requestsPath = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const reviewsPath = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const eventsPath = '/apis/events.k8s.io/v1/namespaces/default/events';
/**
 * Parsing a page takes about nine times its size in memory. 100 ordinary requests are 400 KiB; the relay asks for larger pages
 * again with fewer objects. One object is 1.5 MiB in etcd, and six times as much if it consists of control characters.
 */
const maxPageBytes = 4 * 1_048_576;
const maxObjectBytes = 12 * 1_048_576;
const listMilliseconds = 60_000;
/** The API server ends a watch after timeoutSeconds; if it does not, the relay ends it this much later. */
const watchSlackMilliseconds = 60_000;
/** The owner of the written fields in metadata.managedFields. */
const fieldManager = 'countersign';

/**
 * The API server behind a kubeconfig, or of the cluster this pod runs in. The Kubernetes client library reads the
 * configuration and logs in (tokens, rotated token files, client certificates, exec plugins, proxies); objects go
 * through as plain JSON, because the typed models drop unknown fields, and the relay sends objects back.
 * Throws at once if the configuration cannot be read.
 */
export function connectKubernetes(login: KubernetesLogin): KubernetesApi {
  const { transport, server } = connectTransport(login);
  return {
    requests: requestApi(transport),
    create: (object, signal) => ask(transport, { method: 'POST', path: requestsPath, body: object, signal }),
    remove: (name, signal) =>
      ask(transport, { method: 'DELETE', path: `${requestsPath}/${encodeURIComponent(name)}`, signal }),
    lease: (namespace, name) => leaseCalls(transport, namespace, name),
    trust: trustObjects(transport),
    server,
    close: () => transport.close(),
  };
}

function requestApi(transport: KubernetesTransport): RequestApi {
  const bySigner = (signerName: string): Record<string, string> => ({ fieldSelector: `spec.signerName=${signerName}` });

  return {
    async list({ signerName, limit, continue: token }, signal) {
      const query = {
        ...bySigner(signerName),
        limit: String(limit),
        ...(token === undefined ? {} : { continue: token }),
      };
      const bounds = { maxBytes: limit === 1 ? maxObjectBytes : maxPageBytes, timeoutMilliseconds: listMilliseconds };
      const answer = await ask(transport, { method: 'GET', path: requestsPath, query, signal, ...bounds });
      return answer.ok ? success(pageOf(answer.value)) : answer;
    },

    async watch({ signerName, resourceVersion, timeoutSeconds }, signal) {
      const query = {
        ...bySigner(signerName),
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion,
        timeoutSeconds: String(timeoutSeconds),
      };
      const lifetime = timeoutSeconds * 1_000 + watchSlackMilliseconds;
      const answer = await transport.stream({ method: 'GET', path: requestsPath, query, signal }, lifetime);
      if (!('body' in answer)) {
        const refused = interpret(answer);
        if (refused.ok) throw new Error('the API server answered a watch without a stream');
        return refused;
      }
      const events: AsyncIterable<WatchEvent> = decodeWatch(answer.body, (status) => {
        const { why, message } = refusalOf(codeOf(status), status);
        return { why: why === 'Throttled' ? 'Unavailable' : why, message };
      });
      return success(events);
    },

    get: async (name, signal) => {
      const path = pathOf(name);
      return path === undefined ? unaddressable : ask(transport, { method: 'GET', path, signal });
    },

    updateStatus: (object, signal) => replace(transport, 'status', object, signal),
    updateApproval: (object, signal) => replace(transport, 'approval', object, signal),

    async reviewAccess(question, signal) {
      const answer = await ask(transport, { method: 'POST', path: reviewsPath, body: reviewOf(question), signal });
      if (!answer.ok) return answer;
      const { allowed } = objectOf(answer.value['status']);
      if (typeof allowed !== 'boolean') throw new Error('a SubjectAccessReview without an answer');
      return success(allowed);
    },

    createEvent: (event, signal) =>
      ask(transport, { method: 'POST', path: eventsPath, query: { fieldManager }, body: event, signal }),
  };
}

/** PUT of one subresource. */
async function replace(
  transport: KubernetesTransport,
  subresource: 'status' | 'approval',
  object: JsonObject,
  signal: AbortSignal,
): Promise<ApiAnswer<JsonObject>> {
  const { name, uid, resourceVersion } = metadataOf(object);
  // Without these two the API server would accept the update even if the object has changed.
  if (typeof name !== 'string' || !uid || !resourceVersion)
    return failure({ why: 'Invalid', message: 'the object has no UID or resourceVersion' });
  const path = pathOf(name);
  if (path === undefined) return unaddressable;
  return ask(transport, {
    method: 'PUT',
    path: `${path}/${subresource}`,
    query: { fieldManager },
    body: object,
    signal,
  });
}

const unaddressable = failure<ApiProblem>({ why: 'TooLarge', message: 'the name is too long for a URL' });

/** `undefined`: the name does not fit into a URL. */
function pathOf(name: string): string | undefined {
  return isAddressable(name) ? `${requestsPath}/${encodeURIComponent(name)}` : undefined;
}

/** Exactly the review of the in-tree approver (pkg/controller/certificates/approver/sarapprove.go), `version` included. */
function reviewOf({ user, uid, groups, extra, ...attributes }: AccessQuestion): JsonObject {
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user,
      ...(uid === undefined ? {} : { uid }),
      groups,
      extra,
      resourceAttributes: { ...attributes, version: '*' },
    },
  };
}

function leaseCalls(transport: KubernetesTransport, namespace: string, name: string): KubernetesLease {
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  const lease = `${leases}/${encodeURIComponent(name)}`;
  return {
    get: (signal) => ask(transport, { method: 'GET', path: lease, signal }),
    create: (spec, signal) => {
      const body = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace },
        spec,
      };
      return ask(transport, { method: 'POST', path: leases, body, signal });
    },
    update: (body, signal) => ask(transport, { method: 'PUT', path: lease, body, signal }),
  };
}

async function ask(transport: KubernetesTransport, call: HttpCall): Promise<ApiAnswer<JsonObject>> {
  return interpret(await transport.call(call));
}

function codeOf(status: JsonObject): number {
  return typeof status['code'] === 'number' ? status['code'] : 500;
}

/** The API server leaves these fields out of list items. */
const requestType = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };

function pageOf(list: JsonObject): RequestPage {
  const { resourceVersion, continue: token } = metadataOf(list);
  const items = list['items'] ?? [];
  if (typeof resourceVersion !== 'string' || resourceVersion === '' || !Array.isArray(items) || !items.every(isObject))
    throw new Error('a list without items or resourceVersion');
  return {
    items: items.map((item) => ({ ...requestType, ...item })),
    resourceVersion,
    ...(typeof token === 'string' && token !== '' ? { continue: token } : {}),
  };
}

function metadataOf(object: JsonObject): JsonObject {
  return objectOf(object['metadata']);
}
