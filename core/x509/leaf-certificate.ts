/**
 * Builds the leaf certificate. check-issued.ts checks the result before it is returned.
 *
 * The contents are those of the in-tree signer (PermissiveSigningPolicy over Go's x509.CreateCertificate), so that our
 * certificate differs from kube-controller-manager's only in serial, time, issuer, signature and subjectKeyIdentifier:
 *
 * - version 3; the given serial; issuer: the bytes of the CA's subject
 * - subject rebuilt from the request (distinguished-name.ts); the bytes of the request's SubjectPublicKeyInfo
 * - only these extensions, in this order; of the request's extensions only SAN is used:
 *   - keyUsage, critical, if a usage has a bit
 *   - extKeyUsage, if a usage has one, in the order of the usage table
 *   - basicConstraints, critical, empty: not a CA
 *   - subjectKeyIdentifier, which kube-controller-manager omits (RFC 5280 §4.2.1.2 SHOULD), where Go would put it
 *   - authorityKeyIdentifier: the CA's subjectKeyIdentifier
 *   - subjectAltName, if the request has names; critical if the subject is empty
 *   - cRLDistributionPoints, if the CA's configuration has a URL, where Go would put it
 */
import { X509Certificate } from 'node:crypto';
import { certificateFacts } from './read-certificate.ts';
import type { CertificateFacts } from './read-certificate.ts';
import type { CertificateRequest } from './model.ts';
import { emptySequence } from '../encoding/der-reader.ts';
import { bitString, objectIdentifier, sequence } from '../encoding/der-writer.ts';
import type { SignatureAlgorithm, Signer } from '../ports/signer.ts';
import type { Instant } from '../ports/instant.ts';
import { encodeSubjectAltNames } from './subject-alt-names.ts';
import { encodeSubject } from './distinguished-name.ts';
import { algorithmIdentifiers, extensionType } from './model.ts';
import {
  authorityKeyIdentifierExtension,
  basicConstraintsExtension,
  crlDistributionPointsExtension,
  encodeExtension,
  encodeTbs,
  keyUsageExtension,
  subjectKeyIdentifierExtension,
} from './tbs-certificate.ts';
import { isKnownUsage, usageTable } from './key-usages.ts';
import type { UsageMeaning } from './key-usages.ts';

/** A CA with its key. */
export interface Authority {
  /** Its name in countersign.yaml. */
  readonly name: string;
  /** DER. */
  readonly certificate: Uint8Array;
  /** DER: the chain after the leaf, in its order, without the root; empty for a self-signed CA. */
  readonly intermediates: readonly Uint8Array[];
  /** DER: the root above it; absent: it is self-signed. */
  readonly root?: Uint8Array;
  readonly signer: Signer;
}

/** All contents of a leaf certificate. */
export interface LeafTemplate {
  readonly request: CertificateRequest;
  readonly usages: readonly string[];
  /** 1–20 octets, positive (RFC 5280 §4.1.2.2). */
  readonly serial: Uint8Array;
  readonly notBefore: Instant;
  readonly notAfter: Instant;
  /** URL of the CA's CRL, in printable ASCII. */
  readonly crlDistributionPoint?: string;
}

/** Deterministic. Throws for a usage outside the table, which every profile refuses. */
export function buildTbs(
  { request, usages, serial, notBefore, notAfter, crlDistributionPoint }: LeafTemplate,
  authority: Authority,
): Uint8Array {
  const { facts, authorityKeyIdentifier } = issuerOf(authority);
  const subject = encodeSubject(request.subject);
  const names = encodeSubjectAltNames(request.sans);
  // RFC 5280 §4.2.1.6: without a subject, subjectAltName is critical.
  const subjectIsEmpty = subject.length === emptySequence.length;
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
      notCa,
      subjectKeyIdentifierExtension(request.publicKey.spki),
      ...(authorityKeyIdentifier === undefined ? [] : [authorityKeyIdentifier]),
      ...(names === undefined ? [] : [encodeExtension(extensionType.subjectAltName, subjectIsEmpty, names)]),
      ...(crlDistributionPoint === undefined ? [] : [crlDistributionPointsExtension(crlDistributionPoint)]),
    ],
  });
}

/** Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue }, in DER. */
export function assembleCertificate(tbs: Uint8Array, signature: Uint8Array, algorithm: SignatureAlgorithm): Uint8Array {
  return sequence(tbs, algorithmIdentifiers[algorithm], bitString(signature));
}

const notCa = basicConstraintsExtension();

function usageExtensions(usages: readonly string[]): readonly Uint8Array[] {
  const unknown = usages.filter((usage) => !isKnownUsage(usage));
  if (unknown.length > 0) throw new RangeError(`${unknown.length} usages are not in the usage table`);
  const extensions: Uint8Array[] = [];
  const bits = new Set<number>();
  const purposes = new Set<string>();
  // extKeyUsage is in table order.
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

export interface Issuer {
  readonly facts: CertificateFacts;
  readonly certificate: X509Certificate;
  /** The extension in its leaves; absent if the CA has no subjectKeyIdentifier, as in Go. */
  readonly authorityKeyIdentifier: Uint8Array | undefined;
}

/** A cache: each CA certificate is parsed once. */
const issuers = new WeakMap<Uint8Array, Issuer>();

export function issuerOf({ certificate }: Authority): Issuer {
  const known = issuers.get(certificate);
  if (known !== undefined) return known;
  const facts = certificateFacts(certificate);
  const { subjectKeyIdentifier: keyId } = facts;
  const authorityKeyIdentifier = keyId === undefined ? undefined : authorityKeyIdentifierExtension(keyId);
  const issuer = { facts, certificate: new X509Certificate(certificate), authorityKeyIdentifier };
  issuers.set(certificate, issuer);
  return issuer;
}
