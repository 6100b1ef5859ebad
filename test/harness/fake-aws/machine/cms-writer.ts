/**
 * The CMS of an identity document as AWS itself writes it, which OpenSSL's differs from in small things: NULL parameters,
 * `sha256WithRSAEncryption` as the signature's algorithm, and CMSAlgorithmProtection (RFC 6211) among the signed attributes
 * (as in genuine documents). And what neither would write: any attributes, any algorithm.
 */
import { createHash, sign } from 'node:crypto';
import * as der from '../../x509/der-writer.ts';
import { regionCa, type RegionCa } from './region-ca.ts';

const cmsOid = {
  signedData: '1.2.840.113549.1.7.2',
  data: '1.2.840.113549.1.7.1',
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
  signingTime: '1.2.840.113549.1.9.5',
  algorithmProtection: '1.2.840.113549.1.9.52',
  sha256: '2.16.840.1.101.3.4.2.1',
  rsaEncryption: '1.2.840.113549.1.1.1',
  sha256WithRsa: '1.2.840.113549.1.1.11',
} as const;

export interface AwsCmsOptions {
  /** Absent = 2026-01-01. */
  readonly signingTime?: Date;
  /** Changes the signed attributes, each a whole Attribute, before they are signed. */
  readonly attributes?: (usual: readonly Buffer[]) => readonly Buffer[];
  /** In the order given, and not in DER's. */
  readonly unsorted?: boolean;
  readonly signatureAlgorithm?: string;
  readonly digestAlgorithm?: string;
  /** Octets of the serial number that names the signer, when it is not the authority's. */
  readonly serial?: Uint8Array;
  /** The content in more than one piece. */
  readonly pieces?: number;
}

function attribute(type: string, ...values: readonly Uint8Array[]): Buffer {
  return der.sequence(der.oid(type), der.set(...values));
}

export function signAsAws(
  document: string | Uint8Array,
  authority: string | RegionCa,
  options: AwsCmsOptions = {},
): Buffer {
  const ca = typeof authority === 'string' ? regionCa(authority) : authority;
  const content = Buffer.from(document);
  const digest = algorithm(options.digestAlgorithm ?? cmsOid.sha256);
  const signature = algorithm(options.signatureAlgorithm ?? cmsOid.sha256WithRsa);
  const usual = [
    attribute(cmsOid.contentType, der.oid(cmsOid.data)),
    attribute(cmsOid.signingTime, utcTime(options.signingTime ?? new Date('2026-01-01T00:00:00Z'))),
    // The signature's algorithm is [1] IMPLICIT, so its tag takes the place of SEQUENCE's.
    attribute(cmsOid.algorithmProtection, der.sequence(digest, retag(signature, 0xa1))),
    attribute(cmsOid.messageDigest, der.octets(createHash('sha256').update(content).digest())),
  ];
  const attributes = options.attributes?.(usual) ?? usual;
  const signed = options.unsorted === true ? der.set(...attributes) : der.setOf(...attributes);
  const serial = options.serial ?? Buffer.from(ca.serialNumber, 'hex');
  const signerInfo = der.sequence(
    der.integer(1),
    der.sequence(issuerOf(ca), der.tlv(0x02, serial)),
    digest,
    retag(signed, 0xa0),
    signature,
    der.octets(sign('sha256', signed, ca.keyPem)),
  );
  const size = Math.max(1, Math.ceil(content.length / (options.pieces ?? 1)));
  const pieces: Buffer[] = [];
  for (let start = 0; start < content.length; start += size)
    pieces.push(der.octets(content.subarray(start, start + size)));
  return indefinite(
    0x30,
    der.oid(cmsOid.signedData),
    indefinite(
      0xa0,
      indefinite(
        0x30,
        der.integer(1),
        der.set(digest),
        indefinite(0x30, der.oid(cmsOid.data), indefinite(0xa0, indefinite(0x24, ...pieces))),
        der.set(signerInfo),
      ),
    ),
  );
}

function algorithm(type: string): Buffer {
  return der.sequence(der.oid(type), der.nothing());
}

function retag(element: Buffer, tag: number): Buffer {
  return Buffer.concat([Buffer.of(tag), element.subarray(1)]);
}

/** BER of indefinite length: ended by two zeros. */
function indefinite(tag: number, ...content: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.of(tag, 0x80), ...content, Buffer.of(0, 0)]);
}

function utcTime(time: Date): Buffer {
  const text = time
    .toISOString()
    .replace(/[-:T]|\.\d+/g, '')
    .slice(2);
  return der.tlv(0x17, Buffer.from(text, 'latin1'));
}

/** The name exactly as in the certificate: behind version, serial number and algorithm (RFC 5280 §4.1). */
function issuerOf({ certificateDer }: RegionCa): Buffer {
  const [tbs = Buffer.alloc(0)] = elementsIn(certificateDer);
  const [version, , , issuer] = elementsIn(tbs);
  if (version?.[0] !== 0xa0 || issuer === undefined) throw new Error('the certificate is not of version 3');
  return issuer;
}

/** The elements inside a constructed one; certificates are DER of at most 64 KiB. */
function elementsIn(outer: Buffer): readonly Buffer[] {
  const found: Buffer[] = [];
  const end = sizeAt(outer, 0);
  for (let at = headerAt(outer, 0); at < end; at += sizeAt(outer, at))
    found.push(outer.subarray(at, at + sizeAt(outer, at)));
  return found;
}

function headerAt(bytes: Buffer, at: number): number {
  const first = bytes[at + 1] ?? 0;
  return first < 0x80 ? 2 : 2 + (first & 0x7f);
}

function sizeAt(bytes: Buffer, at: number): number {
  const header = headerAt(bytes, at);
  return header + (header === 2 ? (bytes[at + 1] ?? 0) : bytes.readUIntBE(at + 2, header - 2));
}
