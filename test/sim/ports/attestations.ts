/** An attestation store and its register in plain memory, held to test/contract/attestation-store.ts. */
import type {
  AttestationAdmin,
  AttestationStore,
  AuditItem,
  ChangeResult,
  Claim,
  ClaimResult,
  IdentityRecord,
  MachineEntry,
  Verdict,
} from '../../../core/ports/attestation-store.ts';
import {
  checkAdoption,
  checkClaim,
  checkLookup,
  checkObservation,
  checkRetirement,
} from '../../../core/attestation/records/claim-check.ts';
import { lockOfMachine, oldestFirst, subjectsOf } from '../../../core/attestation/records/lock-subjects.ts';
import type { Lock, LockSubject } from '../../../core/ports/locks.ts';
import { nameMatches } from '../../../core/policy/patterns.ts';
import type { Instant } from '../../../core/ports/instant.ts';

export interface SimulatedAttestations {
  readonly store: AttestationStore;
  readonly register: AttestationAdmin;
  readonly identities: ReadonlyMap<string, IdentityRecord>;
  /** Which machine has a name. */
  readonly names: ReadonlyMap<string, string>;
  /** The one that stands, expired or not. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly locks: ReadonlyMap<LockSubject, Lock>;
  giveName(nodeName: string, identity: string): void;
  /** `listener` hears of each entry of the list of machines that a look finds. */
  onFound(listener: (entry: string) => void): void;
}

interface Spent {
  readonly requestSha256: string;
  readonly expiresAt: Instant;
}

export function createSimulatedAttestations(): SimulatedAttestations {
  const identities = new Map<string, IdentityRecord>();
  const names = new Map<string, string>();
  /** Of names whose machine is retired: from when on they are free. */
  const freeAt = new Map<string, Instant>();
  const verdicts = new Map<string, Verdict>();
  const proofs = new Map<string, Spent>();
  const addresses = new Map<string, string>();
  const machines = new Map<string, MachineEntry>();
  const locks = new Map<LockSubject, Lock>();
  const audited = new Map<string, AuditItem>();
  const refused = new Map<string, number>();
  const listeners: ((entry: string) => void)[] = [];

  function verdictOf(uid: string, now: Instant): Verdict | undefined {
    const verdict = verdicts.get(uid);
    return verdict !== undefined && verdict.expiresAt > now ? verdict : undefined;
  }

  function spentBy(kind: string, id: string, now: Instant): string | undefined {
    const spent = proofs.get(`${kind} ${id}`);
    return spent !== undefined && spent.expiresAt > now ? spent.requestSha256 : undefined;
  }

  /** Without `now` no name is free that was ever given. */
  function nameHolder(nodeName: string, now: Instant = 0): string | undefined {
    return (freeAt.get(nodeName) ?? Infinity) <= now ? undefined : names.get(nodeName);
  }

  function holderOf(nodeName: string, now?: Instant): IdentityRecord | undefined {
    const identity = nameHolder(nodeName, now);
    if (identity === undefined) return undefined;
    const record = identities.get(identity);
    if (record === undefined) throw new TypeError('a node name belongs to a machine without a record');
    return record;
  }

  /** If it is still the one that was read: after a reset another one begins at rev 1 as well. */
  function still({ identity, rev, firstSeen, nodeName }: IdentityRecord): IdentityRecord | undefined {
    const found = identities.get(identity);
    return found?.rev === rev && found.firstSeen === firstSeen && found.nodeName === nodeName ? found : undefined;
  }

  function freeAddresses(identity: string): void {
    for (const [address, owner] of addresses) if (owner === identity) addresses.delete(address);
  }

  /** Before anything else of its transaction: where it throws, nothing was written. */
  function audit(items: readonly AuditItem[]): void {
    if (items.some(({ id }) => audited.has(id))) throw new Error('an audit item never changes');
    for (const item of items) audited.set(item.id, item);
  }

  function create(record: IdentityRecord): void {
    identities.set(record.identity, record);
    names.set(record.nodeName, record.identity);
    freeAt.delete(record.nodeName);
  }

  function end(record: IdentityRecord, times: Pick<IdentityRecord, 'retiredAt' | 'nameFreeAt'>): void {
    const ended = { ...record, ...times, state: 'retired', addresses: [], rev: record.rev + 1 } as const;
    identities.set(record.identity, ended);
    freeAddresses(record.identity);
    if (times.nameFreeAt !== undefined) freeAt.set(record.nodeName, times.nameFreeAt);
  }

  function holds({ identity: write, once, newAddresses, retire, entry }: Claim, now: Instant): boolean {
    if (write.kind === 'none') return true;
    const { identity, nodeName, rev } = write.record;
    const retired = retire === undefined ? undefined : still(retire);
    if (retire !== undefined && retired?.state !== retire.state) return false;
    const before = write.kind === 'create' ? identities.get(identity) : still({ ...write.record, rev: rev - 1 });
    if (write.kind === 'create' ? before !== undefined : before?.state !== 'active') return false;
    const holder = nameHolder(nodeName, retire === undefined ? now : undefined);
    if (holder !== (write.kind === 'create' ? retired?.identity : identity)) return false;
    if (retired?.state === 'retired' && !freeAt.has(nodeName)) return false;
    if (entry !== undefined && !machines.has(entry)) return false;
    const free = new Set([undefined, retired?.identity]);
    return (
      once.every(({ kind, id, requestSha256 }) => [undefined, requestSha256].includes(spentBy(kind, id, now))) &&
      newAddresses.every((address) => free.has(addresses.get(address)))
    );
  }

  function write({ verdict, once, identity, newAddresses, retire, audit: items }: Claim, now: Instant): void {
    audit(items);
    verdicts.set(verdict.uid, verdict);
    for (const { kind, id, requestSha256, expiresAt } of once)
      proofs.set(`${kind} ${id}`, { requestSha256, expiresAt });
    if (retire?.state === 'active') end(retire, { retiredAt: now });
    if (identity.kind === 'create') create(identity.record);
    if (identity.kind === 'replace') identities.set(identity.record.identity, identity.record);
    if (identity.kind !== 'none') for (const address of newAddresses) addresses.set(address, identity.record.identity);
  }

  const store: AttestationStore = {
    findVerdict: async (uid, now) => verdictOf(uid, now),
    findIdentity: async (identity) => identities.get(identity),
    findNode: async (nodeName) => holderOf(nodeName),
    async recall(uid, { requester, from }, now) {
      const verdict = verdictOf(uid, now);
      return { ...(verdict === undefined ? {} : { verdict }), refusals: refused.get(`${from} ${requester}`) ?? 0 };
    },
    async observe(record) {
      checkObservation(record);
      if (still({ ...record, rev: record.rev - 1 })?.state !== 'active') return false;
      identities.set(record.identity, record);
      return true;
    },
    async retire(record, { nameFreeAt, audit: item }) {
      checkRetirement(record, { nameFreeAt, audit: item });
      if (!identities.has(record.identity)) return { kind: 'missing' };
      if (still(record)?.state !== 'active' || names.get(record.nodeName) !== record.identity)
        return { kind: 'changed' };
      audit([item]);
      end(record, { retiredAt: item.at, nameFreeAt });
      return { kind: 'written' };
    },
    async countRefusal({ requester, from }) {
      const key = `${from} ${requester}`;
      refused.set(key, (refused.get(key) ?? 0) + 1);
    },
    findLock: async (subject) => locks.get(subject),
    async lookup(question) {
      checkLookup(question);
      const { now, identity, nodeName, once, addresses: asked, machines: wanted } = question;
      const record = identity === undefined ? undefined : identities.get(identity);
      const holder = holderOf(nodeName, now);
      const entry = wanted.find((name) => !name.includes('*') && machines.has(name));
      const lock = identity === undefined ? undefined : locks.get(lockOfMachine(identity));
      if (entry !== undefined) for (const listener of listeners) listener(entry);
      return {
        ...(record === undefined ? {} : { identity: record }),
        ...(lock === undefined ? {} : { lock }),
        ...(holder === undefined || holder.identity === identity ? {} : { holder }),
        ...(entry === undefined ? {} : { entry }),
        once: once.map(({ kind, id }) => spentBy(kind, id, now)),
        addresses: asked.map((address) => addresses.get(address)),
        listed: [...machines.keys()].some((entry) => wanted.some((name) => nameMatches(entry, name))),
      };
    },
    findMachine: async (name) => (name.includes('*') ? undefined : machines.get(name)),
    async claim(claim, now): Promise<ClaimResult> {
      checkClaim(claim);
      const found = verdictOf(claim.verdict.uid, now);
      if (found !== undefined) return { kind: 'verdict', found };
      if (!holds(claim, now)) return { kind: 'changed' };
      write(claim, now);
      return { kind: 'written' };
    },
  };

  const register: AttestationAdmin = {
    listIdentities: () => each(identities.values()),
    listVerdicts: (now) => each([...verdicts.values()].filter(({ expiresAt }) => expiresAt > now)),
    listAudit: () => each([...audited.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))),
    addAudit: async (item) => audit([item]),
    listMachines: async () => [...machines.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    async reset(record, item): Promise<ChangeResult> {
      if (still(record) === undefined) return { kind: identities.has(record.identity) ? 'changed' : 'missing' };
      const { identity, nodeName } = record;
      audit([item]);
      identities.delete(identity);
      // A retired machine's name may be another's by now.
      if (names.get(nodeName) === identity) {
        names.delete(nodeName);
        freeAt.delete(nodeName);
      }
      freeAddresses(identity);
      return { kind: 'written' };
    },
    async adopt(record, item): Promise<ChangeResult> {
      checkAdoption(record);
      const taken = record.addresses.some((address) => addresses.has(address));
      if (taken || identities.has(record.identity) || nameHolder(record.nodeName, item.at) !== undefined)
        return { kind: 'changed' };
      audit([item]);
      create(record);
      for (const address of record.addresses) addresses.set(address, record.identity);
      return { kind: 'written' };
    },
    async allowMachine(entry, item): Promise<ChangeResult> {
      audit([item]);
      machines.set(entry.name, entry);
      return { kind: 'written' };
    },
    async removeMachine(name, item): Promise<ChangeResult> {
      if (!machines.has(name)) return { kind: 'missing' };
      audit([item]);
      machines.delete(name);
      return { kind: 'written' };
    },
    listLocks: async () => oldestFirst([...locks.values()]),
    async lock(lock, item): Promise<ChangeResult> {
      if (subjectsOf(lock).some((subject) => locks.has(subject))) return { kind: 'changed' };
      audit([item]);
      for (const subject of subjectsOf(lock)) locks.set(subject, lock);
      return { kind: 'written' };
    },
    async unlock(lock, item): Promise<ChangeResult> {
      if (!subjectsOf(lock).every((subject) => locks.get(subject)?.id === lock.id)) return { kind: 'missing' };
      audit([item]);
      for (const subject of subjectsOf(lock)) locks.delete(subject);
      return { kind: 'written' };
    },
  };

  return {
    store,
    register,
    identities,
    names,
    verdicts,
    locks,
    giveName: (name, identity) => void names.set(name, identity),
    onFound: (listener) => void listeners.push(listener),
  };
}

async function* each<T>(items: Iterable<T>): AsyncIterable<T> {
  for (const item of items) yield item;
}
