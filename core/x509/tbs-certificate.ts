/**
 * Writes the to-be-signed part of a certificate (RFC 5280 §4.1) and its extensions, byte for byte as Go's
 * x509.CreateCertificate does. leaf-certificate.ts and ca-certificate.ts decide the contents.
 */
import { algorithmIdentifiers, extensionType } from './model.ts';
import { hash } from 'node:crypto';
import {
  bitString,
  explicit,
  implicit,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  time,
  booleanTrue,
} from '../encoding/der-writer.ts';
import { bitsOf, elementIn } from '../encoding/der-reader.ts';
import type { SignatureAlgorithm } from '../ports/signer.ts';
import type { Instant } from '../ports/instant.ts';

export interface TbsFields {
  /** Positive, big-endian, without a leading zero octet. */
  readonly serial: Uint8Array;
  readonly algorithm: SignatureAlgorithm;
  /** DER Names. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  /** Milliseconds are cut off, as in Go. */
  readonly notBefore: Instant;
  readonly notAfter: Instant;
  /** DER SubjectPublicKeyInfo. */
  readonly spki: Uint8Array;
  /** One DER Extension each. */
  readonly extensions: readonly Uint8Array[];
}

export function encodeTbs(fields: TbsFields): Uint8Array {
  const { serial, algorithm, issuer, subject, notBefore, notAfter, spki, extensions } = fields;
  if ((serial[0] ?? 0) === 0 || serial.length > 20)
    throw new RangeError('a serial number must have 1 to 20 octets, the first not 0');
  return sequence(
    version3,
    integer(serial),
    algorithmIdentifiers[algorithm],
    issuer,
    sequence(time(notBefore), time(notAfter)),
    subject,
    spki,
    explicit(3, sequence(...extensions)),
  );
}

const version3 = explicit(0, integer(2));

/** `value` is the content of the extension's OCTET STRING. */
export function encodeExtension(type: string, critical: boolean, value: Uint8Array): Uint8Array {
  const octets = octetString(value);
  return critical ? sequence(objectIdentifier(type), booleanTrue, octets) : sequence(objectIdentifier(type), octets);
}

/** Critical. `bits` are positions counted from the first bit; RFC 5280 §4.2.1.3. */
export function keyUsageExtension(bits: ReadonlySet<number>): Uint8Array {
  const highest = Math.max(...bits);
  // X.690 §11.2.2: a list of named bits ends with the last bit that is 1.
  const octets = new Uint8Array(Math.floor(highest / 8) + 1);
  for (const bit of bits) octets[bit >> 3] = (octets[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  return encodeExtension(extensionType.keyUsage, true, bitString(octets, 7 - (highest & 7)));
}

const keyCertSign = 5;
const crlSign = 6;
/** The keyUsage of CA certificates that Countersign makes or asks for. */
export const caUsage = keyUsageExtension(new Set([keyCertSign, crlSign]));

/** Critical; RFC 5280 §4.2.1.9. Without `ca` the sequence is empty, which means that the certificate is not a CA. */
export function basicConstraintsExtension(ca?: { readonly pathLength: number | undefined }): Uint8Array {
  const pathLength = ca?.pathLength === undefined ? [] : [integer(ca.pathLength)];
  return encodeExtension(
    extensionType.basicConstraints,
    true,
    sequence(...(ca === undefined ? [] : [booleanTrue]), ...pathLength),
  );
}

export function subjectKeyIdentifierExtension(spki: Uint8Array): Uint8Array {
  return encodeExtension(extensionType.subjectKeyIdentifier, false, octetString(keyIdentifier(spki)));
}

export function authorityKeyIdentifierExtension(keyId: Uint8Array): Uint8Array {
  return encodeExtension(extensionType.authorityKeyIdentifier, false, sequence(implicit(0, keyId)));
}

/** RFC 5280 §4.2.1.13: one distribution point with one URI. */
export function crlDistributionPointsExtension(url: string): Uint8Array {
  const uri = implicit(6, Buffer.from(url, 'latin1'));
  return encodeExtension(extensionType.crlDistributionPoints, false, sequence(sequence(explicit(0, explicit(0, uri)))));
}

/** RFC 7093 §2 method 1, as in Go: the first 160 bits of SHA-256 over the content of the key's BIT STRING. */
export function keyIdentifier(spki: Uint8Array): Uint8Array {
  const key = bitsOf(elementIn(spki)?.children[1]);
  if (key === undefined) throw new TypeError('not a SubjectPublicKeyInfo');
  return hash('sha256', key, 'buffer').subarray(0, 20);
}
