/**
 * Checks, before a store writes a claim, that its parts do not contradict each other; no condition in a store would notice.
 * A contradiction is a mistake in this program and throws.
 */
import { addressKind, mostAddresses } from './stored-records.ts';
import type { Claim, IdentityRecord, Lookup, Retirement } from '../../ports/attestation-store.ts';

export function checkClaim({ identity, once, newAddresses, retire, entry, audit }: Claim): void {
  if (identity.kind === 'none') {
    const more = once.length + newAddresses.length + audit.length;
    if (more > 0 || retire !== undefined || entry !== undefined)
      throw new TypeError('a claim without an identity writes its verdict only');
    return;
  }
  const { record } = identity;
  if (record.state !== 'active') throw new TypeError('the record of a claim must be active');
  if (!newAddresses.every((address) => record.addresses.includes(address)))
    throw new TypeError('a claimed address must be in the record');
  if (Math.max(record.addresses.length, newAddresses.length) > mostAddresses)
    throw new TypeError(`a machine holds at most ${mostAddresses} addresses`);
  checkKinds(once);
  if (entry?.includes('*') === true)
    throw new TypeError('a claim depends on an exact entry of the list, never on a pattern');
  if (identity.kind === 'create') checkFirst(record, newAddresses);
  else if (record.rev < 2) throw new TypeError('a record that replaces another must have a later rev');
  if (retire === undefined) return;
  if (identity.kind !== 'create') throw new TypeError('only a first use can end the record of another machine');
  if (retire.nodeName !== record.nodeName || retire.identity === record.identity)
    throw new TypeError('the record that ends must be of another machine with the same node name');
}

/** The limits of one read. The caller has already refused a request beyond them. */
export function checkLookup({ once, addresses }: Lookup): void {
  if (addresses.length > mostAddresses) throw new TypeError(`at most ${mostAddresses} addresses are looked up at once`);
  checkKinds(once);
}

/** Addresses are stored under this kind, so evidence of it could take an address. */
function checkKinds(once: Lookup['once']): void {
  if (once.some(({ kind }) => kind === addressKind))
    throw new TypeError(`no evidence may be of the kind "${addressKind}"`);
}

/** An observation does not admit a machine, so its record must already be active. */
export function checkObservation({ rev, state }: IdentityRecord): void {
  if (state !== 'active' || rev < 2) throw new TypeError('an observed record must be active and have a later rev');
}

function checkFirst(record: IdentityRecord, newAddresses: readonly string[]): void {
  if (record.rev !== 1) throw new TypeError('a first record must have rev 1');
  if (!record.addresses.every((address) => newAddresses.includes(address)))
    throw new TypeError('a first record must claim all of its addresses');
}

/** Only the record of an active machine ends, and its name is not free before that. */
export function checkRetirement({ state }: IdentityRecord, { nameFreeAt, audit }: Retirement): void {
  if (state !== 'active') throw new TypeError('a retired machine cannot be retired again');
  if (!(nameFreeAt >= audit.at)) throw new TypeError('the name of a retired machine is free after its retirement');
}

/** The record that an operator writes for a running machine. */
export function checkAdoption({ rev, state, spkiSha256, addresses, described }: IdentityRecord): void {
  if (rev !== 1 || state !== 'active') throw new TypeError('an adopted record must be active and have rev 1');
  if (spkiSha256 !== undefined) throw new TypeError('an adopted record must not have a key');
  if (described !== undefined)
    throw new TypeError('an adopted record must not have a description, which attest alone writes');
  if (addresses.length > mostAddresses) throw new TypeError(`a machine holds at most ${mostAddresses} addresses`);
}
