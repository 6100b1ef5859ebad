/**
 * A complete CRL of one CA, version 2 (RFC 5280 §5). Its contents:
 *
 * - issuer: the bytes of the CA's subject; thisUpdate and nextUpdate
 * - the entries by serial number, each with reasonCode; no list at all if nothing is revoked (§5.1.2.6)
 * - authorityKeyIdentifier: the CA's subjectKeyIdentifier; cRLNumber
 */
import { enumerated, explicit, integer, sequence, time } from '../encoding/der-writer.ts';
import type { Instant } from '../ports/instant.ts';
import { issuerOf } from '../x509/leaf-certificate.ts';
import type { Authority } from '../x509/leaf-certificate.ts';
import { algorithmIdentifiers } from '../x509/model.ts';
import { encodeExtension } from '../x509/tbs-certificate.ts';
import { reasonCodes } from '../ports/revocations.ts';
import type { ListedRevocation } from '../ports/revocations.ts';

export type CrlEntry = Pick<ListedRevocation, 'serial' | 'at' | 'reason'>;

export interface CrlTemplate {
  /** Grows with each CRL of the CA, from 1. */
  readonly number: number;
  /** Milliseconds are cut off. */
  readonly thisUpdate: Instant;
  readonly nextUpdate: Instant;
  readonly entries: readonly CrlEntry[];
}

/** OIDs; RFC 5280 §5.2.3, §5.3.1. */
const crlNumber = '2.5.29.20';
const reasonCode = '2.5.29.21';

const version2 = integer(1);

/** TBSCertList in DER. Deterministic: the order of `entries` does not matter. */
export function buildCrlTbs(
  { number, thisUpdate, nextUpdate, entries }: CrlTemplate,
  authority: Authority,
): Uint8Array {
  const { facts, authorityKeyIdentifier } = issuerOf(authority);
  const extensions = [
    ...(authorityKeyIdentifier === undefined ? [] : [authorityKeyIdentifier]),
    encodeExtension(crlNumber, false, integer(number)),
  ];
  return sequence(
    version2,
    algorithmIdentifiers[authority.signer.algorithm],
    facts.subjectName,
    time(thisUpdate),
    time(nextUpdate),
    // One argument, since a call cannot have as many arguments as a list has entries.
    ...(entries.length === 0 ? [] : [sequence(encodeEntries(entries))]),
    explicit(0, sequence(...extensions)),
  );
}

/** The entries without the SEQUENCE around them. Equal for equal lists, whatever their order. */
export function encodeEntries(entries: readonly CrlEntry[]): Uint8Array {
  const ordered = entries.toSorted((a, b) => (a.serial < b.serial ? -1 : 1));
  return Buffer.concat(
    ordered.map(({ serial, at, reason }) =>
      sequence(
        integer(Buffer.from(serial, 'hex')),
        time(at),
        sequence(encodeExtension(reasonCode, false, enumerated(reasonCodes[reason]))),
      ),
    ),
  );
}
