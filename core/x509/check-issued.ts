/** Checks a finished certificate before it is recorded and returned. */
import { X509Certificate } from 'node:crypto';
import { certificateFacts } from './read-certificate.ts';
import type { CertificateFacts } from './read-certificate.ts';
import { issuerOf } from './leaf-certificate.ts';
import type { Authority, Issuer } from './leaf-certificate.ts';
import type { CertificateRequest } from './model.ts';
import { contentOf, elementIn, emptySequence } from '../encoding/der-reader.ts';
import { algorithmIdentifiers, extensionType } from './model.ts';
import { keyIdentifier } from './tbs-certificate.ts';

/**
 * The faults that our strict reader and OpenSSL find in the finished certificate. It is returned to the requester only if there
 * are no faults. `tbs` is the recorded TBS, `request` the request that the certificate answers.
 *
 * This finds a signer that uses another key or signs other bytes, a changed record, and mistakes in our own encoder. A returned
 * certificate must not be a CA, outlive its CA or contain a key without proof of possession.
 */
export function checkCertificate(
  der: Uint8Array,
  tbs: Uint8Array,
  authority: Authority,
  request: CertificateRequest,
): string[] {
  const issuer = issuerOf(authority);
  let facts: CertificateFacts;
  let certificate: X509Certificate;
  try {
    facts = certificateFacts(der);
    certificate = new X509Certificate(der);
  } catch {
    return ['it cannot be read back'];
  }
  return [
    ...checkSignature(facts, certificate, tbs, authority, issuer),
    ...checkFields(facts, issuer.facts),
    ...checkExtensions(facts, issuer.facts),
    ...faults([[same(facts.spki, request.publicKey.spki), 'its key is not that of the request']]),
  ];
}

function checkSignature(
  facts: CertificateFacts,
  certificate: X509Certificate,
  tbs: Uint8Array,
  { signer }: Authority,
  issuer: Issuer,
): string[] {
  const algorithm = algorithmIdentifiers[signer.algorithm];
  return faults([
    [same(facts.tbs, tbs), 'it is not what was recorded'],
    // RFC 5280 §4.1.1.2: the signed and the outer algorithm must be equal.
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

/** All extensions that a leaf may have, in the required order. */
const leafExtensions: readonly string[] = [
  extensionType.keyUsage,
  extensionType.extKeyUsage,
  extensionType.basicConstraints,
  extensionType.subjectKeyIdentifier,
  extensionType.authorityKeyIdentifier,
  extensionType.subjectAltName,
  extensionType.crlDistributionPoints,
];

function checkExtensions(facts: CertificateFacts, ca: CertificateFacts): string[] {
  const { extensions } = facts;
  const expected = leafExtensions.filter((type) => extensions.has(type));
  const constraints = extensions.get(extensionType.basicConstraints);
  const authorityKey = extensions.get(extensionType.authorityKeyIdentifier)?.value;
  const alternative = extensions.get(extensionType.subjectAltName);
  return faults([
    [[...extensions.keys()].join() === expected.join(), 'it has other extensions than a leaf, or in another order'],
    [constraints?.critical === true && same(constraints.value, emptySequence), 'it does not say that it is no CA'],
    [extensions.get(extensionType.keyUsage)?.critical !== false, 'its key usage is not critical'],
    [same(facts.subjectKeyIdentifier, keyIdentifier(facts.spki)), 'its subject key identifier is not that of its key'],
    [same(keyIdIn(authorityKey), ca.subjectKeyIdentifier), 'its authority key identifier is not that of the CA'],
    [
      alternative === undefined || alternative.critical === same(facts.subjectName, emptySequence),
      'the criticality of its alternative names does not fit its subject',
    ],
  ]);
}

/** AuthorityKeyIdentifier ::= SEQUENCE { [0] keyIdentifier }, without the other fields of RFC 5280 §4.2.1.1. */
function keyIdIn(value: Uint8Array | undefined): Uint8Array | undefined {
  const [keyId, ...rest] = elementIn(value)?.children ?? [];
  return keyId?.tag === 0x80 && rest.length === 0 ? contentOf(keyId) : undefined;
}

function faults(checks: readonly (readonly [holds: boolean, fault: string])[]): string[] {
  return checks.filter(([holds]) => !holds).map(([, fault]) => fault);
}

function same(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0;
}
