/** Machines and MachinePools by provider ID and by the name of their Node. */
import { mostMachines } from '../../../core/ports/signing-endpoint.ts';
import type { MachineObject } from '../../../core/ports/signing-endpoint.ts';
import type { MachineRecord } from './objects.ts';

export interface MachineIndex {
  readonly changed: (before: MachineRecord | undefined, after: MachineRecord | undefined) => void;
  /** At most `mostMachines`: attest refuses more than one in any case. */
  byProviderId(providerId: string): readonly MachineObject[];
  /** Machines whose nodeRef is this Node. A MachinePool does not tell which provider ID its Node has. */
  byNodeName(nodeName: string): readonly MachineObject[];
}

export function createMachineIndex(): MachineIndex {
  const providers = new Map<string, Set<MachineRecord>>();
  const nodes = new Map<string, Set<MachineRecord>>();

  return {
    changed(before, after) {
      if (before !== undefined) {
        for (const providerId of before.providerIds) remove(providers, providerId, before);
        if (before.nodeName !== undefined) remove(nodes, before.nodeName, before);
      }
      if (after === undefined) return;
      for (const providerId of after.providerIds) add(providers, providerId, after);
      if (after.nodeName !== undefined) add(nodes, after.nodeName, after);
    },
    byProviderId: (providerId) => found(providers.get(providerId), () => providerId),
    byNodeName: (nodeName) => found(nodes.get(nodeName), ({ providerIds: [providerId = ''] }) => providerId),
  };
}

function found(
  records: ReadonlySet<MachineRecord> = new Set(),
  providerIdOf: (record: MachineRecord) => string,
): readonly MachineObject[] {
  const all = [...records];
  // A Machine of a MachinePool (MachinePool Machines) counts as its Machine. A MachinePool of another Cluster stays: it is a conflict.
  const isPoolOfMachine = (pool: MachineRecord): boolean =>
    pool.kind === 'MachinePool' &&
    all.some(
      ({ kind, namespace, clusterName }) =>
        kind === 'Machine' && namespace === pool.namespace && clusterName === pool.clusterName,
    );
  return all
    .filter((record) => !isPoolOfMachine(record))
    .slice(0, mostMachines)
    .map((record) => {
      const { providerIds: _, ...rest } = record;
      return { ...rest, providerId: providerIdOf(record) };
    });
}

function add(index: Map<string, Set<MachineRecord>>, key: string, record: MachineRecord): void {
  const records = index.get(key);
  if (records === undefined) index.set(key, new Set([record]));
  else records.add(record);
}

function remove(index: Map<string, Set<MachineRecord>>, key: string, record: MachineRecord): void {
  const records = index.get(key);
  records?.delete(record);
  if (records?.size === 0) index.delete(key);
}
