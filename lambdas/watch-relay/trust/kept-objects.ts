/** Which object holds the CA certificates of which signer, and what exactly it holds. */
import { objectOf } from '../../../core/encoding/json-object.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type {
  ClusterTrustBundleVersion,
  ObjectCalls,
  TrustObjects,
} from '../../../adapters/kubernetes/trust-objects.ts';

/** The settings: what the relay keeps. */
export interface KeptTrust {
  readonly configMaps: readonly ConfigMapPlace[];
  /** The end of the names of ClusterTrustBundles, one for each signer of the relay; undefined: none is kept. */
  readonly clusterTrustBundleSuffix: string | undefined;
}

export interface ConfigMapPlace {
  readonly signerName: string;
  readonly namespace: string;
  readonly name: string;
}

/** One object and its content. */
export interface KeptObject {
  readonly kind: 'ConfigMap' | 'ClusterTrustBundle';
  /** For messages. */
  readonly name: string;
  readonly signerName: string;
  readonly calls: ObjectCalls;
  /** Without an object: a new one. Of an existing one everything but its content stays. */
  readonly holding: (pem: string, existing?: JsonObject) => JsonObject;
  readonly holds: (object: JsonObject, pem: string) => boolean;
}

/**
 * The mark of an object that the relay may write. An operator who chose the name of another object, such as kube-root-ca.crt,
 * would otherwise have it overwritten.
 */
const mark = 'countersign.dev/trust-bundle-of';

/** The key that Kubernetes' own ConfigMap of CA certificates has (kube-root-ca.crt). */
const configMapKey = 'ca.crt';

/** The signer whose certificates the relay keeps in this object; undefined: it is not the relay's. */
export function keptFor(object: JsonObject): unknown {
  return objectOf(objectOf(object['metadata'])['annotations'])[mark];
}

export function keptConfigMap({ signerName, namespace, name }: ConfigMapPlace, objects: TrustObjects): KeptObject {
  return {
    kind: 'ConfigMap',
    name: `${namespace}/${name}`,
    signerName,
    calls: objects.configMap(namespace, name),
    holding: (pem, existing = newObject('v1', 'ConfigMap', { name, namespace }, signerName)) => {
      const { binaryData: _removed, ...rest } = existing;
      return { ...rest, data: { [configMapKey]: pem } };
    },
    // Some programs read every file of a folder, so another key is more trust.
    holds: ({ data, binaryData }, pem) =>
      objectOf(data)[configMapKey] === pem &&
      Object.keys(objectOf(data)).length === 1 &&
      Object.keys(objectOf(binaryData)).length === 0,
  };
}

export function keptClusterTrustBundle(
  signerName: string,
  suffix: string,
  version: ClusterTrustBundleVersion,
  objects: TrustObjects,
): KeptObject {
  const name = clusterTrustBundleName(signerName, suffix);
  const apiVersion = `certificates.k8s.io/${version}`;
  return {
    kind: 'ClusterTrustBundle',
    name,
    signerName,
    calls: objects.clusterTrustBundle(version, name),
    holding: (pem, existing = newObject(apiVersion, 'ClusterTrustBundle', { name }, signerName)) => ({
      ...existing,
      spec: { signerName, trustBundle: pem },
    }),
    holds: ({ spec }, pem) => objectOf(spec)['trustBundle'] === pem,
  };
}

/** The API server demands that the name begins with that of the signer. */
export function clusterTrustBundleName(signerName: string, suffix: string): string {
  return `${signerName.replaceAll('/', ':')}:${suffix}`;
}

function newObject(apiVersion: string, kind: string, metadata: JsonObject, signerName: string): JsonObject {
  return { apiVersion, kind, metadata: { ...metadata, annotations: { [mark]: signerName } } };
}
