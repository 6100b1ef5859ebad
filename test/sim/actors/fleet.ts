/**
 * A fleet that scales in and out: machines under names that pass on, which join as a kubelet does until they have a certificate;
 * what is left of terminated machines and still asks; and those who tell attest to look at names, rightly or not.
 */
import type { FleetPlan, PlannedMachine } from '../fleet-plan.ts';
import type { Maintenance } from '../ports/maintenance.ts';
import { types } from '../ports/stored.ts';
import type { MachineControllers } from './cluster-api.ts';
import { createMachineActs, reportedMilliseconds } from './machine.ts';
import type { Machine } from './machine.ts';
import { nodeSigner } from '../scenario.ts';
import { nodes } from './simulated-cluster.ts';
import type { Life } from './simulated-cluster.ts';

/** Behind those of all other requesters: each machine of a fleet has keys of its own. */
const firstKey = 50;
/** Within this time a machine has joined, from when it may and no first faults happen any more. */
export const joinMilliseconds = 3_600_000;

export type FleetPorts = Maintenance & { readonly controllers: MachineControllers };

export interface Fleet {
  /** Machines that have to join and have not yet. */
  readonly waiting: () => readonly string[];
}

export function settleFleet(life: Life, plan: FleetPlan, { retire, look, controllers }: FleetPorts): Fleet {
  const { runtime, scenario, random, at, oracle } = life;
  const { timeline } = runtime;
  const isAudited = scenario.epochs.some(({ demands }) => demands.get(nodeSigner)?.mode === 'audit');
  let keys = firstKey;
  let listings = 0;
  const acts = createMachineActs(life, { series: 3, nextKey: () => keys++, controllers });
  const started = new Map<string, { readonly machine: Machine; readonly deadline: number }>();
  const after = (milliseconds: number, run: () => void): void => at(timeline.now() + milliseconds, run);

  function start(planned: PlannedMachine, before: PlannedMachine | undefined): void {
    const machine = acts.add(planned.id, planned.node);
    const { identity } = machine.facts;
    if (before !== undefined) runtime.count('step: fleet: the next machine of a name');
    // While its predecessor runs, the name is not free.
    const mayFrom = Math.max(timeline.now(), before?.until ?? 0, runtime.rates.until);
    started.set(planned.id, { machine, deadline: mayFrom + joinMilliseconds });
    keepJoining(machine, 4_000);
    for (let number = 0; number < 2; number += 1) {
      if (random.chance(0.4)) after(random.between(5_000, 60_000), () => acts.serve(machine));
      if (random.chance(0.3)) after(random.between(5_000, 60_000), () => acts.renew(machine));
      if (random.chance(0.3)) after(random.between(5_000, 60_000), () => acts.moveAddress(machine));
    }
    const { until } = planned;
    if (until !== undefined) at(until, () => end(machine));
    at(mayFrom + joinMilliseconds, () => {
      if (isWaiting(machine)) runtime.fail(`${identity} has not joined as ${machine.node} within an hour`);
    });
  }

  async function allow(name: string): Promise<void> {
    const about = { addedAt: life.instant(), by: 'operator', reason: 'simulated' };
    const audit = {
      id: `fleet ${++listings}`,
      at: about.addedAt,
      by: 'operator',
      action: 'allow',
      subject: name,
      reason: '',
    } as const;
    await life.attestations.register.allowMachine({ name, addresses: [], dnsNames: [], ...about }, audit);
    oracle.listed(name, true);
  }

  /** As a kubelet: another request after each one that came to nothing. */
  function keepJoining(machine: Machine, wait: number): void {
    if (!isWaiting(machine)) return;
    // Another operator may have taken it off the list.
    if (scenario.listed) void allow(machine.facts.identity);
    acts.join(machine);
    if (!scenario.approver) after(random.between(1_000, 10_000), () => approve(machine));
    after(wait * random.between(0.8, 1.2), () => keepJoining(machine, Math.min(wait * 1.6, 300_000)));
  }

  function approve({ facts }: Machine): void {
    for (const object of life.requests.objects())
      if (types(object).length === 0 && life.truthOf(object)?.machine === facts.identity)
        life.decide(object.metadata.name, object.metadata.uid, 'Approved');
  }

  function isWaiting(machine: Machine): boolean {
    // Only the relay gives a machine the challenge for its TPM, and only where it approves.
    if (scenario.tpm && !scenario.approver) return false;
    // An intent of audit mode names no machine: if it is given up, its key counts as used by another.
    if (scenario.freshKeys && isAudited) return false;
    return machine.facts.gone === undefined && !acts.isNode(machine);
  }

  function end(machine: Machine): void {
    acts.end(machine);
    // A deleted Machine or Node is a hint; it may come at once, late, more than once or never.
    for (let number = 0; number < 3; number += 1)
      if (random.chance(0.5))
        after(random.pick([200, 5_000, 150_000]) * random.between(1, 1.5), () => hint([machine.node]));
    // A copy of its disk still has its certificate.
    for (let number = 0; number < 2; number += 1) {
      const wait = (): number => random.pick([5_000, 30_000, 180_000, 900_000]) * random.between(0.5, 1.5);
      if (random.chance(0.5)) after(wait(), () => acts.renew(machine, true));
      if (random.chance(0.5)) after(wait(), () => acts.serve(machine, { afterEnd: true }));
    }
  }

  function hint(nodeNames: readonly string[]): void {
    if (!plan.retires) return;
    runtime.count('step: fleet: a hint');
    look(nodeNames);
  }

  /** About any name, as one that knows nothing would. */
  function hintAtRandom(): void {
    const names = [...nodes, ...plan.lines.flat().map(({ node }) => node), 'node-e1', 'edge', 'node-z'] as const;
    const few = Array.from({ length: 1 + random.below(4) }, () => names[random.below(names.length)] ?? 'node-z');
    hint(few);
    if (runtime.troubled()) after(random.between(2_000, 20_000), hintAtRandom);
  }

  function schedule(): void {
    if (timeline.now() > plan.endsAt + joinMilliseconds) return;
    if (plan.retires) {
      retire();
      // EventBridge delivers at least once, and late now and then.
      if (random.chance(0.3)) after(random.pick([5, 300, 30_000]), retire);
    }
    after(runtime.troubled() ? random.between(2_000, 12_000) : plan.every, schedule);
  }

  /** Machines that joined and ended before anything else happened. */
  async function recordEnded(id: string): Promise<void> {
    const identity = `null#${id}`;
    const nodeName = `node-${id}`;
    const seen = life.instant();
    life.facts.set(identity, {
      identity,
      node: nodeName,
      addresses: [],
      former: [],
      dnsNames: [],
      starts: [],
      gone: timeline.now(),
    });
    life.platform.machines.set(id, { nodeNames: [nodeName], state: 'gone' });
    after(reportedMilliseconds, () => life.platform.machines.delete(id));
    const about = {
      identity,
      nodeName,
      state: 'active',
      previousSpkis: [],
      providerId: `null:///${id}`,
      addresses: [],
    } as const;
    const record = { ...about, firstSeen: seen, lastSeen: seen, renewals: 0, uses: 0, rev: 1 };
    const item = {
      id: `fleet ${id}`,
      at: seen,
      by: 'operator',
      action: 'adopt',
      subject: identity,
      reason: '',
    } as const;
    await life.attestations.register.adopt(record, item);
    oracle.registered();
  }
  for (let number = 1; number <= 3; number += 1) at(number, () => void recordEnded(`e${number}`));

  for (const line of plan.lines)
    for (const [index, planned] of line.entries()) at(planned.from, () => start(planned, line[index - 1]));
  at(random.between(0, 20_000), schedule);
  for (const from of [0, ...plan.faults.map((each) => each.from)]) at(from + random.between(0, 10_000), hintAtRandom);

  return {
    waiting: () =>
      [...started.values()].flatMap(({ machine }) => (isWaiting(machine) ? [`${machine.id} has not joined`] : [])),
  };
}
