/** The latest certificate of each holder and signer, and how far its lifetime is. */
import { certificateEntry } from '../../../core/inventory/certificate-entry.ts';
import type { IssuingRecord } from '../../../core/ports/certificate-ledger.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import type { Revocation } from '../../../core/ports/revocations.ts';
import { holderOf } from '../../../core/rotation/leaves.ts';

export interface HeldCertificate {
  /** The node, or else the common name, or the first subjectAltName. */
  readonly holder: string;
  readonly node: boolean;
  /** Empty for records of early versions. */
  readonly signerName: string;
  readonly serial: string;
  readonly notBefore: Instant;
  readonly notAfter: Instant;
  readonly caKeyId: string;
  readonly revoked: boolean;
}

/**
 * `due`: clients renew from here on. `late`: a client that renews has done so by now. `ended`: it ended, and the holder has no later
 * one.
 */
export const certificateStates = ['ended', 'late', 'revoked', 'due', 'valid'] as const;
export type CertificateState = (typeof certificateStates)[number];

/** Parts of the lifetime. kubelet and kubelet-authenticator renew between 70 and 90 %. */
const dueFrom = 0.7;
const lateFrom = 0.9;

export function stateOf({ notBefore, notAfter, revoked }: HeldCertificate, now: Instant): CertificateState {
  if (notAfter <= now) return 'ended';
  if (revoked) return 'revoked';
  const used = (now - notBefore) / (notAfter - notBefore);
  return used >= lateFrom ? 'late' : used >= dueFrom ? 'due' : 'valid';
}

/** Holders that are followed at once: the memory of a report does not grow with the ledger. */
export const mostHolders = 20_000;

/** `records`: by notAfter, the earliest first. `more`: there are holders beyond `mostHolders`, and they are left out. */
export async function latestOfHolders(
  records: AsyncIterable<IssuingRecord>,
  revocationOf: (record: IssuingRecord) => Promise<Revocation | undefined>,
): Promise<{ readonly held: readonly HeldCertificate[]; readonly more: boolean }> {
  const held = new Map<string, HeldCertificate>();
  let more = false;
  for await (const record of records) {
    if (record.state !== 'issued') continue;
    const entry = certificateEntry(record);
    const { signerName = '', serial, notBefore, notAfter, caKeyId, nodeName } = entry;
    const holder = holderOf(entry);
    const key = JSON.stringify([signerName, holder]);
    const before = held.get(key);
    if (before === undefined && held.size >= mostHolders) {
      more = true;
      continue;
    }
    const revoked = (await revocationOf(record)) !== undefined;
    // A revoked certificate does not stand for its holder while another one is usable.
    if (revoked && before?.revoked === false) continue;
    held.set(key, { holder, node: nodeName !== undefined, signerName, serial, notBefore, notAfter, caKeyId, revoked });
  }
  return { held: [...held.values()], more };
}
