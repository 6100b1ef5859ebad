/** What still depends on a CA: its certificates that have not expired, by signer and by who has them. */
import { certificateEntry } from '../inventory/certificate-entry.ts';
import type { CertificateEntry } from '../inventory/certificate-entry.ts';
import type { IssuingRecord } from '../ports/certificate-ledger.ts';
import type { Instant } from '../ports/instant.ts';

export interface Leaves {
  /** Those that count: issued, neither expired nor revoked; and those that a delivery is about to sign. */
  readonly certificates: number;
  /** When the last one ends. */
  readonly last?: Instant;
  readonly signers: readonly SignerLeaves[];
  /** The last to end first; those without a certificate of another CA before the others. */
  readonly holders: readonly Holder[];
  /** Whether there are holders that are not listed. */
  readonly more: boolean;
  /** Not expired; they depend on nothing but the CRL. */
  readonly revoked: number;
}

export interface SignerLeaves {
  /** Empty for records of early versions. */
  readonly signerName: string;
  readonly certificates: number;
  readonly last: Instant;
}

export interface Holder {
  readonly signerName: string;
  /** The node, or else the common name, or the first subjectAltName. */
  readonly holder: string;
  readonly node: boolean;
  readonly certificates: number;
  /** Of the one that ends last. */
  readonly serial: string;
  readonly notAfter: Instant;
  /** Since then another CA issued to the same holder for the same signer. */
  readonly renewed: boolean;
}

interface Followed extends Omit<Holder, 'renewed'> {
  /** When its latest certificate was begun. */
  readonly openedAt: Instant;
}

/** Holders that are followed at once: the memory of a count does not grow with the ledger. */
const mostHolders = 20_000;

/** `records`: all of the ledger that have not expired, in any order. `limit`: so many holders are listed. */
export async function countLeaves(
  records: AsyncIterable<IssuingRecord>,
  { keyId, revoked, now, limit }: { keyId: string; revoked: ReadonlySet<string>; now: Instant; limit: number },
): Promise<Leaves> {
  const signers = new Map<string, SignerLeaves>();
  const followed = new Map<string, Followed>();
  /** When the latest certificate of another CA was begun. */
  const others = new Map<string, Instant>();
  let [count, withdrawn, unfollowed] = [0, 0, false];

  for await (const record of records) {
    const counts = record.state === 'issued' || (record.state === 'intent' && record.leaseUntil > now);
    if (!counts || record.notAfter <= now) continue;
    const entry = certificateEntry(record);
    const signerName = entry.signerName ?? '';
    const key = JSON.stringify([signerName, holderOf(entry)]);
    if (record.caKeyId !== keyId) {
      if (others.size < mostHolders || others.has(key)) others.set(key, Math.max(others.get(key) ?? 0, entry.openedAt));
      continue;
    }
    if (revoked.has(record.serial)) {
      withdrawn += 1;
      continue;
    }
    count += 1;
    const before = signers.get(signerName);
    const last = Math.max(before?.last ?? 0, entry.notAfter);
    signers.set(signerName, { signerName, certificates: (before?.certificates ?? 0) + 1, last });
    const known = followed.get(key);
    if (known === undefined && followed.size >= mostHolders) unfollowed = true;
    else
      followed.set(key, {
        ...(known !== undefined && known.notAfter > entry.notAfter ? known : holderFrom(entry)),
        certificates: (known?.certificates ?? 0) + 1,
        openedAt: Math.max(known?.openedAt ?? 0, entry.openedAt),
      });
  }

  const holders = [...followed].map(([key, { openedAt, ...holder }]) => ({
    ...holder,
    renewed: (others.get(key) ?? 0) > openedAt,
  }));
  const order = (a: Holder, b: Holder) => Number(a.renewed) - Number(b.renewed) || b.notAfter - a.notAfter;
  const last = Math.max(0, ...[...signers.values()].map((signer) => signer.last));
  return {
    certificates: count,
    ...(count === 0 ? {} : { last }),
    signers: [...signers.values()].toSorted((a, b) => b.last - a.last),
    holders: holders.toSorted(order).slice(0, limit),
    more: unfollowed || holders.length > limit,
    revoked: withdrawn,
  };
}

function holderFrom(entry: CertificateEntry): Omit<Holder, 'certificates' | 'renewed'> {
  const { serial, notAfter, nodeName, signerName = '' } = entry;
  return { signerName, holder: holderOf(entry), node: nodeName !== undefined, serial, notAfter };
}

export function holderOf({ nodeName, commonName, sans, uid }: CertificateEntry): string {
  const [name] = [...sans.dns, ...sans.ip, ...sans.email, ...sans.uri];
  return nodeName ?? (commonName || (name ?? uid));
}
