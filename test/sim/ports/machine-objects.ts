/**
 * The management cluster of Cluster API: Machine objects, the Cluster object, and the caches that relays have of them. A cache is the
 * objects as they were at one moment, some seconds ago, and never goes back while its relay lives.
 */
import type { AttestContext, ClusterObject, MachineObject } from '../../../core/ports/signing-endpoint.ts';
import { decodeRequest } from '../../../core/x509/certificate-request.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { Random } from '../random.ts';
import type { Process, Runtime } from '../runtime.ts';

/** All objects, from one moment on. */
export interface ObjectsThen {
  readonly from: number;
  /** By name. */
  readonly machines: ReadonlyMap<string, MachineObject>;
  readonly cluster?: ClusterObject;
}

export interface MachineObjects {
  /** Oldest first. */
  readonly history: readonly ObjectsThen[];
  readonly set: (name: string, machine: MachineObject | undefined) => void;
  readonly setCluster: (cluster: ClusterObject | undefined) => void;
  readonly find: (name: string) => MachineObject | undefined;
  /** What the relay of that process finds about a request. */
  readonly connect: (process: Process) => (object: JsonObject) => AttestContext | undefined;
}

/** How far a cache is behind at most. */
export const staleMilliseconds = 8_000;
const usuallyStale = 300;

/** `nodeProviderId`: of the Node object of that name. */
export function createMachineObjects(
  runtime: Runtime,
  random: Random,
  nodeProviderId: (node: string) => string | undefined,
): MachineObjects {
  const { timeline } = runtime;
  const history: [ObjectsThen, ...ObjectsThen[]] = [{ from: 0, machines: new Map() }];

  function put(change: (last: ObjectsThen) => Omit<ObjectsThen, 'from'>): void {
    history.push({ ...change(newest()), from: timeline.now() });
  }
  const newest = (): ObjectsThen => history.at(-1) ?? history[0];

  function connect(process: Process): (object: JsonObject) => AttestContext | undefined {
    const own = random.stream(process.name);
    // A relay of an older version, and one that has not read all objects yet, say nothing about them.
    const looksFrom = runtime.troubled() && own.chance(0.15) ? runtime.rates.until : 0;
    let seen = 0;
    return (object) => {
      const now = timeline.now();
      if (now < looksFrom) {
        runtime.count('step: objects: no context');
        return undefined;
      }
      const behind = own.between(0, runtime.troubled() && own.chance(0.4) ? staleMilliseconds : usuallyStale);
      const index = history.findLastIndex(({ from }) => from <= Math.max(0, now - behind));
      seen = Math.max(seen, index);
      if (seen < history.length - 1) runtime.count('step: objects: a stale cache');
      return { clusterApi: contextOf(object, history[seen] ?? newest(), nodeProviderId) };
    };
  }

  return {
    history,
    set: (name, machine) =>
      put(({ machines, ...rest }) => {
        const others = [...machines].filter(([other]) => other !== name);
        return { ...rest, machines: new Map(machine === undefined ? others : [...others, [name, machine]]) };
      }),
    setCluster: (cluster) => put(({ machines }) => ({ machines, ...(cluster === undefined ? {} : { cluster }) })),
    find: (name) => newest().machines.get(name),
    connect,
  };
}

function contextOf(
  object: JsonObject,
  { machines, cluster }: ObjectsThen,
  nodeProviderId: (node: string) => string | undefined,
): NonNullable<AttestContext['clusterApi']> {
  const { request, username } = object['spec'] as { readonly request: string; readonly username: string };
  const decoded = decodeRequest(Buffer.from(request, 'base64'));
  const providerId = decoded.ok ? decoded.value.providerId : undefined;
  const node = username.replace(/^system:node:/, '');
  const ofNode = nodeProviderId(node);
  const isAbout = (machine: MachineObject): boolean =>
    machine.providerId === (providerId ?? ofNode) || (providerId === undefined && machine.nodeName === node);
  return {
    machines: [...machines.values()].filter(isAbout).slice(0, 8),
    ...(cluster === undefined ? {} : { cluster }),
  };
}
