/** The operator: `countersign tofu`, `countersign machines`, and bindings that are taken away and given back. */
import type { Lock } from '../../../core/ports/locks.ts';
import { ulid } from '../../../core/attestation/records/ulid.ts';
import type { AuditItem } from '../../../core/ports/attestation-store.ts';
import { boundGroups } from '../ports/authorizer.ts';
import type { Machines } from './machines.ts';
import { nodes } from './simulated-cluster.ts';
import type { Life } from './simulated-cluster.ts';

export function settleOperator(life: Life, machines: Machines): void {
  const { runtime, scenario, oracle, random, at, sometime } = life;
  const { identities, register } = life.attestations;

  function item(action: AuditItem['action'], subject: string): AuditItem {
    runtime.count(`step: operator: ${action}`);
    runtime.tell(() => `the operator does ${action} ${subject}`);
    const now = life.instant();
    return { id: ulid(now, random.bytes(10)), at: now, by: 'operator', action, subject, reason: 'simulated' };
  }

  async function reset(): Promise<void> {
    const record = [...identities.values()][random.below(identities.size)];
    if (record === undefined) return;
    await register.reset(record, item('reset', record.identity));
    oracle.registered();
  }

  async function adopt(identity: string, node: string, seen: number): Promise<void> {
    if (identities.has(identity) || life.attestations.names.has(node)) return;
    const record = {
      identity,
      nodeName: node,
      state: 'active',
      previousSpkis: [],
      providerId: identity.replace('#', ':///'),
      addresses: [],
      firstSeen: seen,
      lastSeen: seen,
      renewals: 0,
      uses: 0,
      rev: 1,
    } as const;
    await register.adopt(record, item('adopt', identity));
    oracle.registered();
  }

  async function allow(name: string, allowed: boolean): Promise<void> {
    const audit = item(allowed ? 'allow' : 'remove', name);
    const about = { addedAt: life.instant(), by: 'operator', reason: 'simulated' };
    const entry = { name, addresses: [], dnsNames: [], ...about };
    if (allowed) await register.allowMachine(entry, audit);
    else await register.removeMachine(name, audit);
    oracle.listed(name, allowed);
  }

  /** Chance of its own: whatever else the operator does stays as it was. */
  const chance = random.stream('locks');
  async function lock(): Promise<void> {
    const record = [...identities.values()][chance.below(identities.size)];
    const nodeName = record !== undefined && chance.chance(0.6) ? record.nodeName : chance.pick(nodes);
    const identity = record === undefined || chance.chance(0.3) ? undefined : record.identity;
    const about =
      identity !== undefined && chance.chance(0.4)
        ? { identity }
        : { nodeName, ...(identity === undefined ? {} : { identity }) };
    const made: Lock = {
      ...about,
      id: ulid(life.instant(), chance.bytes(10)),
      at: life.instant(),
      by: 'operator',
      reason: 'simulated',
    };
    const audit = { ...made, action: 'lock', subject: identity ?? nodeName } as const;
    if ((await register.lock(made, audit)).kind !== 'written') return;
    runtime.count('step: operator: lock');
    runtime.tell(() => `the operator does lock ${identity ?? ''} ${'nodeName' in about ? nodeName : ''}`);
    oracle.locks.locked(made);
    const back = Math.min(runtime.timeline.now() + chance.between(2_000, 60_000), runtime.rates.until);
    at(back, () => {
      runtime.count('step: operator: unlock');
      runtime.tell(() => `the operator does unlock ${identity ?? ''} ${'nodeName' in about ? nodeName : ''}`);
      oracle.locks.unlocked(made);
      void register.unlock(made, { ...audit, id: ulid(life.instant(), chance.bytes(10)), action: 'unlock' });
    });
  }
  for (let number = 0; number < 2; number += 1)
    if (chance.chance(0.3)) at(runtime.rates.until * chance.next() ** 2, () => void lock());

  for (let number = 0; number < 3; number += 1) if (random.chance(0.4)) at(sometime(3_000), () => void reset());

  // What ran before attestation did; some of it long forgotten by its platform.
  const ghost = random.pick(nodes);
  if (random.chance(0.35)) {
    const forgotten = random.chance(0.6);
    // A platform that knows nothing of it may only just not know it yet.
    if (forgotten) life.facts.set('null#ghost', { ...nothing, identity: 'null#ghost', node: ghost, gone: -1 });
    at(1, () => void adopt('null#ghost', ghost, life.instant() - (forgotten ? 7_200_000 : 60_000)));
  }
  if (random.chance(0.3))
    at(sometime(), () => {
      const machine = machines.all[random.below(machines.all.length)];
      if (machine !== undefined) void adopt(machine.facts.identity, machine.node, life.instant());
    });

  function keepList(): void {
    const known = machines.all[random.below(machines.all.length)];
    const name = random.pick([known?.facts.identity ?? 'null#m1', 'null#m*', 'null#m1', 'null#*x']);
    void allow(name, random.chance(0.65));
    life.soon(15_000, keepList);
  }
  if (scenario.listed) {
    for (const name of ['null#m1', 'null#m2', 'null#m3']) if (random.chance(0.6)) at(0, () => void allow(name, true));
    life.soon(15_000, keepList);
    // Sometimes an entry goes while attest, which has just read it, asks the platform.
    const whim = random.stream('entries');
    life.attestations.onFound((name) => {
      if (whim.chance(0.02)) at(runtime.timeline.now() + whim.between(1, 60), () => void allow(name, false));
    });
  }

  /** The requesters of the group are not approved meanwhile, and are when the binding is back. */
  function unbind(): void {
    const group = random.pick(boundGroups);
    runtime.tell(() => `the operator takes leave away from ${group}`);
    life.authorizer.bind(group, false);
    const back = Math.min(runtime.timeline.now() + random.between(1_000, 40_000), runtime.rates.until);
    at(back, () => {
      runtime.tell(() => `the operator gives leave back to ${group}`);
      life.authorizer.bind(group, true);
    });
  }
  if (random.chance(0.4)) at(sometime(), unbind);
}

const nothing = { addresses: [], former: [], dnsNames: [], starts: [] };
