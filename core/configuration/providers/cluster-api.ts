/** The keys `attestation.machines` and `attestation.clusterApi` in countersign.yaml, and what they mean (docs/cluster-api.md). */
import { z } from 'zod';
import type { Place } from '../fields/place.ts';
import { label, matching } from '../fields/values.ts';
import type { Profile } from '../../policy/profile.ts';

export const machineObjects = z
  .enum(['clusterApi'])
  .exactOptional()
  .describe(
    'Objects that must stand behind each machine, besides its evidence. `clusterApi`: a Machine or MachinePool of Cluster API, which the relay looks up. Default: none. See docs/cluster-api.md.',
  );

/** The Cluster object of Cluster API whose Machines may join. */
export const clusterApiKeys = z.strictObject({
  cluster: matching(
    /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/,
    'must be the name of a Cluster object: at most 63 lower-case letters, digits, hyphens and dots',
  )
    .exactOptional()
    .describe('Name of the Cluster object. Default: the name of this cluster.'),
  namespace: label.default('default').describe('Namespace of the Cluster object and its Machines.'),
});

/** A ClusterReference of core/configuration/model/attestation.ts. */
interface ClusterReference {
  readonly cluster: string;
  readonly namespace: string;
}

interface MachineObjectsInput {
  readonly machines?: 'clusterApi';
  readonly clusterApi?: z.infer<typeof clusterApiKeys>;
}

/** `at`: the key `attestation` of the cluster. */
export function resolveClusterApi(
  name: string,
  attestation: MachineObjectsInput | undefined,
  profiles: Iterable<Profile>,
  at: Place,
): { readonly clusterApi?: ClusterReference } {
  const { machines, clusterApi } = attestation ?? {};
  if (machines === undefined) {
    // A reviewer would take the section for a restriction that is in force.
    if (clusterApi !== undefined) at('clusterApi').error('has no effect without machines: clusterApi');
    return {};
  }
  for (const { signerName, kind, attestation: wanted } of profiles)
    // The Machine of a joining node has no nodeRef yet, so without a provider ID the relay cannot find it.
    if (kind === 'kube-apiserver-client-kubelet' && wanted?.providers.includes('gce-vtpm') === true)
      at('machines').error(
        `cannot be had with gce-vtpm (${signerName}): the requests of gke-exec-auth-plugin name no provider ID`,
      );
  return { clusterApi: { cluster: clusterApi?.cluster ?? name, namespace: clusterApi?.namespace ?? 'default' } };
}

/** Two clusters with one Cluster object would each admit the machines of the other. `at`: the map of clusters. */
export function checkClusterObjects(
  clusters: ReadonlyMap<string, { readonly attestation?: { readonly clusterApi?: ClusterReference } }>,
  at: Place,
): void {
  const seen = new Map<string, string>();
  for (const [cluster, { attestation }] of clusters) {
    if (attestation?.clusterApi === undefined) continue;
    const object = `${attestation.clusterApi.namespace}/${attestation.clusterApi.cluster}`;
    const other = seen.get(object);
    if (other === undefined) seen.set(object, cluster);
    else
      at(cluster, 'attestation', 'clusterApi').warning(
        `is the Cluster object ${object}, as for cluster ${other}: right only if they have different management clusters`,
      );
  }
}
