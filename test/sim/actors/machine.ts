/** What a machine does: it joins, loses answers, renews, serves, is stopped and started, and ends. */
import { nodeSigner, provenServingSigner, reservedAddress, rangePrefix, servingSigner } from '../scenario.ts';
import type { NullAnswer, NullDevice } from '../../harness/attestation/null-provider.ts';
import type { MachineControllers } from './cluster-api.ts';
import type { MachineFacts } from '../ground-truth.ts';
import { keyOf, nodeRequest } from './requests.ts';
import type { SentEvidence } from './requests.ts';
import { bootstrap, nodes, nodeUser } from './simulated-cluster.ts';
import type { Life } from './simulated-cluster.ts';
import { awaitChallenge, createTpm, quote, resetTpm } from './tpm.ts';
import type { SimulatedTpm } from './tpm.ts';

export interface Machine {
  readonly id: string;
  readonly node: string;
  readonly facts: MachineFacts;
  /** Its client key now; numbers of the pool. */
  key: number;
  /** What it showed last to become a node. */
  shown: Shown | undefined;
  readonly tpm?: SimulatedTpm;
}

export type Shown = SentEvidence & { readonly proof: string };

/** Names that the profile refuses to every node, attested or not. */
const reservedNames: ReadonlySet<string> = new Set(['kubernetes.default.svc', 'api.demo', reservedAddress]);

/** For so long a platform reports a terminated machine as terminated; then it does not know it. */
export const reportedMilliseconds = 3_600_000;

interface More {
  readonly renewal?: boolean;
  readonly answer?: NullAnswer;
}

export interface MachineOptions {
  /** Second part of their addresses. */
  readonly series: number;
  /** Of their keys, in the pool. */
  readonly nextKey: () => number;
  readonly controllers: MachineControllers;
}

export interface MachineActs {
  readonly all: readonly Machine[];
  /** The name of evidence that was not used yet. */
  readonly proof: () => string;
  /** A new machine, which was just started. `shared`: the key of its disk, which is a copy. */
  readonly add: (id: string, node: string, shared?: number) => Machine;
  readonly join: (machine: Machine) => void;
  /** With its own evidence, under this name. */
  readonly joinAs: (machine: Machine, node: string) => void;
  /** With the certificate that it has, if it has one. `afterEnd`: even if the machine was terminated, as a copy of its disk could. */
  readonly renew: (machine: Machine, afterEnd?: boolean) => void;
  readonly serve: (machine: Machine, how?: { readonly rush?: boolean; readonly afterEnd?: boolean }) => void;
  readonly restart: (machine: Machine, anotherDisk?: boolean) => void;
  /** Its platform gives it another address. */
  readonly moveAddress: (machine: Machine) => void;
  readonly reinstall: (machine: Machine) => void;
  readonly end: (machine: Machine) => void;
  /** Whether it has a certificate. */
  readonly isNode: (machine: Machine) => boolean;
}

export function createMachineActs(life: Life, { series, nextKey, controllers }: MachineOptions): MachineActs {
  const { runtime, scenario, platform, random, at } = life;
  const { timeline } = runtime;
  const all: Machine[] = [];
  let proofs = 0;
  let addresses = 0;
  const proof = (): string => `proof-${series === 1 ? '' : `${series}-`}${++proofs}`;

  function add(id: string, node: string, shared?: number): Machine {
    const identity = `null#${id}`;
    // What a platform says of names: this one, or any.
    const named = random.chance(0.85);
    const facts: MachineFacts = {
      identity,
      node: named ? node : undefined,
      addresses: [`10.${series}.0.${++addresses}`],
      former: [],
      dnsNames: [`${id}.internal`],
      starts: [timeline.now()],
    };
    life.facts.set(identity, facts);
    const machine: Machine = { id, node, facts, key: shared ?? nextKey(), shown: undefined, ...tpmOf(id) };
    all.push(machine);
    runtime.tell(() => `machine ${id} starts and is to be ${node}`);
    boot(machine);
    const ask = (): void => {
      if (!isNode(machine)) join(machine);
      else if (random.chance(0.4)) renew(machine);
      else serve(machine);
    };
    controllers.started(machine, { isNode: () => isNode(machine), ask });
    return machine;
  }

  /** Another operating system on the same machine, with keys of its own. */
  function reinstall(machine: Machine): void {
    if (machine.tpm === undefined || machine.facts.gone !== undefined) return;
    resetTpm(life, machine.tpm, machine.id);
    machine.tpm.akName = `ak ${machine.tpm.resetCount} of ${machine.id}`;
    machine.key = nextKey();
    boot(machine);
    join(machine);
  }

  function tpmOf(id: string): Pick<Machine, 'tpm'> {
    return scenario.tpm ? { tpm: createTpm(life, id) } : {};
  }

  function boot({ id, facts, tpm }: Machine): void {
    platform.machines.set(id, {
      ...(tpm === undefined ? {} : { akName: tpm.akName }),
      nodeNames: [facts.node ?? 'node-*'],
      addresses: facts.addresses,
      dnsNames: facts.dnsNames,
      startedAt: life.instant(),
    });
  }

  function join(machine: Machine): void {
    if (machine.facts.gone !== undefined) return;
    const shown = proof();
    askAsMachine(machine, `${machine.id} joins as ${machine.node}, ${shown}`, machine.node, shown);
  }

  /** `answer`: to the challenge of an earlier request. */
  function askAsMachine(machine: Machine, what: string, node: string, proved: string, more: More = {}): void {
    const { id, key, facts, tpm } = machine;
    const { renewal = false, answer } = more;
    const evidence: Shown = { machine: id, proof: proved, ...quoteOf(machine, answer) };
    if (!renewal && node === machine.node) machine.shown = evidence;
    const uid = life.ask({
      what,
      signerName: nodeSigner,
      request: nodeRequest({ node, key, machine: id }, evidence),
      spki: keyOf(key).spki,
      by: renewal ? nodeUser(node) : bootstrap,
      evidence: true,
      genuine: facts.node === undefined || facts.node === node,
      machine: facts.identity,
      node,
      proof: proved,
      ...truthOf(tpm, answer),
    });
    if (tpm === undefined || answer !== undefined) return;
    awaitChallenge(life, uid, (challenge) => {
      const answered = platform.activate(id, challenge);
      if (facts.gone !== undefined || answered === undefined) return;
      askAsMachine(machine, `${id} answers its challenge as ${node}`, node, proof(), { renewal, answer: answered });
    });
  }

  function quoteOf({ tpm }: Machine, answer?: NullAnswer): { readonly device?: NullDevice } {
    return tpm === undefined ? {} : { device: quote(life, tpm, answer) };
  }

  function truthOf(tpm: SimulatedTpm | undefined, answer?: NullAnswer): { akName?: string; activated?: boolean } {
    return tpm === undefined ? {} : { akName: tpm.akName, activated: answer !== undefined };
  }

  /** The node itself can only ask with a certificate. */
  function renew(machine: Machine, afterEnd = false): void {
    if ((machine.facts.gone !== undefined && !afterEnd) || !isNode(machine)) return;
    machine.key = nextKey();
    askAsMachine(machine, `${machine.id} renews ${machine.node}`, machine.node, proof(), { renewal: true });
  }

  function isNode({ facts: { identity }, node }: Machine): boolean {
    return life.requests.objects().some((object) => {
      const truth = life.truthOf(object);
      const certified = object.status['certificate'] !== undefined && truth?.signerName === nodeSigner;
      return certified && truth.machine === identity && truth.node === node;
    });
  }

  /** Under names that are its own, and now and then under one that is not. */
  function serve(machine: Machine, { rush = false, afterEnd = false } = {}): void {
    if ((machine.facts.gone !== undefined && !afterEnd) || !isNode(machine)) return;
    const { id, node, facts } = machine;
    const dns = [node, ...facts.dnsNames.filter(() => random.chance(0.5))];
    const ip = facts.addresses.filter(() => random.chance(0.7));
    // Its kubelet may not know yet that it has another address.
    for (const { address } of facts.former) if (random.chance(0.4)) ip.push(address);
    if (rush || random.chance(0.5)) ip.push(`${rangePrefix}${rush ? 2 : 2 + random.below(2)}`);
    if (!rush && random.chance(0.2)) {
      const other = all[random.below(all.length)];
      const foreign = random.pick([
        { dns: 'kubernetes.default.svc' },
        { dns: 'api.demo' },
        { dns: nodes.find((name) => name !== node) ?? node },
        { ip: reservedAddress },
        { ip: other === undefined || other === machine ? '10.2.0.1' : (other.facts.addresses[0] ?? '10.2.0.1') },
      ] as const);
      if ('dns' in foreign) dns.push(foreign.dns);
      else ip.push(foreign.ip);
    }
    const proven = random.chance(0.35);
    const key = nextKey();
    const shown = proof();
    const names = [...dns, ...ip];
    const asked = { node, key, sans: { dns, ip }, ...(proven ? { machine: id } : {}) };
    life.ask({
      ...truthOf(machine.tpm),
      what: `${id} serves as ${names.join(', ')}${proven ? `, ${shown}` : ''}`,
      signerName: proven ? provenServingSigner : servingSigner,
      request: nodeRequest(asked, proven ? { machine: id, proof: shown, ...quoteOf(machine) } : undefined),
      spki: keyOf(key).spki,
      by: nodeUser(node),
      evidence: proven,
      genuine: true,
      sound: !names.some((name) => reservedNames.has(name)),
      machine: facts.identity,
      node,
      names,
      ...(proven ? { proof: shown } : {}),
    });
  }

  /** Stopped, and started with its disk or with another. */
  function restart(machine: Machine, anotherDisk = false): void {
    const { id, facts } = machine;
    if (facts.gone !== undefined) return;
    runtime.tell(() => `machine ${id} is stopped`);
    platform.machines.set(id, { nodeNames: [], state: 'stopped' });
    at(timeline.now() + random.between(100, 10_000), () => {
      if (facts.gone !== undefined) return;
      facts.starts.push(timeline.now());
      if (machine.tpm !== undefined) resetTpm(life, machine.tpm, id);
      boot(machine);
      const fresh = anotherDisk || random.chance(0.6);
      if (fresh) machine.key = nextKey();
      runtime.tell(() => `machine ${id} is started anew${fresh ? ', with another disk' : ''}`);
      if (fresh || random.chance(0.5)) join(machine);
    });
  }

  function joinAs(machine: Machine, node: string): void {
    if (machine.facts.gone === undefined) askAsMachine(machine, `${machine.id} joins as ${node} too`, node, proof());
  }

  function moveAddress(machine: Machine): void {
    const { id, facts } = machine;
    const [address] = facts.addresses;
    const known = platform.machines.get(id);
    if (facts.gone !== undefined || address === undefined || known === undefined || known.state !== undefined) return;
    facts.former.push({ address, until: timeline.now() });
    facts.addresses = [`10.${series}.0.${++addresses}`];
    runtime.tell(() => `machine ${id} has ${facts.addresses.join()} instead of ${address}`);
    // It was not started again.
    platform.machines.set(id, { ...known, addresses: facts.addresses });
    if (random.chance(0.5)) serve(machine);
  }

  /** Its platform terminates it. */
  function end(machine: Machine): void {
    const { id, facts, node } = machine;
    if (facts.gone !== undefined) return;
    runtime.tell(() => `machine ${id} is terminated`);
    platform.machines.set(id, { nodeNames: [node], state: 'gone' });
    facts.gone = timeline.now();
    controllers.ended(machine);
    at(timeline.now() + reportedMilliseconds, () => platform.machines.delete(id));
  }

  return { all, proof, add, join, joinAs, renew, serve, restart, moveAddress, reinstall, end, isNode };
}
