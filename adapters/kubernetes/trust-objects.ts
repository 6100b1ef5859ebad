/** The objects in which a cluster finds CA certificates: ConfigMaps and ClusterTrustBundles. */
import { isObject } from '../../core/encoding/json-object.ts';
import { success } from '../../core/outcome/result.ts';
import type { ApiAnswer, JsonObject } from '../../core/ports/kubernetes-api.ts';
import { interpret } from './answer.ts';
import type { KubernetesTransport } from './transport.ts';

/** One object. A refusal is a value; an unknown result is thrown. */
export interface ObjectCalls {
  get(signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** `Conflict` if it exists. */
  create(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** `Conflict` unless the object still has this resourceVersion. */
  update(object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
}

/** Versions of certificates.k8s.io with ClusterTrustBundles of the same form, the preferred one first. */
const versions = ['v1', 'v1beta1'] as const;
export type ClusterTrustBundleVersion = (typeof versions)[number];

export interface TrustObjects {
  configMap(namespace: string, name: string): ObjectCalls;
  clusterTrustBundle(version: ClusterTrustBundleVersion, name: string): ObjectCalls;
  /** The version in which the API server serves ClusterTrustBundles; undefined if it serves none. */
  clusterTrustBundleVersion(signal: AbortSignal): Promise<ApiAnswer<ClusterTrustBundleVersion | undefined>>;
}

const fieldManager = 'countersign';

export function trustObjects(transport: KubernetesTransport): TrustObjects {
  function objectAt(collection: string, name: string): ObjectCalls {
    const path = `${collection}/${encodeURIComponent(name)}`;
    const query = { fieldManager };
    return {
      get: async (signal) => interpret(await transport.call({ method: 'GET', path, signal })),
      create: async (body, signal) =>
        interpret(await transport.call({ method: 'POST', path: collection, query, body, signal })),
      update: async (body, signal) => interpret(await transport.call({ method: 'PUT', path, query, body, signal })),
    };
  }

  return {
    configMap: (namespace, name) => objectAt(`/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps`, name),
    clusterTrustBundle: (version, name) => objectAt(`/apis/certificates.k8s.io/${version}/clustertrustbundles`, name),
    async clusterTrustBundleVersion(signal) {
      for (const version of versions) {
        const path = `/apis/certificates.k8s.io/${version}`;
        const answer = interpret(await transport.call({ method: 'GET', path, signal }));
        if (!answer.ok && answer.problem.why !== 'NotFound') return answer;
        if (answer.ok && hasClusterTrustBundles(answer.value)) return success(version);
      }
      return success(undefined);
    },
  };
}

/** An APIResourceList. */
function hasClusterTrustBundles({ resources }: JsonObject): boolean {
  return (
    Array.isArray(resources) &&
    resources.some((resource) => isObject(resource) && resource['name'] === 'clustertrustbundles')
  );
}
