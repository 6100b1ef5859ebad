/** The objects of Cluster API in a management cluster, and the Nodes of a workload cluster. */
import { isObject, objectOf } from '../../core/encoding/json-object.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { ApiAnswer, ApiProblem, JsonObject, ListWatch } from '../../core/ports/kubernetes-api.ts';
import { interpret } from './answer.ts';
import { listWatch } from './list-watch.ts';
import type { KubernetesTransport } from './transport.ts';

const group = 'cluster.x-k8s.io';
/** The preferred one first. Cluster API 1.11 and later serve v1beta2. */
const versions = ['v1beta2', 'v1beta1'] as const;

export interface ManagementCluster {
  machines(namespace: string): ListWatch;
  machinePools(namespace: string): ListWatch;
  /** The one Cluster object of that name. */
  cluster(namespace: string, name: string): ListWatch;
  readonly infraClusters: InfraClusters;
}

/** Where a kind of objects is. */
export interface ServedResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
}

/** Objects of the infrastructure providers, such as AWSCluster. All are namespaced. */
export interface InfraClusters {
  /** The group's preferred version; `NotFound` if the API server does not serve the kind. */
  find(group: string, kind: string, signal: AbortSignal): Promise<ApiAnswer<ServedResource>>;
  get(resource: ServedResource, namespace: string, name: string, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /**
   * Server-side apply of these fields of the status, with the relay's own field manager, only to the object with this UID. The answer is
   * the stored object, in which fields are missing that its definition does not have. `Invalid`, if the API server refuses such fields.
   */
  applyStatus(
    resource: ServedResource,
    place: ObjectPlace,
    status: JsonObject,
    signal: AbortSignal,
  ): Promise<ApiAnswer<JsonObject>>;
  /** Sets annotations, or removes those that are null, only of the object with this UID. Never creates an object. */
  annotate(
    resource: ServedResource,
    place: ObjectPlace,
    annotations: Readonly<Record<string, string | null>>,
    signal: AbortSignal,
  ): Promise<ApiAnswer<JsonObject>>;
}

export interface ObjectPlace {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The owner of the signer names in metadata.managedFields. */
const fieldManager = 'countersign-signers';

export function managementCluster(transport: KubernetesTransport): ManagementCluster {
  const namespaced = (namespace: string, plural: string, query: Readonly<Record<string, string>> = {}): ListWatch =>
    inServedVersion((version) =>
      listWatch(transport, {
        path: `/apis/${group}/${version}/namespaces/${encodeURIComponent(namespace)}/${plural}`,
        query,
      }),
    );
  return {
    machines: (namespace) => namespaced(namespace, 'machines'),
    machinePools: (namespace) => namespaced(namespace, 'machinepools'),
    cluster: (namespace, name) => namespaced(namespace, 'clusters', { fieldSelector: `metadata.name=${name}` }),
    infraClusters: infraClusters(transport),
  };
}

/**
 * Each list from the start finds the version out again, without a call of its own, since roles name no versions. A watch uses the
 * version of the last list.
 */
function inServedVersion(sourceOf: (version: string) => ListWatch): ListWatch {
  const sources = versions.map(sourceOf);
  let [served] = sources as [ListWatch, ...ListWatch[]];
  return {
    async list(query, signal) {
      if (query.continue !== undefined) return served.list(query, signal);
      let last: ApiAnswer<never> | undefined;
      for (const source of sources) {
        const answer = await source.list(query, signal);
        if (answer.ok || answer.problem.why !== 'NotFound') {
          served = source;
          return answer;
        }
        last = failure<ApiProblem>(answer.problem);
      }
      return last ?? failure<ApiProblem>({ why: 'NotFound', message: 'no version is served' });
    },
    watch: (query, signal) => served.watch(query, signal),
  };
}

function infraClusters(transport: KubernetesTransport): InfraClusters {
  const pathOf = ({ group: name, version, plural }: ServedResource, namespace: string, object: string): string =>
    `/apis/${name}/${version}/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(object)}`;
  return {
    async find(name, kind, signal) {
      const groupPath = `/apis/${encodeURIComponent(name)}`;
      const found = interpret(await transport.call({ method: 'GET', path: groupPath, signal }));
      if (!found.ok) return found;
      const { version } = objectOf(found.value['preferredVersion']);
      if (typeof version !== 'string') throw new Error('an API group without a preferred version');
      const listed = interpret(
        await transport.call({ method: 'GET', path: `${groupPath}/${encodeURIComponent(version)}`, signal }),
      );
      if (!listed.ok) return listed;
      const plural = pluralOf(listed.value, kind);
      if (plural === undefined) return failure({ why: 'NotFound', message: `${name}/${version} has no kind ${kind}` });
      return success({ group: name, version, kind, plural });
    },

    get: async (resource, namespace, name, signal) =>
      interpret(await transport.call({ method: 'GET', path: pathOf(resource, namespace, name), signal })),

    async applyStatus(resource, { namespace, name, uid }, status, signal) {
      const { group: apiGroup, version, kind } = resource;
      const body = { apiVersion: `${apiGroup}/${version}`, kind, metadata: { name, namespace, uid }, status };
      const path = `${pathOf(resource, namespace, name)}/status`;
      // Forced: the relay's configuration decides about these two fields, also after another writer has set them.
      const query = { fieldManager, force: 'true' };
      const contentType = 'application/apply-patch+yaml';
      const answer = await transport.call({ method: 'PATCH', path, query, body, contentType, signal });
      // Status 500 for a field that the definition does not have.
      if (answer.status === 500 && /field not declared in schema/.test(answer.text ?? ''))
        return failure({ why: 'Invalid', message: 'the definition does not have these fields of the status' });
      return interpret(answer);
    },

    async annotate(resource, { namespace, name, uid }, annotations, signal) {
      const path = pathOf(resource, namespace, name);
      const body = { metadata: { uid, annotations } };
      const contentType = 'application/merge-patch+json';
      return interpret(
        await transport.call({ method: 'PATCH', path, query: { fieldManager }, body, contentType, signal }),
      );
    },
  };
}

/** From an APIResourceList, whose subresources have a slash in their name. */
function pluralOf({ resources }: JsonObject, kind: string): string | undefined {
  if (!Array.isArray(resources)) return undefined;
  const found = resources
    .filter(isObject)
    .find((resource) => resource['kind'] === kind && !String(resource['name']).includes('/'));
  const name = found?.['name'];
  return typeof name === 'string' ? name : undefined;
}

export interface NodeObjects {
  /** The metadata of all Nodes. */
  readonly metadata: ListWatch;
  get(name: string, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
}

export function nodeObjects(transport: KubernetesTransport): NodeObjects {
  const path = '/api/v1/nodes';
  return {
    metadata: listWatch(transport, { path, metadataOnly: true }),
    get: async (name, signal) =>
      interpret(await transport.call({ method: 'GET', path: `${path}/${encodeURIComponent(name)}`, signal })),
  };
}
