/** The certificates that `countersign cert revoke` means. */
import { certificateEntry } from '../../core/inventory/certificate-entry.ts';
import type { CertificateEntry } from '../../core/inventory/certificate-entry.ts';
import type { CertificateReads } from '../../core/ports/certificate-reads.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';

export type Selector =
  | { readonly kind: 'serial'; readonly serial: string }
  | { readonly kind: 'node'; readonly nodeName: string }
  | { readonly kind: 'identity'; readonly identity: string }
  /** SHA-256 of the SubjectPublicKeyInfo, lower-case hex. */
  | { readonly kind: 'key'; readonly spkiSha256: string };

/** An issued certificate. */
export type IssuedEntry = CertificateEntry & { readonly fingerprintSha256: string };

/**
 * The issued certificates that have not expired. For a node, a machine or a key all that expire before `until` are read, page by page:
 * the ledger has indexes by serial number and by expiry only.
 */
export async function selectCertificates(
  selector: Selector,
  reads: CertificateReads,
  { now, until }: { readonly now: Instant; readonly until: Instant },
): Promise<readonly IssuedEntry[]> {
  if (selector.kind === 'serial') {
    const record = await reads.findSerial(selector.serial);
    const entry = record === undefined ? undefined : certificateEntry(record);
    if (entry === undefined || !isIssued(entry))
      throw new CommandFailure(
        exitCodes.notFound,
        `the ledger has no certificate with the serial number ${selector.serial}`,
      );
    if (entry.notAfter <= now)
      throw new CommandFailure(
        exitCodes.conflict,
        `the certificate ${selector.serial} has expired: it cannot be revoked`,
      );
    return [entry];
  }
  const found: IssuedEntry[] = [];
  for await (const entry of issuedCertificates(reads, { now, until })) if (matches(selector, entry)) found.push(entry);
  return found;
}

/** All issued certificates that have not expired and expire before `until`. */
export async function* issuedCertificates(
  reads: Pick<CertificateReads, 'listByExpiry'>,
  { now, until }: { readonly now: Instant; readonly until: Instant },
): AsyncGenerator<IssuedEntry> {
  for await (const record of reads.listByExpiry({ from: now, to: until })) {
    const entry = certificateEntry(record);
    if (isIssued(entry)) yield entry;
  }
}

function isIssued(entry: CertificateEntry): entry is IssuedEntry {
  return entry.state === 'issued' && entry.fingerprintSha256 !== undefined;
}

function matches(selector: Exclude<Selector, { kind: 'serial' }>, entry: CertificateEntry): boolean {
  switch (selector.kind) {
    case 'node':
      return entry.nodeName === selector.nodeName;
    case 'identity':
      return entry.identity === selector.identity;
    case 'key':
      return entry.publicKeySha256 === selector.spkiSha256;
  }
}
