/** One certificate of the inventory: a ledger record with the contents of its certificate. */
import { hash } from 'node:crypto';
import { bitString, sequence } from '../encoding/der-writer.ts';
import { emptySequence, readDer } from '../encoding/der-reader.ts';
import { nodeUserPrefix } from '../policy/in-tree-rules.ts';
import type { IssuingRecord, RequestFacts } from '../ports/certificate-ledger.ts';
import type { JsonObject } from '../encoding/json-object.ts';
import type { Instant } from '../ports/instant.ts';
import { decodeSubject, subjectText } from '../x509/distinguished-name.ts';
import { extensionType } from '../x509/model.ts';
import type { Subject, SubjectAltNames } from '../x509/model.ts';
import { certificateFacts } from '../x509/read-certificate.ts';
import type { CertificateFacts } from '../x509/read-certificate.ts';
import { decodeSubjectAltNames } from '../x509/subject-alt-names.ts';

/** Facts that the ledger did not keep are absent. The fields of RequestFacts are absent in records of early versions. */
export interface CertificateEntry extends Partial<RequestFacts> {
  /** Lower-case hex, two digits for each octet. */
  readonly serial: string;
  /** metadata.uid of the request. */
  readonly uid: string;
  /** `intent`: begun, and not signed as far as the ledger knows; `expired`: given up. Neither was ever handed out. */
  readonly state: IssuingRecord['state'];
  /** For people: `O=system:nodes, CN=system:node:n1`. */
  readonly subject: string;
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly sans: Omit<SubjectAltNames, 'unsupported'>;
  /** The node of a certificate whose common name is that of a node's user. */
  readonly nodeName?: string;
  /** The attested machine: sign read attest's approval of it. Absent without attestation, and in audit mode. */
  readonly identity?: string;
  /** `Signer.keyId` of the CA: the ARN of its KMS key. */
  readonly caKeyId: string;
  readonly notBefore: Instant;
  readonly notAfter: Instant;
  readonly openedAt: Instant;
  /** How many deliveries held the lease. */
  readonly attempt: number;
  /** SHA-256 of the certificate (DER), lower-case hex. Only when `issued`. */
  readonly fingerprintSha256?: string;
  /** SHA-256 of the SubjectPublicKeyInfo (DER), lower-case hex. */
  readonly publicKeySha256: string;
  readonly kmsRequestId?: string;
  readonly lambdaRequestId?: string;
}

/** What the inventory needs of a record: from the ledger, or from a line of an export. */
export type InventoryRecord = Omit<IssuingRecord, 'requestDigest' | 'leaseUntil' | 'tbs'> &
  Partial<Pick<IssuingRecord, 'tbs'>>;

/** Throws TypeError if the record holds no certificate that this program has built. */
export function certificateEntry(record: InventoryRecord): CertificateEntry {
  const { serial, uid, state, request, identity, caKeyId, notAfter, openedAt, attempt, certificate } = record;
  const { facts, subject, sans } = certificateContents(record);
  const { commonName, organizations } = subject;
  const { kmsRequestId, lambdaRequestId } = record;
  const { unsupported: _, ...names } = sans;
  return {
    serial,
    uid,
    state,
    subject: subjectText(subject),
    commonName,
    organizations,
    sans: names,
    ...(commonName.startsWith(nodeUserPrefix) ? { nodeName: commonName.slice(nodeUserPrefix.length) } : {}),
    ...request,
    ...(identity === undefined ? {} : { identity }),
    caKeyId,
    notBefore: facts.notBefore,
    notAfter,
    openedAt,
    attempt,
    ...(certificate === undefined ? {} : { fingerprintSha256: facts.fingerprintSha256 }),
    publicKeySha256: hash('sha256', facts.spki, 'hex'),
    ...(kmsRequestId === undefined ? {} : { kmsRequestId }),
    ...(lambdaRequestId === undefined ? {} : { lambdaRequestId }),
  };
}

/** The entry for programs: instants as RFC 3339 text. */
export function entryJson({ notBefore, notAfter, openedAt, ...entry }: CertificateEntry): JsonObject {
  const times = { notBefore, notAfter, openedAt };
  const texts = Object.entries(times).map(([name, instant]) => [name, new Date(instant).toISOString()]);
  return { ...entry, ...(Object.fromEntries(texts) as Record<keyof typeof times, string>) };
}

export interface CertificateContents {
  readonly facts: CertificateFacts;
  readonly subject: Subject;
  readonly sans: SubjectAltNames;
}

/** What the key signed, or was to sign. Throws TypeError if it cannot be read. */
export function certificateContents({ uid, tbs = emptySequence, certificate }: InventoryRecord): CertificateContents {
  try {
    // An intent has no signature yet.
    const facts = certificateFacts(certificate ?? sequence(tbs, emptySequence, bitString(new Uint8Array())));
    const name = readDer(facts.subjectName);
    const subject = name.ok ? decodeSubject(name.value) : undefined;
    const sans = decodeSubjectAltNames(facts.extensions.get(extensionType.subjectAltName)?.value ?? emptySequence);
    if (subject?.ok === true && sans.ok) return { facts, subject: subject.value, sans: sans.value };
  } catch (cause) {
    throw new TypeError(`the certificate in the record of ${uid} cannot be read`, { cause });
  }
  throw new TypeError(`the names in the record of ${uid} cannot be read`);
}
