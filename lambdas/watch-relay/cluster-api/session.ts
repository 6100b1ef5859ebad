/**
 * The leader's copies of Machines, MachinePools, the Cluster object and the names of Nodes; with them the lookup for attest, hints about
 * machines that go, and the names of the signers in the InfraCluster.
 *
 * All Machines of the namespace are read, not only those with the label of the Cluster: a Machine of another Cluster with the same provider
 * ID must be found, since attest refuses it by a reason of its own, and two Machines with one provider ID are a conflict. Other namespaces
 * are not read: the relay would need rights on Machines of the whole management cluster, and their Machines are refused as not found.
 */
import { objectOf } from '../../../core/encoding/json-object.ts';
import { success } from '../../../core/outcome/result.ts';
import type { ClusterReference } from '../../../core/configuration/model/attestation.ts';
import type { ApiAnswer, JsonObject, ListWatch } from '../../../core/ports/kubernetes-api.ts';
import type { LookEndpoint } from '../../../core/ports/signing-endpoint.ts';
import type { ManagementCluster, NodeObjects } from '../../../adapters/kubernetes/cluster-api.ts';
import { reflect } from '../cluster/reflector.ts';
import type { RestartReason } from '../cluster/reflector.ts';
import type { Clock, Random } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import { createHints } from './hints.ts';
import type { HintResult } from './hints.ts';
import { nameSigners } from './infra-cluster.ts';
import type { InfraClusterResult, NamedSigners } from './infra-cluster.ts';
import { createLookup } from './lookup.ts';
import type { MachineLookup } from './lookup.ts';
import { createMachineIndex } from './found-machines.ts';
import { createMirror } from './mirror.ts';
import type { Mirror, MirrorHandlers } from './mirror.ts';
import { clusterRecord, machinePoolRecord, machineRecord } from './objects.ts';
import type { MachineRecord } from './objects.ts';

export const mirroredResources = ['machines', 'machinepools', 'clusters', 'nodes'] as const;
export type MirroredResource = (typeof mirroredResources)[number];

export interface ClusterApiOptions {
  /** The Cluster object of this cluster. */
  readonly reference: ClusterReference;
  /** Whether attest takes hints (`attestation.retireTerminated`). */
  readonly hints: boolean;
  /** Set: the relay names these signers in the InfraCluster. */
  readonly signers?: NamedSigners;
}

export interface ClusterApiPorts {
  readonly management: ManagementCluster;
  readonly nodes: NodeObjects;
  /** Takes hints. */
  readonly attest: LookEndpoint;
}

export interface ClusterApiMetrics {
  readonly mirrorListed: (resource: MirroredResource) => void;
  readonly mirrorRestarted: (resource: MirroredResource, reason: RestartReason) => void;
  readonly hinted: (result: HintResult, nodeNames: number) => void;
  readonly infraCluster: (result: InfraClusterResult) => void;
  readonly infraClusterAlarmed: () => void;
  /** `read` gives the state of the copies until the returned function is called. */
  readonly watchMirrors: (read: () => ReadonlyMap<MirroredResource, MirrorState>) => () => void;
}

export interface MirrorState {
  readonly objects: number;
  readonly ageSeconds: number;
}

interface SessionPorts extends ClusterApiPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: ClusterApiMetrics;
  readonly health: { synced(name: string): void };
  /** Counts and reports the calls of one resource. */
  readonly observed: (resource: string, source: ListWatch) => ListWatch;
}

export interface ClusterApiSession {
  readonly lookup: MachineLookup;
  /** Until `stop`. Never rejects. */
  run(stop: AbortSignal): Promise<void>;
}

export function createClusterApiSession(options: ClusterApiOptions, ports: SessionPorts): ClusterApiSession {
  const { clock, random, log, metrics, health, management, nodes } = ports;
  const { cluster: clusterName, namespace } = options.reference;
  const index = createMachineIndex();
  let tell = (_nodeName: string): void => {};

  function machineChanged(before: MachineRecord | undefined, after: MachineRecord | undefined): void {
    index.changed(before, after);
    const begins = after?.deleting === true && before !== undefined && !before.deleting;
    if (begins) machineGoes(after);
  }
  function machineGoes({ nodeName, clusterName: ofCluster }: MachineRecord): void {
    if (nodeName !== undefined && ofCluster === clusterName) tell(nodeName);
  }

  const mirrors = {
    machines: createMirror({
      clock,
      keyOf: nameOf,
      decode: machineRecord,
      changed: machineChanged,
      gone: machineGoes,
    }),
    machinepools: createMirror(
      { clock, keyOf: nameOf, decode: machinePoolRecord, changed: index.changed },
      { optional: true },
    ),
    clusters: createMirror({ clock, keyOf: nameOf, decode: clusterRecord }),
    nodes: createMirror({ clock, keyOf: nameOf, decode: (json) => nameOf(json) ?? '', gone: (name) => tell(name) }),
  } satisfies Record<MirroredResource, Mirror<unknown>>;
  const [...resources] = mirroredResources;
  const clusterObject = () => [...mirrors.clusters.values()][0];

  const sources: Readonly<Record<MirroredResource, ListWatch>> = {
    machines: management.machines(namespace),
    machinepools: management.machinePools(namespace),
    clusters: management.cluster(namespace, clusterName),
    nodes: nodes.metadata,
  };

  function follow(resource: MirroredResource, stop: AbortSignal): Promise<void> {
    const handlers: MirrorHandlers = mirrors[resource].handlers;
    const listed = (): void => {
      metrics.mirrorListed(resource);
      health.synced(resource);
    };
    return reflect(
      { resource },
      {
        ...handlers,
        synced: () => {
          handlers.synced();
          listed();
          log.info({ resource, objects: mirrors[resource].size() }, 'listed');
        },
        listRefused: (why) => {
          handlers.listRefused(why);
          if (mirrors[resource].isSynced()) health.synced(resource);
        },
        restarted: (reason) => metrics.mirrorRestarted(resource, reason),
        unreadable: (detail) => log.error({ resource, detail }, 'watch event unreadable'),
        oversized: (bytes) => log.warn({ resource, bytes }, 'object too large'),
      },
      { source: ports.observed(resource, sources[resource]), clock, random, log },
      stop,
    );
  }

  return {
    lookup: createLookup({
      mirrors,
      index,
      cluster: clusterObject,
      providerIdOfNode: async (nodeName, signal) => providerIdOf(await nodes.get(nodeName, signal)),
    }),

    async run(stop) {
      const hints = createHints({ attest: ports.attest, clock, log, count: metrics.hinted }, stop);
      if (options.hints) tell = (nodeName) => hints.add(nodeName);
      const unwatch = metrics.watchMirrors(
        () =>
          new Map(
            resources.map((resource) => [
              resource,
              { objects: mirrors[resource].size(), ageSeconds: mirrors[resource].ageSeconds() },
            ]),
          ),
      );
      const { signers } = options;
      const { infraClusters: objects } = management;
      const count = metrics.infraCluster;
      const naming =
        signers === undefined
          ? Promise.resolve()
          : nameSigners(
              signers,
              namespace,
              () => clusterObject()?.infrastructure,
              { objects, clock, random, log, count, alarmed: metrics.infraClusterAlarmed },
              stop,
            );
      await Promise.all([...resources.map((resource) => follow(resource, stop)), naming]);
      hints.close();
      unwatch();
    },
  };
}

function nameOf(json: JsonObject): string | undefined {
  const { name } = objectOf(json['metadata']);
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** A Node that does not exist, and one without a provider ID, have none. */
function providerIdOf(answer: ApiAnswer<JsonObject>): ApiAnswer<string> {
  if (!answer.ok) return answer.problem.why === 'NotFound' ? success('') : answer;
  const { providerID } = objectOf(answer.value['spec']);
  return success(typeof providerID === 'string' ? providerID : '');
}
