/** Machines: they join, lose answers, renew, serve, are stopped and started, end, and others take their place. */
import {
  insecureSigner,
  nodeSigner,
  provenServingSigner,
  reservedAddress,
  rangePrefix,
  servingSigner,
} from '../scenario.ts';
import type { NullAnswer, NullDevice } from '../../harness/attestation/null-provider.ts';
import { keyOf, nodeRequest } from './requests.ts';
import type { SentEvidence } from './requests.ts';
import { bootstrap, nodes, nodeUser } from './simulated-cluster.ts';
import type { Life } from './simulated-cluster.ts';
import type { MachineFacts } from '../ground-truth.ts';
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

interface More {
  readonly renewal?: boolean;
  readonly answer?: NullAnswer;
}

/** How many keys machines have together: now and then one comes again. */
const machineKeys = 24;

export interface Machines {
  readonly all: readonly Machine[];
  proof(): string;
}

export function settleMachines(life: Life): Machines {
  const { runtime, scenario, platform, random, at, soon, sometime } = life;
  const { timeline } = runtime;
  const machines: Machine[] = [];
  let keys = 0;
  let proofs = 0;
  let addresses = 0;
  const nextKey = (): number => keys++ % machineKeys;
  const proof = (): string => `proof-${++proofs}`;

  function start(id: string, node: string): void {
    const identity = `null#${id}`;
    // What a platform says of names: this one, or any.
    const named = random.chance(0.85);
    const facts: MachineFacts = {
      identity,
      node: named ? node : undefined,
      addresses: [`10.1.0.${++addresses}`],
      dnsNames: [`${id}.internal`],
      starts: [timeline.now()],
    };
    life.facts.set(identity, facts);
    // Now and then its disk is a copy of another's, and so is its key.
    const copied = random.chance(0.2) ? machines[random.below(machines.length)]?.key : undefined;
    const machine: Machine = { id, node, facts, key: copied ?? nextKey(), shown: undefined, ...tpmOf(id) };
    machines.push(machine);
    runtime.tell(() => `machine ${id} starts and is to be ${node}`);
    boot(machine);
    join(machine);
    // Its first answer was lost, or it believes so.
    if (random.chance(0.5)) soon(30_000, () => join(machine));
    if (random.chance(0.5)) soon(60_000, () => renew(machine));
    for (let number = 0; number < 2; number += 1) if (random.chance(0.6)) soon(60_000, () => serve(machine));
    if (random.chance(0.15)) soon(40_000, () => joinElsewhere(machine));
    if (random.chance(0.4)) soon(40_000, () => restart(machine));
    if (scenario.allowRestart && !scenario.tpm && random.chance(0.75)) replaceDisk(machine);
    if (scenario.tpm && random.chance(0.8)) soon(60_000, () => reinstall(machine));
  }

  /** Once it is registered: then a machine that starts anew with another key is looked at twice. */
  function replaceDisk(machine: Machine): void {
    const isRegistered = (): boolean => life.attestations.identities.has(machine.facts.identity);
    soon(8_000, () => (isRegistered() ? restart(machine, true) : replaceDisk(machine)));
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

  /** It was registered under another name, or may not have this one. */
  function joinElsewhere(machine: Machine): void {
    const node = nodes.find((other) => other !== machine.node) ?? machine.node;
    if (machine.facts.gone === undefined) askAsMachine(machine, `${machine.id} joins as ${node} too`, node, proof());
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
  function renew(machine: Machine): void {
    if (machine.facts.gone !== undefined || !isNode(machine)) return;
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
  function serve(machine: Machine, rush = false): void {
    if (machine.facts.gone !== undefined || !isNode(machine)) return;
    const { id, node, facts } = machine;
    const dns = [node, ...facts.dnsNames.filter(() => random.chance(0.5))];
    const ip = facts.addresses.filter(() => random.chance(0.7));
    if (rush || random.chance(0.5)) ip.push(`${rangePrefix}${rush ? 2 : 2 + random.below(2)}`);
    if (!rush && random.chance(0.2)) {
      const other = machines[random.below(machines.length)];
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

  function terminate(machine: Machine): void {
    const { id, facts, node } = machine;
    if (facts.gone !== undefined) return;
    runtime.tell(() => `machine ${id} is terminated`);
    platform.machines.set(id, { nodeNames: [node], state: 'gone' });
    facts.gone = timeline.now();
    if (random.chance(0.8)) soon(20_000, () => start(`${id}x`, node));
  }

  const count = 2 + random.below(4);
  for (let number = 1; number <= count; number += 1) {
    // Now and then two of them are to have one name, at one time.
    const node = random.pick(nodes);
    at(random.chance(0.3) ? 100 : sometime(), () => start(`m${number}`, node));
  }
  for (let number = 0; number < 2; number += 1)
    if (random.chance(0.4))
      at(sometime(5_000), () => {
        const machine = machines[random.below(machines.length)];
        if (machine !== undefined) terminate(machine);
      });
  // All at once, under one address that can be only one machine's.
  for (let number = 0; number < 2; number += 1)
    if (random.chance(0.4)) at(sometime(8_000), () => machines.forEach((machine) => serve(machine, true)));
  if (scenario.insecure) settleUnproven(life, nextKey);
  return { all: machines, proof };
}

/** Machines without a platform: the first one under a name has it, with the key of that request. */
function settleUnproven(life: Life, nextKey: () => number): void {
  const { random, at, soon, sometime } = life;

  function join(node: string, key: number): void {
    life.ask({
      what: `an unproven machine joins as ${node} with key ${key}`,
      signerName: insecureSigner,
      request: nodeRequest({ node, key }),
      spki: keyOf(key).spki,
      by: bootstrap,
      genuine: true,
      machine: `insecure#${node}`,
      node,
    });
    if (random.chance(0.4)) soon(20_000, () => join(node, key));
    if (random.chance(0.3)) soon(30_000, () => serve(node));
  }

  /** No machine is known behind that name, so it gets none. */
  function serve(node: string): void {
    const key = nextKey();
    life.ask({
      what: `an unproven machine serves as ${node}`,
      signerName: servingSigner,
      request: nodeRequest({ node, key, sans: { dns: [node] } }),
      spki: keyOf(key).spki,
      by: nodeUser(node),
      genuine: true,
      node,
      names: [node],
    });
  }
  const names = ['edge', 'edge', random.pick(nodes)];
  for (const node of names.slice(0, 1 + random.below(3))) at(sometime(), () => join(node, nextKey()));
}
