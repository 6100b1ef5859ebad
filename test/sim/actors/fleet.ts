/**
 * A fleet that scales in and out: machines under names that pass on, which join as a kubelet does until they have a certificate,
 * and what is left of terminated machines and still asks.
 */
import type { FleetPlan, PlannedMachine } from '../fleet-plan.ts';
import { types } from '../ports/stored.ts';
import { createMachineActs } from './machine.ts';
import type { Machine } from './machine.ts';
import type { Life } from './simulated-cluster.ts';

/** Behind those of all other requesters: each machine of a fleet has keys of its own. */
const firstKey = 50;
/** Within this time a machine has joined, from when it may and no first faults happen any more. */
export const joinMilliseconds = 3_600_000;

export interface Fleet {
  /** Machines that have to join and have not yet. */
  readonly waiting: () => readonly string[];
}

export function settleFleet(life: Life, plan: FleetPlan): Fleet {
  const { runtime, scenario, random, at, oracle } = life;
  const { timeline } = runtime;
  let keys = firstKey;
  let listings = 0;
  const acts = createMachineActs(life, { series: 3, nextKey: () => keys++ });
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
    return machine.facts.gone === undefined && !acts.isNode(machine);
  }

  function end(machine: Machine): void {
    acts.end(machine);
    // A copy of its disk still has its certificate.
    for (let number = 0; number < 2; number += 1) {
      const wait = (): number => random.pick([5_000, 30_000, 180_000, 900_000]) * random.between(0.5, 1.5);
      if (random.chance(0.5)) after(wait(), () => acts.renew(machine, true));
      if (random.chance(0.5)) after(wait(), () => acts.serve(machine, { afterEnd: true }));
    }
  }

  for (const line of plan.lines)
    for (const [index, planned] of line.entries()) at(planned.from, () => start(planned, line[index - 1]));

  return {
    waiting: () =>
      [...started.values()].flatMap(({ machine }) => (isWaiting(machine) ? [`${machine.id} has not joined`] : [])),
  };
}
