/**
 * Writes the to-be-signed part of a certificate (RFC 5280 §4.1) and the extensions our two recipes use, byte for byte
 * as Go's x509.CreateCertificate does. What a certificate says is decided by the recipes: certificate.ts for leaves,
 * ca-certificate.ts for CAs.
 */
import { createHash } from 'node:crypto';
import * as asn1js from 'asn1js';
import { bitsOf, contentOf, readDer } from './der.ts';
import type { DerElement } from './der.ts';
import type { Instant, SignatureAlgorithm } from './ports.ts';

export interface TbsFields {
  /** Positive, big-endian, without a leading zero octet. */
  readonly serial: Uint8Array;
  readonly algorithm: SignatureAlgorithm;
  /** DER Names. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  /** Fractions of a second are cut off, as Go does. */
  readonly notBefore: Instant;
  readonly notAfter: Instant;
  /** DER SubjectPublicKeyInfo. */
  readonly spki: Uint8Array;
  readonly extensions: readonly asn1js.Sequence[];
}

export function encodeTbs(fields: TbsFields): Uint8Array {
  const { serial, algorithm, issuer, subject, notBefore, notAfter, spki, extensions } = fields;
  const tbs = new asn1js.Sequence({
    value: [
      explicit(0, new asn1js.Integer({ value: 2 })), // v3
      encodeSerial(serial),
      verbatim(algorithmIdentifier(algorithm)),
      verbatim(issuer),
      new asn1js.Sequence({ value: [encodeTime(notBefore), encodeTime(notAfter)] }),
      verbatim(subject),
      verbatim(spki),
      explicit(3, new asn1js.Sequence({ value: [...extensions] })),
    ],
  });
  return new Uint8Array(tbs.toBER());
}

/**
 * A SEQUENCE that is DER already, taken over byte by byte: a key or a name that is parsed and written anew might not
 * come out as the bytes that were checked.
 */
export function verbatim(der: Uint8Array): asn1js.Primitive {
  const element = readDerSequence(der);
  // asn1js has no block of ready content with the constructed bit, so a primitive one is given the bit.
  const block = new asn1js.Primitive({ idBlock: { tagClass: 1, tagNumber: 16 }, valueHex: contentOf(element) });
  block.idBlock.isConstructed = true;
  return block;
}

function readDerSequence(der: Uint8Array): DerElement {
  const element = readDer(der);
  if ('problem' in element) throw new TypeError(`not DER: ${element.problem}`);
  return element;
}

function explicit(tagNumber: number, content: asn1js.BaseBlock): asn1js.Constructed {
  return new asn1js.Constructed({ idBlock: { tagClass: 3, tagNumber }, value: [content] });
}

function encodeSerial(serial: Uint8Array): asn1js.Integer {
  const first = serial[0] ?? 0;
  if (first === 0 || serial.length > 20) throw new RangeError('a serial number has 1 to 20 octets, the first not 0');
  // The sign bit is not part of the number (X.690 §8.3.3).
  return new asn1js.Integer({ valueHex: first < 0x80 ? serial : Buffer.concat([Buffer.of(0), serial]) });
}

/** RFC 5280 §4.1.2.5: UTCTime through 2049, GeneralizedTime from 2050. */
function encodeTime(instant: Instant): asn1js.UTCTime {
  const valueDate = new Date(Math.floor(instant / 1000) * 1000);
  return valueDate.getUTCFullYear() < 2050
    ? new asn1js.UTCTime({ valueDate })
    : new asn1js.GeneralizedTime({ valueDate });
}

/** `value` as it stands inside the extension's OCTET STRING. */
export function encodeExtension(type: string, critical: boolean, value: asn1js.BaseBlock): asn1js.Sequence {
  return new asn1js.Sequence({
    value: [
      new asn1js.ObjectIdentifier({ value: type }),
      ...(critical ? [new asn1js.Boolean({ value: true })] : []),
      new asn1js.OctetString({ valueHex: value.toBER() }),
    ],
  });
}

export const extensionType = {
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
} as const;

/** Critical. `bits` are positions counted from the first bit; RFC 5280 §4.2.1.3. */
export function keyUsageExtension(bits: ReadonlySet<number>): asn1js.Sequence {
  const highest = Math.max(...bits);
  // X.690 §11.2.2: a list of named bits ends with its last one bit.
  const valueHex = new Uint8Array(Math.floor(highest / 8) + 1);
  for (const bit of bits) valueHex[bit >> 3] = (valueHex[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  const value = new asn1js.BitString({ valueHex, unusedBits: 7 - (highest & 7) });
  return encodeExtension(extensionType.keyUsage, true, value);
}

/** Critical; RFC 5280 §4.2.1.9. For a leaf the empty sequence: `cA` is FALSE by default. */
export function basicConstraintsExtension(ca?: { readonly pathLength: number | undefined }): asn1js.Sequence {
  const value: asn1js.BaseBlock[] = [];
  if (ca !== undefined) value.push(new asn1js.Boolean({ value: true }));
  if (ca?.pathLength !== undefined) value.push(new asn1js.Integer({ value: ca.pathLength }));
  return encodeExtension(extensionType.basicConstraints, true, new asn1js.Sequence({ value }));
}

export function subjectKeyIdentifierExtension(spki: Uint8Array): asn1js.Sequence {
  const value = new asn1js.OctetString({ valueHex: keyIdentifier(spki) });
  return encodeExtension(extensionType.subjectKeyIdentifier, false, value);
}

export function authorityKeyIdentifierExtension(keyId: Uint8Array): asn1js.Sequence {
  const field = new asn1js.Primitive({ idBlock: { tagClass: 3, tagNumber: 0 }, valueHex: keyId });
  return encodeExtension(extensionType.authorityKeyIdentifier, false, new asn1js.Sequence({ value: [field] }));
}

/** RFC 7093 §2 method 1, as Go: the leftmost 160 bits of SHA-256 over the key's BIT STRING, its header left out. */
export function keyIdentifier(spki: Uint8Array): Uint8Array {
  const key = bitsOf(readDerSequence(spki).children[1]);
  if (key === undefined) throw new TypeError('not a SubjectPublicKeyInfo');
  return createHash('sha256').update(key).digest().subarray(0, 20);
}

const digestOids = {
  SHA_256: '2.16.840.1.101.3.4.2.1',
  SHA_384: '2.16.840.1.101.3.4.2.2',
  SHA_512: '2.16.840.1.101.3.4.2.3',
} as const;

/** DER AlgorithmIdentifier: ECDSA without parameters (RFC 5758 §3.2), RSA with NULL, PSS with all of them (RFC 4055). */
const algorithmIdentifiers: Readonly<Record<SignatureAlgorithm, Uint8Array>> = {
  ECDSA_SHA_256: encodeIdentifier('1.2.840.10045.4.3.2'),
  ECDSA_SHA_384: encodeIdentifier('1.2.840.10045.4.3.3'),
  ECDSA_SHA_512: encodeIdentifier('1.2.840.10045.4.3.4'),
  RSASSA_PKCS1_V1_5_SHA_256: encodeIdentifier('1.2.840.113549.1.1.11', new asn1js.Null()),
  RSASSA_PKCS1_V1_5_SHA_384: encodeIdentifier('1.2.840.113549.1.1.12', new asn1js.Null()),
  RSASSA_PKCS1_V1_5_SHA_512: encodeIdentifier('1.2.840.113549.1.1.13', new asn1js.Null()),
  RSASSA_PSS_SHA_256: encodePssIdentifier(digestOids.SHA_256, 32),
  RSASSA_PSS_SHA_384: encodePssIdentifier(digestOids.SHA_384, 48),
  RSASSA_PSS_SHA_512: encodePssIdentifier(digestOids.SHA_512, 64),
};

export function algorithmIdentifier(algorithm: SignatureAlgorithm): Uint8Array {
  return algorithmIdentifiers[algorithm];
}

function encodeIdentifier(oid: string, parameters?: asn1js.BaseBlock): Uint8Array {
  return new Uint8Array(identifier(oid, parameters).toBER());
}

function identifier(oid: string, parameters?: asn1js.BaseBlock): asn1js.Sequence {
  const type = new asn1js.ObjectIdentifier({ value: oid });
  return new asn1js.Sequence({ value: parameters === undefined ? [type] : [type, parameters] });
}

function encodePssIdentifier(digestOid: string, saltLength: number): Uint8Array {
  const hash = (): asn1js.Sequence => identifier(digestOid, new asn1js.Null());
  const parameters = new asn1js.Sequence({
    value: [
      explicit(0, hash()),
      explicit(1, identifier('1.2.840.113549.1.1.8', hash())), // MGF1
      explicit(2, new asn1js.Integer({ value: saltLength })),
    ],
  });
  return encodeIdentifier('1.2.840.113549.1.1.10', parameters);
}
