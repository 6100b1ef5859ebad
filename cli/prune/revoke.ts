/**
 * Revokes the certificates of machines that no longer exist. It locks nothing, unlike `cert revoke`: a lock of the node name would keep
 * the successor out.
 */
import type { IdentityRecord } from '../../core/ports/attestation-store.ts';
import { issueFor } from '../revocation/revoke.ts';
import { recordRevocations } from '../revocation/record.ts';
import { issuedCertificates } from '../revocation/select.ts';
import type { IssuedEntry } from '../revocation/select.ts';
import type { Io, OpenRevocations } from '../runtime/io.ts';
import type { Author } from '../runtime/reason.ts';

/** As `cert revoke` searches without `--days`. */
const range = 366 * 86_400_000;

/** How many certificates of each identity are revoked now, earlier ones included. The ledger is read once for all machines. */
export async function revokeMachines(
  records: readonly IdentityRecord[],
  { by, reason: note }: Author,
  open: OpenRevocations,
  io: Io,
): Promise<ReadonlyMap<string, number>> {
  const now = io.now();
  const wanted = new Map<string, IssuedEntry[]>(records.map(({ identity }) => [identity, []]));
  for await (const entry of issuedCertificates(open.reads, { now, until: now + range }))
    if (entry.identity !== undefined) wanted.get(entry.identity)?.push(entry);
  const decision = { reason: 'cessationOfOperation', note, by, now } as const;
  const serials = [];
  for (const [identity, entries] of wanted) {
    const done = await recordRevocations(entries, { kind: 'identity', identity }, decision, open, io);
    serials.push(...done.revocations);
  }
  await issueFor(serials, open);
  return new Map([...wanted].map(([identity, entries]) => [identity, entries.length]));
}
