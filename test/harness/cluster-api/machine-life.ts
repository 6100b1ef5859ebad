import type { ApiClient } from '../kubernetes/api-client.ts';
import { createObject, deleteObject, type AnyObject } from '../kubernetes/objects.ts';

/*
 * A script in place of the controllers of Cluster API: it writes the fields that they write, in their order. The objects are
 * those of the real CustomResourceDefinitions (definitions.ts), so the API server refuses or drops what they do not have.
 */

const core = 'cluster.x-k8s.io';
const bootstrap = 'bootstrap.cluster.x-k8s.io';
const infrastructure = 'infrastructure.cluster.x-k8s.io';
const version = 'v1beta2';

/** A KubeadmConfig may not be empty. */
const joinConfiguration = { joinConfiguration: { nodeRegistration: { taints: [] } } };

export interface ManagedCluster {
  readonly name: string;
  readonly namespace: string;
  createMachine(name: string): Promise<MachineLife>;
  createPool(name: string): Promise<PoolLife>;
  /** Annotations of the Cluster. null removes one. */
  annotate(annotations: Readonly<Record<string, string | null>>): Promise<void>;
  annotateInfraCluster(annotations: Readonly<Record<string, string | null>>): Promise<void>;
  /** Sets the deletion timestamp; the finalizer keeps the Cluster until `gone`. */
  deleting(): Promise<void>;
  gone(): Promise<void>;
}

interface Life {
  readonly name: string;
  /** The bootstrap data Secret exists: BootstrapReady of the proposal. */
  bootstrapReady(): Promise<void>;
  /** Sets the deletion timestamp; the finalizer keeps the object until `gone`. */
  deleting(): Promise<void>;
  gone(): Promise<void>;
  /** Changes any field of the object, as a user with the right could. */
  edit(patch: object): Promise<void>;
}

/** In the order of a machine's life. */
export interface MachineLife extends Life {
  /** EC2 started the instance. `providerId`: `aws:///ZONE/INSTANCE`. */
  provisioned(providerId: string, addresses?: readonly string[]): Promise<void>;
  /** The controller found the Node with this provider ID. */
  joined(nodeName: string): Promise<void>;
}

export interface PoolLife extends Life {
  /** The instances of the Auto Scaling group, and the Nodes that the controller found for them. */
  members(providerIds: readonly string[], nodeNames?: readonly string[]): Promise<void>;
}

export async function createCluster(
  admin: ApiClient,
  { name, namespace = 'default' }: { readonly name: string; readonly namespace?: string },
): Promise<ManagedCluster> {
  const infraCluster = object(infrastructure, 'AWSCluster', namespace, name, { region: 'eu-central-1' });
  const cluster = {
    ...object(core, 'Cluster', namespace, name, {
      infrastructureRef: reference(infraCluster),
      controlPlaneEndpoint: { host: '127.0.0.1', port: 6443 },
    }),
    metadata: { name, namespace, finalizers: [`cluster.${core}`] },
  };
  await createObject(admin, infraCluster);
  await createObject(admin, cluster);
  await patch(admin, infraCluster, { status: { ready: true } }, 'status');
  await patch(admin, cluster, { status: { initialization: { infrastructureProvisioned: true } } }, 'status');
  const labels = { [`${core}/cluster-name`]: name };
  return {
    name,
    namespace,
    annotate: (annotations) => patch(admin, cluster, { metadata: { annotations } }),
    annotateInfraCluster: (annotations) => patch(admin, infraCluster, { metadata: { annotations } }),
    createMachine: (machine) => createMachine(admin, { name, namespace, labels }, machine),
    createPool: (pool) => createPool(admin, { name, namespace, labels }, pool),
    ...removal(admin, cluster, [infraCluster]),
  };
}

interface Owner {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

async function createMachine(admin: ApiClient, cluster: Owner, name: string): Promise<MachineLife> {
  const { namespace, labels } = cluster;
  const config = object(bootstrap, 'KubeadmConfig', namespace, name, joinConfiguration);
  const instance = object(infrastructure, 'AWSMachine', namespace, name, { instanceType: 'm7i.large' });
  const spec = {
    clusterName: cluster.name,
    version: 'v1.36.3',
    bootstrap: { configRef: reference(config) },
    infrastructureRef: reference(instance),
  };
  const machine = {
    ...object(core, 'Machine', namespace, name, spec),
    metadata: { name, namespace, labels, finalizers: [`machine.${core}`] },
  };
  for (const each of [config, instance, machine]) await createObject(admin, each);
  // A status patch replaces the list of conditions, so the script keeps it.
  let conditions = [condition('BootstrapConfigReady', 'False', 'NotReady')];
  const status = (fields: object, ...changed: readonly Condition[]) => {
    const types = new Set(changed.map(({ type }) => type));
    conditions = [...conditions.filter(({ type }) => !types.has(type)), ...changed];
    return patch(admin, machine, { status: { ...fields, conditions } }, 'status');
  };
  await status({ phase: 'Pending' });
  return {
    name,
    async bootstrapReady() {
      const dataSecretName = await createBootstrapData(admin, config, labels);
      await patch(admin, machine, { spec: { bootstrap: { dataSecretName } } });
      await status(
        { phase: 'Provisioning', initialization: { bootstrapDataSecretCreated: true } },
        condition('BootstrapConfigReady', 'True', 'Ready'),
      );
    },
    async provisioned(providerID, internal = []) {
      const addresses = internal.map((address) => ({ type: 'InternalIP', address }));
      await patch(admin, instance, { spec: { providerID, instanceID: providerID.split('/').at(-1) } });
      await patch(admin, instance, { status: { ready: true, instanceState: 'running', addresses } }, 'status');
      await patch(admin, machine, { spec: { providerID } });
      await status(
        { phase: 'Provisioned', addresses, initialization: { infrastructureProvisioned: true } },
        condition('InfrastructureReady', 'True', 'Ready'),
      );
    },
    joined: (nodeName) =>
      status({ phase: 'Running', nodeRef: { name: nodeName } }, condition('NodeHealthy', 'True', 'NodeHealthy')),
    edit: (change) => patch(admin, machine, change),
    ...removal(admin, machine, [config, instance]),
  };
}

async function createPool(admin: ApiClient, cluster: Owner, name: string): Promise<PoolLife> {
  const { namespace, labels } = cluster;
  const config = object(bootstrap, 'KubeadmConfig', namespace, name, joinConfiguration);
  const launch = { awsLaunchTemplate: { instanceType: 'm7i.large' }, minSize: 0, maxSize: 10 };
  const group = object(infrastructure, 'AWSMachinePool', namespace, name, launch);
  const template = {
    spec: {
      clusterName: cluster.name,
      version: 'v1.36.3',
      bootstrap: { configRef: reference(config) },
      infrastructureRef: reference(group),
    },
  };
  const pool = {
    ...object(core, 'MachinePool', namespace, name, { clusterName: cluster.name, replicas: 1, template }),
    metadata: { name, namespace, labels, finalizers: [`machinepool.${core}`] },
  };
  for (const each of [config, group, pool]) await createObject(admin, each);
  return {
    name,
    async bootstrapReady() {
      const dataSecretName = await createBootstrapData(admin, config, labels);
      await patch(admin, pool, { spec: { template: { spec: { bootstrap: { dataSecretName } } } } });
      // The controller of MachinePools writes no condition BootstrapConfigReady.
      await patch(admin, pool, { status: { initialization: { bootstrapDataSecretCreated: true } } }, 'status');
    },
    async members(providerIDList, nodeNames = []) {
      const replicas = providerIDList.length;
      await patch(admin, group, { spec: { providerIDList } });
      const instances = providerIDList.map((id) => ({ instanceID: id.split('/').at(-1) }));
      await patch(admin, group, { status: { ready: true, replicas, instances } }, 'status');
      await patch(admin, pool, { spec: { replicas, providerIDList } });
      const nodeRefs = nodeNames.map((node) => ({ apiVersion: 'v1', kind: 'Node', name: node }));
      const status = { phase: 'Running', replicas, nodeRefs, initialization: { infrastructureProvisioned: true } };
      await patch(admin, pool, { status }, 'status');
    },
    edit: (change) => patch(admin, pool, change),
    ...removal(admin, pool, [config, group]),
  };
}

/** What the kubeadm bootstrap provider writes when the data is there. Returns the name of the Secret. */
async function createBootstrapData(admin: ApiClient, config: AnyObject, labels: Owner['labels']): Promise<string> {
  const { name } = config.metadata;
  const secret = bootstrapData(config);
  await createObject(admin, { ...secret, metadata: { ...secret.metadata, labels } });
  const conditions = [condition('DataSecretAvailable', 'True', 'Available')];
  const status = { dataSecretName: name, initialization: { dataSecretCreated: true }, conditions };
  await patch(admin, config, { status }, 'status');
  return name;
}

function bootstrapData({ metadata: { name, namespace = '' } }: AnyObject): AnyObject {
  const stringData = { format: 'cloud-config', value: '#cloud-config' };
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, type: `${core}/secret`, stringData };
}

function removal(admin: ApiClient, owner: AnyObject, owned: readonly AnyObject[]) {
  return {
    deleting: () => deleteObject(admin, owner),
    async gone() {
      await deleteObject(admin, owner);
      await patch(admin, owner, { metadata: { finalizers: [] } });
      const secrets = owned.filter(({ kind }) => kind === 'KubeadmConfig').map(bootstrapData);
      for (const each of [...owned, ...secrets]) await deleteObject(admin, each);
    },
  };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

function condition(type: string, status: 'True' | 'False', reason: string): Condition {
  return { type, status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
}

function object(group: string, kind: string, namespace: string, name: string, spec: object): AnyObject {
  return { apiVersion: `${group}/${version}`, kind, metadata: { name, namespace }, spec };
}

function reference({ apiVersion, kind, metadata: { name } }: AnyObject): object {
  return { apiGroup: apiVersion.split('/')[0], kind, name };
}

/** Strict: a field that the definition lacks is an error, not a loss. */
async function patch(
  admin: ApiClient,
  { apiVersion, kind, metadata: { namespace, name } }: AnyObject,
  body: object,
  subresource = '',
): Promise<void> {
  const path = `/apis/${apiVersion}/namespaces/${namespace}/${kind.toLowerCase()}s/${name}/${subresource}`;
  await admin.expectOk(`${path.replace(/\/$/, '')}?fieldValidation=Strict`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify(body),
  });
}
