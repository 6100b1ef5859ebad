/**
 * The CA certificate of `countersign ca init`, self-signed or signed by another CA of the cluster. Its contents (RFC 5280 §4.2.1):
 *
 * - version 3; the subject has C, O, OU and CN; the issuer of a self-signed certificate is the same name
 * - keyUsage, critical: keyCertSign and cRLSign, no other bits
 * - basicConstraints, critical: cA TRUE with a path length, 0 by default: the CA signs leaves, not CAs
 * - subjectKeyIdentifier
 * - authorityKeyIdentifier: the issuer's subjectKeyIdentifier; a self-signed certificate may leave it out (§4.2.1.1) and does
 *
 * core/ca/issue-ca-certificate.ts has the TBS signed by a port, because the key may be in KMS.
 */
import { X509Certificate } from 'node:crypto';
import { certificateFacts, readCertificate } from './read-certificate.ts';
import { backdatingSeconds } from './validity.ts';
import type { SignatureAlgorithm } from '../ports/signer.ts';
import type { Instant } from '../ports/instant.ts';
import { encodeSubject } from './distinguished-name.ts';
import { extensionType } from './model.ts';
import {
  authorityKeyIdentifierExtension,
  basicConstraintsExtension,
  caUsage,
  encodeTbs,
  subjectKeyIdentifierExtension,
} from './tbs-certificate.ts';

/** The subject of a CA in countersign.yaml. */
export interface CaSubject {
  readonly commonName: string;
  readonly organization?: string;
  readonly organizationalUnit?: string;
  readonly country?: string;
}

export interface CaTemplate {
  readonly subject: CaSubject;
  /** DER SubjectPublicKeyInfo of the CA key. */
  readonly spki: Uint8Array;
  readonly algorithm: SignatureAlgorithm;
  /** See `serialFrom`. */
  readonly serial: Uint8Array;
  readonly notBefore: Instant;
  readonly notAfter: Instant;
  /** How many CAs may follow this one in a chain; `undefined` = any number. */
  readonly pathLength: number | undefined;
  /** DER certificate of the CA that signs it; absent: it is self-signed. */
  readonly issuer?: Uint8Array;
}

const keyCertSign = 5;

export function buildCaTbs(template: CaTemplate): Uint8Array {
  const { subject, spki, algorithm, serial, notBefore, notAfter, pathLength } = template;
  const name = encodeCaSubject(subject);
  const issuer = template.issuer === undefined ? undefined : certificateFacts(template.issuer);
  const issuerKeyId = issuer?.subjectKeyIdentifier;
  return encodeTbs({
    serial,
    algorithm,
    issuer: issuer?.subjectName ?? name,
    subject: name,
    notBefore,
    notAfter,
    spki,
    extensions: [
      caUsage,
      basicConstraintsExtension({ pathLength }),
      subjectKeyIdentifierExtension(spki),
      ...(issuerKeyId === undefined ? [] : [authorityKeyIdentifierExtension(issuerKeyId)]),
    ],
  });
}

/** Backdated like leaves, so that no leaf is valid before its CA. */
export function caValidity(now: Instant, seconds: number): { readonly notBefore: Instant; readonly notAfter: Instant } {
  const start = Math.floor(now / 1000);
  return { notBefore: (start - backdatingSeconds) * 1000, notAfter: (start + seconds) * 1000 };
}

/** The DER Name of a CA that countersign.yaml describes. */
export function encodeCaSubject({ commonName, organization, organizationalUnit, country }: CaSubject): Uint8Array {
  const values = {
    '2.5.4.6': country,
    '2.5.4.10': organization,
    '2.5.4.11': organizationalUnit,
    '2.5.4.3': commonName,
  };
  return encodeSubject({
    attributes: Object.entries(values).flatMap(([type, value]) => (value === undefined ? [] : [{ type, value }])),
  });
}

/**
 * Why this certificate must not be used as a CA with the key in `spki`; empty if it may. Called for every CA certificate
 * before its first use. Expiry is checked at each signature.
 */
export function checkCaCertificate(certificate: Uint8Array, spki: Uint8Array): string[] {
  const read = readCertificate(certificate);
  if (!read.ok) return [read.problem];
  const facts = read.value;
  const keyUsage = facts.extensions.get(extensionType.keyUsage)?.value;
  // DER of the BIT STRING: tag, length, unused bits, then the bits 0 to 7.
  const maySign = keyUsage === undefined || ((keyUsage[3] ?? 0) & (0x80 >> keyCertSign)) !== 0;
  const selfIssued = Buffer.compare(facts.issuerName, facts.subjectName) === 0;
  const parsed = new X509Certificate(certificate);
  const checks: readonly (readonly [holds: boolean, fault: string])[] = [
    [facts.isCa, 'it is not a CA (basicConstraints)'],
    [maySign, 'its key may not sign certificates (keyUsage)'],
    // It becomes the issuer of leaves, which must not be empty (RFC 5280 §4.1.2.6).
    [facts.subjectName.length > 2, 'it has no subject'],
    [Buffer.compare(facts.spki, spki) === 0, 'its key is not the CA key'],
    [!selfIssued || parsed.verify(parsed.publicKey), 'its own signature does not verify'],
  ];
  return checks.filter(([holds]) => !holds).map(([, fault]) => fault);
}
