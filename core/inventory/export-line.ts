/**
 * One line of `countersign cert export`: the JSON of a certificate's entry, with its revocation and its DER (base64) as `certificate`, or as `tbs` if it was
 * never signed. The commands that compare the ledger with something else read these lines.
 */
import { parsedObject } from '../encoding/json-object.ts';
import { integer, listOf, object, oneOf, optional, text, unreadable } from '../encoding/stored-fields.ts';
import type { Reader } from '../encoding/stored-fields.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import type { RequestFacts } from '../ports/certificate-ledger.ts';
import type { SignatureRecord } from '../ports/signature-log.ts';
import type { Revocation } from '../ports/revocations.ts';
import type { Instant } from '../ports/instant.ts';
import { certificateEntry, entryJson } from './certificate-entry.ts';
import type { InventoryRecord } from './certificate-entry.ts';
import { revocationJson } from './revocation-finder.ts';

/** Without a line break. Throws TypeError if the record holds no certificate. */
export function exportLine(record: InventoryRecord, revocation?: Revocation): string {
  const { certificate, tbs } = record;
  const der =
    certificate === undefined ? { tbs: base64(tbs ?? new Uint8Array()) } : { certificate: base64(certificate) };
  const revoked = revocation === undefined ? {} : { revoked: revocationJson(revocation) };
  return JSON.stringify({ ...entryJson(certificateEntry(record)), ...revoked, ...der });
}

/** A signature of the ca function, for `countersign audit reconcile`. */
export function exportSignatureLine({ at, ...record }: SignatureRecord): string {
  return JSON.stringify({ signature: { ...record, at: new Date(at).toISOString() } });
}

/** The last line of an export: without it, the export is not complete. */
export interface ExportEnd {
  readonly records: number;
  /** The signatures of the ca function that were made in the range. */
  readonly signatures: number;
  /** The records whose notAfter is in this range, the end excluded. */
  readonly from: Instant;
  readonly to: Instant;
}

export function exportEndLine({ records, signatures, from, to }: ExportEnd): string {
  return JSON.stringify({
    end: { records, signatures, from: new Date(from).toISOString(), to: new Date(to).toISOString() },
  });
}

export type ExportLine =
  { readonly record: InventoryRecord } | { readonly signature: SignatureRecord } | { readonly end: ExportEnd };

/** The problem says what is wrong, without quoting the line. */
export function readExportLine(line: string): Result<ExportLine, string> {
  const fields = parsedObject(line);
  if (fields === undefined) return failure('it is no JSON object');
  try {
    if (fields['signature'] !== undefined) return success({ signature: signature(fields['signature'], 'signature') });
    if (fields['end'] !== undefined) return success({ end: exportEnd(fields['end'], 'end') });
    const record = exported(fields);
    if ((record.certificate === undefined) === (record.state === 'issued'))
      return failure('exactly an issued record has a certificate');
    // Records of early versions lack the facts of the request.
    const request = fields['signerName'] === undefined ? {} : { request: requestFacts(fields) };
    return success({ record: { ...record, ...request } });
  } catch (error) {
    return failure(error instanceof TypeError ? error.message : 'it cannot be read');
  }
}

const instant: Reader<Instant> = (value, name) => {
  const time = typeof value === 'string' ? Date.parse(value) : NaN;
  if (!Number.isSafeInteger(time)) throw unreadable(name);
  return time;
};

const der: Reader<Uint8Array> = (value, name) => {
  const bytes = Buffer.from(text(value, name), 'base64');
  if (bytes.toString('base64') !== value) throw unreadable(name);
  return new Uint8Array(bytes);
};

const exported = object<Omit<InventoryRecord, 'request'>>({
  uid: text,
  state: oneOf('intent', 'issued', 'expired'),
  caKeyId: text,
  serial: text,
  notAfter: instant,
  openedAt: instant,
  attempt: integer,
  lambdaRequestId: optional(text),
  identity: optional(text),
  kmsRequestId: optional(text),
  certificate: optional(der),
  tbs: optional(der),
});

const signature = object<SignatureRecord>({
  id: text,
  caKeyId: text,
  ca: text,
  action: text,
  tbsSha256: text,
  at: instant,
  kmsRequestId: optional(text),
});

const exportEnd = object<ExportEnd>({ records: integer, signatures: integer, from: instant, to: instant });

const requestFacts = object<RequestFacts>({
  signerName: text,
  requester: optional(text),
  groups: optional(listOf(text)),
  usages: optional(listOf(text)),
  expirationSeconds: optional(integer),
});

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
