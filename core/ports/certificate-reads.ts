import type { IssuingRecord } from './certificate-ledger.ts';
import type { Instant } from './instant.ts';

/** The records whose certificates expire in a part of time. */
export interface ExpiryRange {
  /** The first instant of notAfter that is in the range. */
  readonly from: Instant;
  /** The first instant of notAfter behind it. */
  readonly to: Instant;
  /** Only the records behind this one, in the order of `listByExpiry`. It need not be in the range. */
  readonly after?: ExpiryCursor;
}

/** The place of a record in the order of `listByExpiry`. */
export type ExpiryCursor = Pick<IssuingRecord, 'uid' | 'serial' | 'notAfter'>;

/**
 * Reads of the ledger for operators. No handler of requests uses them. They use the indexes by serial number and by expiry, which
 * DynamoDB writes a moment after the table.
 */
export interface CertificateReads {
  /** The record with this serial number (lower-case hex, as in the ledger). Undefined also for the serial number of a CA. */
  findSerial(serial: string): Promise<IssuingRecord | undefined>;
  /**
   * The records by notAfter, the earliest first, intents included; those with the same notAfter in an order that never changes. It
   * reads pages as they are used: at most 16 of 100 records are in memory, and a caller that stops reads no more.
   */
  listByExpiry(range: ExpiryRange): AsyncIterable<IssuingRecord>;
}
