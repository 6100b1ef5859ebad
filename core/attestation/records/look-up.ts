import type { IdentityRecord, Lookup, LookupResult, SingleUseKey } from '../../ports/attestation-store.ts';
import type { Lock, LockSubject } from '../../ports/locks.ts';
import { nameMatches } from '../../policy/patterns.ts';
import { lockOfMachine } from './lock-subjects.ts';

/** The items of one consistent read; undefined if an item does not exist. */
export interface StoredItems {
  identity(identity: string): IdentityRecord | undefined;
  lock(subject: LockSubject): Lock | undefined;
  /** The identity that holds the node name. */
  holder(nodeName: string): string | undefined;
  /** SHA-256 of the spec.request that spent the evidence, unless the item has expired. */
  spentBy(once: SingleUseKey): string | undefined;
  /** The identity that uses the address. */
  owner(address: string): string | undefined;
  /** Entries of the list of machines: at least those that can match one of `Lookup.machines`. */
  readonly entries: readonly string[];
}

export function lookUp({ identity, nodeName, once, addresses, machines }: Lookup, items: StoredItems): LookupResult {
  const record = identity === undefined ? undefined : items.identity(identity);
  const lock = identity === undefined ? undefined : items.lock(lockOfMachine(identity));
  const holder = holderOf(nodeName, items);
  const entry = machines.find((name) => !name.includes('*') && items.entries.includes(name));
  return {
    ...(record === undefined ? {} : { identity: record }),
    ...(lock === undefined ? {} : { lock }),
    ...(holder === undefined || holder.identity === identity ? {} : { holder }),
    once: once.map((key) => items.spentBy(key)),
    addresses: addresses.map((address) => items.owner(address)),
    // An entry without `*` is exactly one name. A name is never a pattern.
    ...(entry === undefined ? {} : { entry }),
    listed: items.entries.some((entry) => machines.some((name) => nameMatches(entry, name))),
  };
}

export function holderOf(
  nodeName: string,
  { holder, identity }: Pick<StoredItems, 'holder' | 'identity'>,
): IdentityRecord | undefined {
  const holderIdentity = holder(nodeName);
  if (holderIdentity === undefined) return undefined;
  const record = identity(holderIdentity);
  if (record === undefined) throw new TypeError('a node name belongs to a machine without a record');
  return record;
}
