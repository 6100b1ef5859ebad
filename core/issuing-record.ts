import { bytes, integer, oneOf, optional, text } from './encoding/stored-fields.ts';
import type { Plain } from './encoding/stored-fields.ts';
import type { IssuingRecord } from './ports/certificate-ledger.ts';

/** Decodes a record of the ledger, as both ledgers keep it. Throws if it is not the record of this UID. */
export function issuingRecordFrom(plain: Plain, uid: string): IssuingRecord {
  if (text(plain, 'uid') !== uid) throw new TypeError(`the ledger holds another record under the key of ${uid}`);
  return {
    uid,
    requestDigest: text(plain, 'requestDigest'),
    state: oneOf(plain, 'state', ['intent', 'issued', 'expired']),
    caKeyId: text(plain, 'caKeyId'),
    tbs: bytes(plain, 'tbs'),
    serial: text(plain, 'serial'),
    notAfter: integer(plain, 'notAfter'),
    openedAt: integer(plain, 'openedAt'),
    attempt: integer(plain, 'attempt'),
    leaseUntil: integer(plain, 'leaseUntil'),
    ...optional('identity', text, plain),
    ...optional('certificate', bytes, plain),
    ...optional('kmsRequestId', text, plain),
  };
}
