/**
 * Those who write Machine objects: controllers that create, complete and delete them, early or late, and people who edit them to
 * another machine's provider ID, delete those of machines that run, and change the Cluster object. All is mended when faults end.
 */
import type { ClusterObject, MachineObject } from '../../../core/ports/signing-endpoint.ts';
import type { MachineObjects } from '../ports/machine-objects.ts';
import { staleMilliseconds } from '../ports/machine-objects.ts';
import { clusterReference } from '../scenario.ts';
import type { Machine } from './machine.ts';
import { nodes } from './simulated-cluster.ts';
import type { Life } from './simulated-cluster.ts';

/** What controllers see a machine do, and can have it do. */
export interface MachineAnswers {
  readonly isNode: () => boolean;
  /** It asks for any certificate. */
  readonly ask: () => void;
}

export interface MachineControllers {
  readonly started: (machine: Machine, acts: MachineAnswers) => void;
  readonly ended: (machine: Machine) => void;
}

/** `objects`: undefined where machines need no Machine object. */
export function settleClusterApi(life: Life, objects: MachineObjects | undefined): MachineControllers {
  if (objects === undefined) return { started() {}, ended() {} };
  const { runtime, random, at } = life;
  const { timeline } = runtime;
  const { set, setCluster, find } = objects;
  /** Objects as their controllers want them, of machines that run. */
  const wanted = new Map<string, MachineObject>();
  const foreign = new Set<string>();
  const asks = new Map<string, () => void>();
  const after = (milliseconds: number, run: () => void): void => at(timeline.now() + milliseconds, run);
  const tell = (what: string): void => runtime.tell(() => `management cluster: ${what}`);

  function write(name: string): void {
    const machine = wanted.get(name);
    tell(machine === undefined ? `no ${name}` : `${name} is ${JSON.stringify(machine)}`);
    set(name, machine);
  }

  function change(name: string, changed: Partial<MachineObject>): void {
    const machine = wanted.get(name);
    if (machine === undefined) return;
    wanted.set(name, { ...machine, ...changed });
    write(name);
  }

  function started({ id, node, facts }: Machine, { isNode, ask }: MachineAnswers): void {
    asks.set(id, ask);
    // Names of a fleet are all of this cluster.
    const isForeign = facts.addresses.every((address) => address.startsWith('10.1.')) && random.chance(0.12);
    if (isForeign) {
      facts.foreign = true;
      foreign.add(id);
    }
    const isPool = random.chance(0.2);
    const isReady = random.chance(0.8);
    const { cluster, namespace } = clusterReference;
    const inNamespace = isForeign && random.chance(0.5) ? 'other' : namespace;
    wanted.set(id, {
      kind: isPool ? 'MachinePool' : 'Machine',
      namespace: inNamespace,
      name: id,
      clusterName: isForeign && inNamespace === namespace ? 'other' : cluster,
      providerId: `null:///${id}`,
      bootstrapReady: isReady,
      deleting: false,
      ...(random.chance(0.5) ? { addresses: [...facts.addresses, ...facts.dnsNames] } : {}),
    });
    if (random.chance(0.75)) write(id);
    else after(random.between(1_000, 40_000), () => write(id));
    if (!isReady) after(random.between(3_000, 30_000), () => change(id, { bootstrapReady: true }));
    if (!isPool) followNode(id, node, isNode, 60);
  }

  /** nodeRef, once the node is there. */
  function followNode(id: string, node: string, isNode: () => boolean, times: number): void {
    after(random.between(1_000, 20_000), () => {
      if (isNode()) change(id, { nodeName: node });
      else if (times > 0) followNode(id, node, isNode, times - 1);
    });
  }

  function ended({ id }: Machine): void {
    change(id, { deleting: true });
    wanted.delete(id);
    after(random.chance(0.3) ? random.between(60_000, 900_000) : random.between(500, 20_000), () => write(id));
  }

  /** Another state of an object for a while. */
  function disturb(): void {
    const names = [...wanted.keys()];
    const name = names[random.below(names.length)];
    const machine = name === undefined ? undefined : find(name);
    // With a machine of another cluster's provider ID, an object of this cluster would claim that machine: that is the editor's right.
    const other = names.find((each) => each !== name && !foreign.has(each)) ?? 'none';
    if (name !== undefined && machine !== undefined) {
      const [what, state] = random.pick([
        ['edited', { ...machine, providerId: `null:///${other}` }],
        ['edited', { ...machine, providerId: `null:///${other}` }],
        ['of another node', { ...machine, nodeName: random.pick(nodes) }],
        ['being deleted', { ...machine, deleting: true }],
        ['without bootstrap data', { ...machine, bootstrapReady: false }],
        ['deleted', undefined],
      ] as const);
      runtime.count(`step: objects: ${what}`);
      tell(`${name} is ${what}`);
      set(name, state);
      // Once no cache is behind any more.
      for (const wait of [staleMilliseconds + 500, 11_000])
        after(wait, () => [name, other].forEach((each) => asks.get(each)?.()));
      after(mendedIn(), () => write(name));
    }
    if (random.chance(0.15)) disturbCluster();
    life.soon(8_000, disturb);
  }

  function disturbCluster(): void {
    const [what, state] = random.pick<readonly [string, ClusterObject | undefined]>([
      ['being deleted', { deleting: true }],
      ['without kubelet authentication', { deleting: false, kubeletAuthentication: false }],
      ['with other attestors', { deleting: false, authorizedAttestors: ['aws'] }],
      ['deleted', undefined],
    ]);
    tell(`the Cluster is ${what}`);
    setCluster(state);
    after(mendedIn(), () => setCluster({ deleting: false }));
  }

  /** Faults end before anything else is waited for. */
  function mendedIn(): number {
    return Math.max(0, Math.min(random.between(5_000, 40_000), runtime.rates.until - timeline.now()));
  }

  setCluster({ deleting: false, ...(random.chance(0.5) ? { authorizedAttestors: ['null', 'aws'] } : {}) });
  life.soon(10_000, disturb);
  return { started, ended };
}
