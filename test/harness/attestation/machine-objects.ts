/** What a relay that reads Cluster API sends with a request. */
import type { AttestContext, ClusterObject, MachineObject } from '../../../core/ports/signing-endpoint.ts';

export const clusterApi = { cluster: 'demo', namespace: 'default' } as const;

/** A Machine of Cluster `default/demo` that is ready, for machine `m1` of the null provider. */
export function machineObject(change: Partial<MachineObject> = {}): MachineObject {
  return {
    kind: 'Machine',
    namespace: 'default',
    name: 'demo-md-0-x7k2p',
    clusterName: 'demo',
    providerId: 'null:///m1',
    bootstrapReady: true,
    deleting: false,
    ...change,
  };
}

export function contextOf(
  machines: readonly MachineObject[] = [machineObject()],
  cluster: ClusterObject | null = { deleting: false },
): AttestContext {
  return { clusterApi: { machines, ...(cluster === null ? {} : { cluster }) } };
}
