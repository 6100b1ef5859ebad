import { failure, success } from '../../core/outcome/result.ts';
import { isAddressable } from '../../core/kubernetes/certificate-signing-request.ts';
import type {
  AccessQuestion,
  ApiAnswer,
  ApiProblem,
  JsonObject,
  ListWatch,
  RequestApi,
} from '../../core/ports/kubernetes-api.ts';
import { interpret } from './answer.ts';
import { managementCluster, nodeObjects } from './cluster-api.ts';
import type { ManagementCluster, NodeObjects } from './cluster-api.ts';
import { listWatch } from './list-watch.ts';
import { connectTransport } from './login.ts';
import type { KubernetesLogin } from './login.ts';
import type { HttpCall, KubernetesTransport } from './transport.ts';
import { trustObjects } from './trust-objects.ts';
import type { TrustObjects } from './trust-objects.ts';
import { objectOf } from '../../core/encoding/json-object.ts';

export interface KubernetesApi {
  readonly requests: RequestApi;
  /** Create and delete a request: for the demo, since the relay does neither. */
  create(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  remove(name: string, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  lease(namespace: string, name: string): KubernetesLease;
  readonly trust: TrustObjects;
  /** The objects of Cluster API here, if this is a management cluster. */
  readonly management: ManagementCluster;
  readonly nodes: NodeObjects;
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
    management: managementCluster(transport),
    nodes: nodeObjects(transport),
    server,
    close: () => transport.close(),
  };
}

function requestApi(transport: KubernetesTransport): RequestApi {
  const ofSigner = (signerName: string): ListWatch =>
    listWatch(transport, {
      path: requestsPath,
      query: { fieldSelector: `spec.signerName=${signerName}` },
      itemType: requestType,
    });

  return {
    list: ({ signerName, ...query }, signal) => ofSigner(signerName).list(query, signal),
    watch: ({ signerName, ...query }, signal) => ofSigner(signerName).watch(query, signal),

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

/** The API server leaves these fields out of list items. */
const requestType = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };

function metadataOf(object: JsonObject): JsonObject {
  return objectOf(object['metadata']);
}
