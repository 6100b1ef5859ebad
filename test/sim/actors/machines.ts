/** Machines: some share a name, a copied disk or an address; they end, and others take their place. */
import { insecureSigner, servingSigner } from '../scenario.ts';
import type { MachineControllers } from './cluster-api.ts';
import { createMachineActs } from './machine.ts';
import type { Machine, MachineActs } from './machine.ts';
import { keyOf, nodeRequest } from './requests.ts';
import { bootstrap, nodes, nodeUser } from './simulated-cluster.ts';
import type { Life } from './simulated-cluster.ts';

/** How many keys machines have together: now and then one comes again. */
const machineKeys = 24;

export type Machines = Pick<MachineActs, 'all' | 'proof'>;

export function settleMachines(life: Life, controllers: MachineControllers): Machines {
  const { scenario, random, at, soon, sometime } = life;
  let keys = 0;
  const nextKey = (): number => keys++ % machineKeys;
  const acts = createMachineActs(life, { series: 1, nextKey, controllers });
  const { all, join, renew, serve, restart } = acts;

  function start(id: string, node: string): void {
    // Now and then its disk is a copy of another's, and so is its key.
    const copied = random.chance(0.2) ? all[random.below(all.length)]?.key : undefined;
    const machine = acts.add(id, node, copied);
    join(machine);
    // Its first answer was lost, or it believes so.
    if (random.chance(0.5)) soon(30_000, () => join(machine));
    if (random.chance(0.5)) soon(60_000, () => renew(machine));
    for (let number = 0; number < 2; number += 1) if (random.chance(0.6)) soon(60_000, () => serve(machine));
    if (random.chance(0.15)) soon(40_000, () => joinElsewhere(machine));
    if (random.chance(0.4)) soon(40_000, () => restart(machine));
    if (random.chance(0.3)) soon(40_000, () => acts.moveAddress(machine));
    if (scenario.allowRestart && !scenario.tpm && random.chance(0.75)) replaceDisk(machine);
    for (let number = 0; number < 2; number += 1)
      if (scenario.tpm && random.chance(0.8)) soon(40_000, () => acts.reinstall(machine));
  }

  /** Once it is registered: then a machine that starts anew with another key is looked at twice. */
  function replaceDisk(machine: Machine): void {
    const isRegistered = (): boolean => life.attestations.identities.has(machine.facts.identity);
    soon(8_000, () => (isRegistered() ? restart(machine, true) : replaceDisk(machine)));
  }

  /** It was registered under another name, or may not have this one. */
  function joinElsewhere(machine: Machine): void {
    acts.joinAs(machine, nodes.find((other) => other !== machine.node) ?? machine.node);
  }

  function terminate(machine: Machine): void {
    if (machine.facts.gone !== undefined) return;
    acts.end(machine);
    if (random.chance(0.8)) soon(20_000, () => start(`${machine.id}x`, machine.node));
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
        const machine = all[random.below(all.length)];
        if (machine !== undefined) terminate(machine);
      });
  // All at once, under one address that can be only one machine's.
  for (let number = 0; number < 2; number += 1)
    if (random.chance(0.4)) at(sometime(8_000), () => all.forEach((machine) => serve(machine, { rush: true })));
  if (scenario.insecure) settleUnproven(life, nextKey);
  return acts;
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
