/**
 * What the relay reads of the objects of Cluster API, cluster.x-k8s.io v1beta2, or v1beta1 where the API server serves no v1beta2.
 * A field of another form counts as absent: attest then refuses the machine with the reason for the absent field.
 */
import { isObject, objectOf } from '../../../core/encoding/json-object.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { ClusterObject, MachineObject } from '../../../core/ports/signing-endpoint.ts';

/** A Machine or MachinePool. A Machine has at most one provider ID. */
export interface MachineRecord extends Omit<MachineObject, 'providerId'> {
  readonly providerIds: readonly string[];
}

export interface ClusterRecord extends ClusterObject {
  /** `spec.infrastructureRef`: the InfraCluster, in the namespace of the Cluster. */
  readonly infrastructure?: ObjectReference;
}

export interface ObjectReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
}

export function machineRecord(json: JsonObject): MachineRecord {
  const { spec, status } = partsOf(json);
  const providerId = textOf(spec['providerID']);
  const nodeName = textOf(objectOf(status['nodeRef'])['name']);
  const addresses = addressesOf(status['addresses']);
  return {
    kind: 'Machine',
    ...common(json),
    providerIds: providerId === undefined ? [] : [providerId],
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(addresses.length === 0 ? {} : { addresses }),
  };
}

export function machinePoolRecord(json: JsonObject): MachineRecord {
  const { providerIDList: list } = partsOf(json).spec;
  const providerIds = textsOf(list).filter((entry) => entry !== '');
  return { kind: 'MachinePool', ...common(json), providerIds: [...new Set(providerIds)] };
}

function common(json: JsonObject) {
  const { metadata, spec, status } = partsOf(json);
  return {
    namespace: textOf(metadata['namespace']) ?? '',
    name: textOf(metadata['name']) ?? '',
    clusterName: textOf(spec['clusterName']) ?? '',
    bootstrapReady: isBootstrapReady(status),
    deleting: isDeleting(metadata),
  };
}

/**
 * The condition says it, if it is there and known. v1beta1 has it under another name, and those of v1beta2 in `status.v1beta2`. The
 * fallback is the field that the controller sets once: `initialization.bootstrapDataSecretCreated`, `bootstrapReady` in v1beta1.
 */
function isBootstrapReady(status: JsonObject): boolean {
  const condition =
    conditionOf(status, 'BootstrapConfigReady') ??
    conditionOf(objectOf(status['v1beta2']), 'BootstrapConfigReady') ??
    conditionOf(status, 'BootstrapReady');
  if (condition === 'True' || condition === 'False') return condition === 'True';
  return objectOf(status['initialization'])['bootstrapDataSecretCreated'] === true || status['bootstrapReady'] === true;
}

function conditionOf({ conditions }: JsonObject, type: string): unknown {
  if (!Array.isArray(conditions)) return undefined;
  return conditions.map(objectOf).find((condition) => condition['type'] === type)?.['status'];
}

/** The fields of `spec.security` are those of the proposal; no released CRD has them, so the annotations are the usual place. */
const annotations = {
  kubeletAuthentication: 'cluster.x-k8s.io/kubelet-authentication',
  authorizedAttestors: 'cluster.x-k8s.io/authorized-attestors',
} as const;

export function clusterRecord(json: JsonObject): ClusterRecord {
  const { metadata, spec } = partsOf(json);
  const security = objectOf(spec['security']);
  const annotated = objectOf(metadata['annotations']);
  const kubeletAuthentication =
    booleanOf(security['kubeletAuthentication']) ?? booleanOf(annotated[annotations.kubeletAuthentication]);
  const authorizedAttestors =
    listOf(security['authorizedAttestors']) ?? listOf(annotated[annotations.authorizedAttestors]);
  const infrastructure = referenceOf(spec['infrastructureRef']);
  return {
    deleting: isDeleting(metadata),
    ...(kubeletAuthentication === undefined ? {} : { kubeletAuthentication }),
    ...(authorizedAttestors === undefined ? {} : { authorizedAttestors }),
    ...(infrastructure === undefined ? {} : { infrastructure }),
  };
}

/** A value that is set and is no boolean counts as false: an operator who misspelled it did not permit anything. */
function booleanOf(value: unknown): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  return value === true || value === 'true';
}

/** A list, or names separated by commas. A value of another form is a list that permits no attestor. */
function listOf(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  const entries = typeof value === 'string' ? value.split(',').map((entry) => entry.trim()) : textsOf(value);
  return entries.filter((entry) => entry !== '');
}

/** v1beta2 names the API group, v1beta1 the group with a version. */
function referenceOf(value: unknown): ObjectReference | undefined {
  const { apiGroup, apiVersion, kind, name } = objectOf(value);
  const group = textOf(apiGroup) ?? /^([^/]+)\//.exec(textOf(apiVersion) ?? '')?.[1];
  const [kindText, nameText] = [textOf(kind), textOf(name)];
  if (group === undefined || kindText === undefined || nameText === undefined) return undefined;
  return { group, kind: kindText, name: nameText };
}

function addressesOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry) => (isObject(entry) ? (textOf(entry['address']) ?? []) : []));
}

function isDeleting(metadata: JsonObject): boolean {
  return metadata['deletionTimestamp'] !== undefined && metadata['deletionTimestamp'] !== null;
}

function partsOf(json: JsonObject) {
  return { metadata: objectOf(json['metadata']), spec: objectOf(json['spec']), status: objectOf(json['status']) };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : [];
}
