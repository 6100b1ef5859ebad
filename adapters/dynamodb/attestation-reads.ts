/** Which items a look reads, and what they say: decoded, and checked to be those of the key under which they are stored. */
import {
  identityRecordFrom,
  lockFrom,
  machineEntryFrom,
  verdictFrom,
} from '../../core/attestation/records/stored-records.ts';
import type { IdentityRecord, Lookup, MachineEntry, Verdict } from '../../core/ports/attestation-store.ts';
import type { StoredItems } from '../../core/attestation/records/look-up.ts';
import { lockOfMachine, subjectsOf } from '../../core/attestation/records/lock-subjects.ts';
import type { Lock, LockSubject } from '../../core/ports/locks.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { keys, patternPrefix } from './attestation-items.ts';
import { plainFrom } from './values.ts';
import type { Item } from './values.ts';

/** A name with `*` would be the key of the patterns; no machine has such a name. */
function exactNames({ machines }: Lookup): readonly string[] {
  return machines.filter((name) => !name.includes('*'));
}

export function keysOf(question: Lookup): readonly Item[] {
  const { identity, once, addresses, machines } = question;
  return [
    ...(identity === undefined ? [] : [keys.identity(identity), keys.lock(lockOfMachine(identity))]),
    ...once.map(({ kind, id }) => keys.once(kind, id)),
    ...addresses.map(keys.address),
    ...exactNames(question).map(keys.machine),
    ...(machines.length === 0 ? [] : [keys.patterns]),
  ];
}

/** Without `now` nothing has expired. */
export function itemsIn(read: (key: Item) => Item | undefined, now: Instant = 0): Omit<StoredItems, 'entries'> {
  const owner = (key: Item): string | undefined => read(key)?.['identity']?.S;
  return {
    identity(identity) {
      const item = read(keys.identity(identity));
      return item === undefined ? undefined : recordFrom(item, identity);
    },
    lock(subject) {
      const item = read(keys.lock(subject));
      return item === undefined ? undefined : lockOn(item, subject);
    },
    holder(nodeName) {
      const until = Number(read(keys.node(nodeName))?.['expiresAt']?.N ?? Number.POSITIVE_INFINITY);
      return until <= now ? undefined : owner(keys.node(nodeName));
    },
    spentBy: ({ kind, id }) => spentBy(read(keys.once(kind, id)), now),
    owner: (address) => owner(keys.address(address)),
  };
}

export function entriesIn(read: (key: Item) => Item | undefined, question: Lookup): readonly string[] {
  const patterns = Object.keys(question.machines.length === 0 ? {} : (read(keys.patterns) ?? {}));
  return [
    ...exactNames(question).filter((name) => read(keys.machine(name)) !== undefined),
    ...patterns.filter((name) => name.startsWith(patternPrefix)).map((name) => name.slice(patternPrefix.length)),
  ];
}

function spentBy(item: Item | undefined, now: Instant): string | undefined {
  if (item === undefined) return undefined;
  const { expiresAt, requestSha256 } = plainFrom(item);
  if (typeof expiresAt !== 'number' || typeof requestSha256 !== 'string')
    throw new TypeError('a spent proof cannot be read');
  return expiresAt > now ? requestSha256 : undefined;
}

export function unexpired(item: Item, now: Instant): Verdict | undefined {
  const verdict = verdictFrom(plainFrom(item));
  return verdict.expiresAt > now ? verdict : undefined;
}

export function recordFrom(item: Item, identity: string): IdentityRecord {
  const record = identityRecordFrom(plainFrom(item));
  if (record.identity !== identity)
    throw new TypeError('the record of another machine is stored under the key of this one');
  return record;
}

export function lockOn(item: Item, subject: LockSubject): Lock {
  const lock = lockFrom(plainFrom(item));
  if (!subjectsOf(lock).includes(subject)) throw new TypeError('another lock is stored under the key of this one');
  return lock;
}

export function entryFrom(item: Item, name: string): MachineEntry {
  const entry = machineEntryFrom(plainFrom(item));
  if (entry.name !== name) throw new TypeError('the entry of another machine is stored under the key of this one');
  return entry;
}
