/**
 * What must fit together in a claim before a store may write it: between themselves the records of one claim could say
 * two things about one machine, and no condition in a store would notice. A claim that does not fit is a mistake in this
 * program and throws.
 */
import { addressKind, mostAddresses } from './stored-records.ts';
import type { Claim, IdentityRecord, Lookup } from '../../ports/attestation-store.ts';

export function checkClaim({ identity, once, newAddresses, retire, audit }: Claim): void {
  if (identity.kind === 'none') {
    const more = once.length + newAddresses.length + audit.length;
    if (more > 0 || retire !== undefined) throw new TypeError('a claim of no identity writes its verdict and no more');
    return;
  }
  const { record } = identity;
  if (record.state !== 'active') throw new TypeError('a claim lets a machine in: its record is active');
  if (!newAddresses.every((address) => record.addresses.includes(address)))
    throw new TypeError('an address that is claimed is one of the record');
  if (Math.max(record.addresses.length, newAddresses.length) > mostAddresses)
    throw new TypeError(`a machine holds at most ${mostAddresses} addresses`);
  if (once.some(({ kind }) => kind === addressKind)) throw new TypeError(`no proof is of the kind "${addressKind}"`);
  if (identity.kind === 'create') checkFirst(record, newAddresses);
  else if (record.rev < 2) throw new TypeError('a record that replaces another has a later rev');
  if (retire === undefined) return;
  if (identity.kind !== 'create') throw new TypeError('only a first use can end another machine’s record');
  if (retire.nodeName !== record.nodeName || retire.identity === record.identity)
    throw new TypeError('the record that ends is another machine’s under the same node name');
}

/** More than this would not go into one read. The caller refuses such a request before it asks. */
export function checkLookup({ once, addresses }: Lookup): void {
  if (addresses.length > mostAddresses) throw new TypeError(`at most ${mostAddresses} addresses are looked up at once`);
  if (once.some(({ kind }) => kind === addressKind)) throw new TypeError(`no proof is of the kind "${addressKind}"`);
}

/** An observation lets nobody in: it is of a machine that is let in already. */
export function checkObservation({ rev, state }: IdentityRecord): void {
  if (state !== 'active' || rev < 2) throw new TypeError('what is observed is an active record’s, and its later rev');
}

function checkFirst(record: IdentityRecord, newAddresses: readonly string[]): void {
  if (record.rev !== 1) throw new TypeError('a first record is of rev 1');
  if (!record.addresses.every((address) => newAddresses.includes(address)))
    throw new TypeError('a first record claims all of its addresses');
}

/** Of a record that an operator writes for a machine that runs already. */
export function checkAdoption({ rev, state, spkiSha256, addresses }: IdentityRecord): void {
  if (rev !== 1 || state !== 'active') throw new TypeError('an adopted record is active and of rev 1');
  if (spkiSha256 !== undefined) throw new TypeError('an adopted machine has proved no key');
  if (addresses.length > mostAddresses) throw new TypeError(`a machine holds at most ${mostAddresses} addresses`);
}
