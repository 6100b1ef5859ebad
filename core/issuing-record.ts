import { bytes, integer, listOf, object, oneOf, optional, text } from './encoding/stored-fields.ts';
import type { StoredFields } from './encoding/stored-fields.ts';
import type { IssuingRecord, RequestFacts } from './ports/certificate-ledger.ts';

// Functions, so that the bundler leaves them out of the attest function, which reads no ledger.
const requestFacts = () =>
  object<RequestFacts>({
    signerName: text,
    requester: optional(text),
    groups: optional(listOf(text)),
    usages: optional(listOf(text)),
    expirationSeconds: optional(integer),
  });

const issuingRecord = () =>
  object<IssuingRecord>({
    uid: text,
    requestDigest: text,
    state: oneOf('intent', 'issued', 'expired'),
    caKeyId: text,
    tbs: bytes,
    serial: text,
    notAfter: integer,
    openedAt: integer,
    attempt: integer,
    leaseUntil: integer,
    lambdaRequestId: optional(text),
    identity: optional(text),
    request: optional(requestFacts()),
    certificate: optional(bytes),
    kmsRequestId: optional(text),
  });

/** Decodes a ledger record, in the form that both ledgers store. Throws if it is not the record of this UID. */
export function issuingRecordFrom(fields: StoredFields, uid: string): IssuingRecord {
  const record = issuingRecord()(fields);
  if (record.uid !== uid) throw new TypeError(`the ledger holds another record under the key of ${uid}`);
  return record;
}
