/**
 * The leaf certificate: its recipe, and the check of what was made before anyone sees it.
 *
 * The recipe is the in-tree signer's (PermissiveSigningPolicy over Go's x509.CreateCertificate), so that a certificate
 * of ours equals one of kube-controller-manager in every byte but serial, time, issuer, signature and one addition:
 *
 * - version 3; serial as given; issuer: the CA's subject, its very bytes
 * - subject rebuilt from the request (subject.ts); the key's SubjectPublicKeyInfo, its very bytes
 * - extensions, in this order and no others; what the request asked for besides SAN is dropped:
 *   - keyUsage, critical, when a usage gives a bit
 *   - extKeyUsage, when a usage gives one, in the order of the usage table
 *   - basicConstraints, critical, empty: not a CA
 *   - subjectKeyIdentifier: the addition (RFC 5280 §4.2.1.2 SHOULD), where Go would put it
 *   - authorityKeyIdentifier: the CA's subjectKeyIdentifier
 *   - subjectAltName when the request has names, critical when the subject is empty
 */
import { X509Certificate } from 'node:crypto';
import * as asn1js from 'asn1js';
import { certificateFacts } from './certificate-facts.ts';
import type { CertificateFacts } from './certificate-facts.ts';
import type { CertificateRequest } from './csr.ts';
import { encode, objectIdentifier, sequence } from './der-encoder.ts';
import type { Instant, SignatureAlgorithm, Signer } from './ports.ts';
import { encodeSubjectAltNames } from './subject-alt-names.ts';
import { encodeSubject } from './subject.ts';
import {
  algorithmIdentifier,
  authorityKeyIdentifierExtension,
  basicConstraintsExtension,
  encodeExtension,
  encodeTbs,
  extensionType,
  keyIdentifier,
  keyUsageExtension,
  subjectKeyIdentifierExtension,
} from './tbs-certificate.ts';
import { isKnownUsage, usageTable } from './usages.ts';
import type { UsageMeaning } from './usages.ts';

export { certificateFacts } from './certificate-facts.ts';
export { toPem } from './pem.ts';

/** A CA that issues: its certificate, the certificates between it and the root (never the root), and its key. */
export interface Authority {
  /** Its name in countersign.yaml. */
  readonly name: string;
  /** DER. */
  readonly certificate: Uint8Array;
  /** DER, in the order they follow the leaf in `status.certificate`; empty for a self-signed CA. */
  readonly intermediates: readonly Uint8Array[];
  readonly signer: Signer;
}

/** Everything a leaf certificate says, decided before a byte of it is made. */
export interface LeafTemplate {
  readonly request: CertificateRequest;
  readonly usages: readonly string[];
  /** 1–20 octets, positive (RFC 5280 §4.1.2.2). */
  readonly serial: Uint8Array;
  readonly notBefore: Instant;
  readonly notAfter: Instant;
}

/** The same template and authority give the same bytes. Throws for a usage outside the table: a profile let it through. */
export function buildTbs(
  { request, usages, serial, notBefore, notAfter }: LeafTemplate,
  authority: Authority,
): Uint8Array {
  const { facts, pointer } = issuerOf(authority);
  const subject = encodeSubject(request.subject);
  return encodeTbs({
    serial,
    algorithm: authority.signer.algorithm,
    issuer: facts.subjectName,
    subject,
    notBefore,
    notAfter,
    spki: request.publicKey.spki,
    extensions: [
      ...usageExtensions(usages),
      noCa,
      subjectKeyIdentifierExtension(request.publicKey.spki),
      ...(pointer === undefined ? [] : [pointer]),
      ...subjectAltNameExtensions(request, subject.length === emptySequence),
    ],
  });
}

/** Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue }, in DER. */
export function assembleCertificate(tbs: Uint8Array, signature: Uint8Array, algorithm: SignatureAlgorithm): Uint8Array {
  const signatureValue = encode(new asn1js.BitString({ valueHex: signature }));
  return sequence(tbs, algorithmIdentifier(algorithm), signatureValue);
}

/** Octets of the DER of a SEQUENCE of nothing: the Name of nobody. */
const emptySequence = 2;

/** Every leaf's. */
const noCa = basicConstraintsExtension();

function usageExtensions(usages: readonly string[]): readonly Uint8Array[] {
  const unknown = usages.filter((usage) => !isKnownUsage(usage));
  if (unknown.length > 0) throw new RangeError(`${unknown.length} usages are not in the usage table`);
  const extensions: Uint8Array[] = [];
  const bits = new Set<number>();
  const purposes = new Set<string>();
  // In table order, whatever the order asked for: the certificate's order of extKeyUsage.
  for (const [usage, meaning] of Object.entries<UsageMeaning>(usageTable)) {
    if (!usages.includes(usage)) continue;
    if ('keyUsageBit' in meaning) bits.add(meaning.keyUsageBit);
    else purposes.add(meaning.extKeyUsage);
  }
  if (bits.size > 0) extensions.push(keyUsageExtension(bits));
  if (purposes.size > 0) {
    const value = sequence(...[...purposes].map((oid) => objectIdentifier(oid)));
    extensions.push(encodeExtension(extensionType.extKeyUsage, false, value));
  }
  return extensions;
}

/** RFC 5280 §4.2.1.6: critical when the subject says nothing. */
function subjectAltNameExtensions({ sans }: CertificateRequest, subjectIsEmpty: boolean): readonly Uint8Array[] {
  const names = encodeSubjectAltNames(sans);
  return names === undefined ? [] : [encodeExtension(extensionType.subjectAltName, subjectIsEmpty, names)];
}

interface Issuer {
  readonly facts: CertificateFacts;
  readonly certificate: X509Certificate;
  /** The authorityKeyIdentifier of its leaves. A CA made without an identifier gives none to point to, as in Go. */
  readonly pointer: Uint8Array | undefined;
}

/** Read once per CA certificate held in memory. */
const issuers = new WeakMap<Uint8Array, Issuer>();

function issuerOf({ certificate }: Authority): Issuer {
  const known = issuers.get(certificate) ?? readIssuer(certificate);
  issuers.set(certificate, known);
  return known;
}

function readIssuer(certificate: Uint8Array): Issuer {
  const facts = certificateFacts(certificate);
  const { subjectKeyIdentifier: keyId } = facts;
  const pointer = keyId === undefined ? undefined : authorityKeyIdentifierExtension(keyId);
  return { facts, certificate: new X509Certificate(certificate), pointer };
}

/**
 * Would we accept it? Looks at the finished certificate as a stranger would, through our strict reader and through
 * OpenSSL, and lists what is wrong; nothing is handed out unless the list is empty. `tbs` is what was recorded.
 *
 * This catches a signer that signs with another key or signs something else, a record that was changed, and mistakes
 * in our own encoder: whatever they are, no certificate may leave that names a CA, outlives its CA or holds a key that
 * nobody proved. `request`, where it is at hand, is what the certificate must answer.
 */
export function checkCertificate(
  der: Uint8Array,
  tbs: Uint8Array,
  authority: Authority,
  request?: CertificateRequest,
): string[] {
  const issuer = issuerOf(authority);
  const facts = readable(() => certificateFacts(der));
  const certificate = readable(() => new X509Certificate(der));
  if (facts === undefined || certificate === undefined) return ['it cannot be read back'];
  return [
    ...checkSignature(facts, certificate, tbs, authority, issuer),
    ...checkFields(facts, issuer.facts),
    ...checkExtensions(facts, issuer.facts),
    ...(request === undefined ? [] : checkAnswers(facts, request)),
  ];
}

function readable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function checkSignature(
  facts: CertificateFacts,
  certificate: X509Certificate,
  tbs: Uint8Array,
  { signer }: Authority,
  issuer: Issuer,
): string[] {
  const algorithm = algorithmIdentifier(signer.algorithm);
  return faults([
    [same(facts.tbs, tbs), 'it is not what was recorded'],
    // RFC 5280 §4.1.1.2: the two must agree; only one of them is signed.
    [same(facts.signedAlgorithm, algorithm), 'its signature algorithm is not that of the CA key'],
    [same(facts.outerAlgorithm, algorithm), 'its two signature algorithms differ'],
    [certificate.checkIssued(issuer.certificate), 'its issuer is not the CA'],
    [certificate.verify(issuer.certificate.publicKey), 'its signature is not made with the key of the CA'],
  ]);
}

function checkFields(facts: CertificateFacts, ca: CertificateFacts): string[] {
  const [first = 0x80] = facts.serialOctets;
  return faults([
    [same(facts.issuerName, ca.subjectName), 'its issuer is not the subject of the CA'],
    // RFC 5280 §4.1.2.2.
    [first < 0x80 && Number.parseInt(facts.serial || '0', 16) > 0, 'its serial number is not positive'],
    [facts.serialOctets.length <= 20, 'its serial number has more than 20 octets'],
    [facts.notBefore < facts.notAfter, 'it is never valid'],
    [facts.notAfter <= ca.notAfter && facts.notAfter > ca.notBefore, 'it is valid when its CA is not'],
  ]);
}

/** In the order in which they may stand. */
const leafExtensions: readonly string[] = [
  extensionType.keyUsage,
  extensionType.extKeyUsage,
  extensionType.basicConstraints,
  extensionType.subjectKeyIdentifier,
  extensionType.authorityKeyIdentifier,
  extensionType.subjectAltName,
];

const notCa = Uint8Array.of(0x30, 0x00);

function checkExtensions(facts: CertificateFacts, ca: CertificateFacts): string[] {
  const { extensions } = facts;
  const expected = leafExtensions.filter((type) => extensions.has(type));
  const constraints = extensions.get(extensionType.basicConstraints);
  const authorityKey = extensions.get(extensionType.authorityKeyIdentifier)?.value;
  const alternative = extensions.get(extensionType.subjectAltName);
  // SEQUENCE { [0] keyid }, as an extension of the CA's identifier is written.
  const pointer =
    ca.subjectKeyIdentifier &&
    Buffer.from([
      0x30,
      ca.subjectKeyIdentifier.length + 2,
      0x80,
      ca.subjectKeyIdentifier.length,
      ...ca.subjectKeyIdentifier,
    ]);
  return faults([
    [[...extensions.keys()].join() === expected.join(), 'it has other extensions than a leaf, or in another order'],
    [constraints?.critical === true && same(constraints.value, notCa), 'it does not say that it is no CA'],
    [extensions.get(extensionType.keyUsage)?.critical !== false, 'its key usage is not critical'],
    [same(facts.subjectKeyIdentifier, keyIdentifier(facts.spki)), 'its subject key identifier is not that of its key'],
    [same(authorityKey, pointer), 'its authority key identifier is not that of the CA'],
    [
      alternative === undefined || alternative.critical === (facts.subjectName.length === emptySequence),
      'the criticality of its alternative names does not fit its subject',
    ],
    [alternative !== undefined || facts.subjectName.length > emptySequence, 'it names nobody'],
  ]);
}

function checkAnswers(facts: CertificateFacts, request: CertificateRequest): string[] {
  return faults([[same(facts.spki, request.publicKey.spki), 'its key is not that of the request']]);
}

function faults(checks: readonly (readonly [holds: boolean, fault: string])[]): string[] {
  return checks.filter(([holds]) => !holds).map(([, fault]) => fault);
}

function same(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0;
}
