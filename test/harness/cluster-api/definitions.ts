import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { toolPath } from '../../tools/tools.ts';
import type { ControlPlane } from '../kubernetes/control-plane.ts';
import { createObject, type AnyObject } from '../kubernetes/objects.ts';
import { eventually } from '../stack/requests.ts';

/*
 * The CustomResourceDefinitions of Cluster API and its AWS provider, as their Go modules have them. A suite that installs
 * them requires the tool `cluster-api`.
 */

/** Kinds by file. Their storage version is v1beta2; those of cluster.x-k8s.io are served as v1beta1 too. */
const files = {
  Cluster: 'cluster.x-k8s.io_clusters.yaml',
  Machine: 'cluster.x-k8s.io_machines.yaml',
  MachinePool: 'cluster.x-k8s.io_machinepools.yaml',
  KubeadmConfig: 'bootstrap.cluster.x-k8s.io_kubeadmconfigs.yaml',
  KubeadmConfigTemplate: 'bootstrap.cluster.x-k8s.io_kubeadmconfigtemplates.yaml',
  KubeadmControlPlane: 'controlplane.cluster.x-k8s.io_kubeadmcontrolplanes.yaml',
  AWSCluster: 'infrastructure.cluster.x-k8s.io_awsclusters.yaml',
  AWSMachine: 'infrastructure.cluster.x-k8s.io_awsmachines.yaml',
  AWSMachineTemplate: 'infrastructure.cluster.x-k8s.io_awsmachinetemplates.yaml',
  AWSMachinePool: 'infrastructure.cluster.x-k8s.io_awsmachinepools.yaml',
} as const;

export type ClusterApiKind = keyof typeof files;

const machineKinds: readonly ClusterApiKind[] = [
  'Cluster',
  'Machine',
  'MachinePool',
  'KubeadmConfig',
  'AWSCluster',
  'AWSMachine',
  'AWSMachinePool',
];

interface Schema {
  readonly properties: Record<string, Schema>;
}

interface Definition extends AnyObject {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

interface InstallOptions {
  readonly kinds?: readonly ClusterApiKind[];
  /**
   * A copy of AWSCluster whose status has the two fields that the kubelet authentication proposal adds. No published
   * definition has them, and the API server drops fields that a definition lacks.
   */
  readonly signersInStatus?: boolean;
}

/** Resolves when the API server serves the kinds. No controller runs: `machine-life.ts` has a script in their place. */
export async function installClusterApi(plane: ControlPlane, options: InstallOptions = {}): Promise<void> {
  const folder = await toolPath('cluster-api');
  await Promise.all(
    (options.kinds ?? machineKinds).map((kind) => installDefinition(plane, readDefinition(folder, kind, options))),
  );
}

async function installDefinition({ admin }: ControlPlane, definition: Definition): Promise<void> {
  await createObject(admin, definition);
  const { group, names, versions } = definition.spec;
  for (const { name } of versions.filter(({ served }) => served)) {
    const isServed = async () => (await admin.request(`/apis/${group}/${name}/${names.plural}`)).status === 200;
    await eventually(isServed, `${names.plural} of ${group}/${name} are served`);
  }
}

function readDefinition(folder: string, kind: ClusterApiKind, { signersInStatus }: InstallOptions): Definition {
  const definition = parse(readFileSync(join(folder, files[kind]), 'utf8')) as Definition;
  // Conversion is a webhook of the controllers, which do not run here. Without it the versions share their fields.
  const { conversion: _, ...spec } = definition.spec as Definition['spec'] & { conversion?: unknown };
  if (kind === 'AWSCluster' && signersInStatus === true)
    for (const { schema } of spec.versions)
      for (const field of ['kubeletClientCertificateSigner', 'kubeletServingCertificateSigner'])
        schema.openAPIV3Schema.properties['status']!.properties[field] = { type: 'string' } as unknown as Schema;
  return { ...definition, spec };
}
