/**
 * Writes CMS SignedData as AWS regions do (BER of indefinite length, constructed OCTET STRING), and everything near it
 * that an attacker could write or have signed. Held to OpenSSL by test/suites/oracle/openssl-cms: what the two make must be read
 * alike.
 */
import { constants, createHash, createPublicKey, createSign, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import * as der from '../../harness/x509/der-writer.ts';
import type { Bytes } from '../../harness/x509/der-writer.ts';

export interface RegionKey {
  readonly key: KeyObject;
  readonly serial: Bytes;
  readonly certificate: Buffer;
}

export const oids = {
  data: '1.2.840.113549.1.7.1',
  signedData: '1.2.840.113549.1.7.2',
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
  signingTime: '1.2.840.113549.1.9.5',
  timestampInfo: '1.2.840.113549.1.9.16.1.4',
  sha1: '1.3.14.3.2.26',
  sha256: '2.16.840.1.101.3.4.2.1',
  sha384: '2.16.840.1.101.3.4.2.2',
  rsa: '1.2.840.113549.1.1.1',
  sha256WithRsa: '1.2.840.113549.1.1.11',
  rsaPss: '1.2.840.113549.1.1.10',
} as const;

/** As of all of AWS's regions. */
const issuer = der.sequence(
  ...[
    ['2.5.4.6', 'US'],
    ['2.5.4.8', 'Washington State'],
    ['2.5.4.7', 'Seattle'],
    ['2.5.4.10', 'Amazon Web Services LLC'],
  ].map(([type = '', value = '']) => der.set(der.sequence(der.oid(type), der.printable(value)))),
);

const algorithm = (oid: string): Buffer => der.sequence(der.oid(oid), der.nothing());

export function createRegionKey({
  serial = 0xa0febfa2n,
  bits = 2048,
  kind = 'rsa',
  notAfter = '21990101000000Z',
}: {
  readonly serial?: bigint;
  readonly bits?: number;
  readonly kind?: 'rsa' | 'rsa-pss' | 'ec';
  readonly notAfter?: string;
} = {}): RegionKey {
  const privateKey = newKey(kind, bits);
  const generalized = (text: string): Buffer => der.tlv(0x18, Buffer.from(text, 'latin1'));
  const tbs = der.sequence(
    der.constructed(0, der.integer(2)),
    der.integer(serial),
    algorithm(oids.sha256WithRsa),
    issuer,
    der.sequence(generalized('20150101000000Z'), generalized(notAfter)),
    issuer,
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
  );
  const signature = createSign('sha256').update(tbs).sign(privateKey);
  const certificate = der.sequence(tbs, algorithm(oids.sha256WithRsa), der.bits(signature));
  return { key: privateKey, serial: der.integer(serial), certificate };
}

function newKey(kind: 'rsa' | 'rsa-pss' | 'ec', modulusLength: number): KeyObject {
  switch (kind) {
    case 'rsa':
      return generateKeyPairSync('rsa', { modulusLength }).privateKey;
    case 'rsa-pss':
      return generateKeyPairSync('rsa-pss', { modulusLength }).privateKey;
    case 'ec':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  }
}

export interface SignerOptions {
  readonly contentType?: string;
  readonly digestAlgorithm?: string;
  readonly signatureAlgorithm?: string;
  readonly sid?: Bytes;
  /** `undefined` = signed over the content itself; a function gets the usual ones. */
  readonly attributes?: ((usual: readonly Buffer[]) => readonly Bytes[]) | null;
  /** What stands in the message under [0], where that is not what was signed. */
  readonly attributesSent?: (encoded: Buffer) => Bytes;
  readonly padding?: 'pkcs1' | 'pss';
  /** Instead of the OCTET STRING with the signature. */
  readonly signature?: (octets: Buffer) => Bytes;
  /** Whose signature it is, when not the key's whose serial number it bears. */
  readonly signedBy?: KeyObject;
  /** What messageDigest says. */
  readonly digest?: Bytes;
}

export const attribute = (type: string, ...values: readonly Bytes[]): Buffer =>
  der.sequence(der.oid(type), der.set(...values));

export function signerInfo(content: Bytes, { key, serial }: RegionKey, options: SignerOptions = {}): Buffer {
  const usual = [
    attribute(oids.contentType, der.oid(options.contentType ?? oids.data)),
    attribute(oids.signingTime, der.tlv(0x17, Buffer.from('260830120003Z'))),
    attribute(oids.messageDigest, der.octets(options.digest ?? createHash('sha256').update(content).digest())),
  ];
  const chosen = options.attributes === null ? undefined : (options.attributes ?? ((same) => same))(usual);
  const signed = chosen === undefined ? content : der.setOf(...chosen);
  const padding = options.padding === 'pss' ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
  const signature = sign('sha256', signed, { key: options.signedBy ?? key, padding });
  const sent = chosen === undefined ? [] : [der.constructed(0, ...[...chosen].sort((a, b) => Buffer.compare(a, b)))];
  return der.sequence(
    der.integer(1),
    options.sid ?? der.sequence(issuer, serial),
    algorithm(options.digestAlgorithm ?? oids.sha256),
    ...sent.map((attributes) => options.attributesSent?.(attributes) ?? attributes),
    algorithm(options.signatureAlgorithm ?? oids.rsa),
    (options.signature ?? der.octets)(signature),
  );
}

export interface MessageOptions {
  readonly type?: string;
  readonly contentType?: string;
  /** Instead of the constructed OCTET STRING; nothing = detached. */
  readonly eContent?: Bytes | null;
  readonly certificates?: readonly Bytes[];
  readonly signers: readonly Bytes[];
}

export function message(content: Bytes, options: MessageOptions): Buffer {
  const eContent = options.eContent === undefined ? octetsInPieces(content) : options.eContent;
  const { certificates = [] } = options;
  return indefinite(
    0x30,
    der.oid(options.type ?? oids.signedData),
    indefinite(
      0xa0,
      indefinite(
        0x30,
        der.integer(1),
        der.set(algorithm(oids.sha256)),
        indefinite(
          0x30,
          der.oid(options.contentType ?? oids.data),
          ...(eContent === null ? [] : [indefinite(0xa0, eContent)]),
        ),
        ...(certificates.length === 0 ? [] : [der.constructed(0, ...certificates)]),
        der.set(...options.signers),
      ),
    ),
  );
}

export function signedMessage(content: Bytes, key: RegionKey, options: SignerOptions = {}): Buffer {
  return message(content, { signers: [signerInfo(content, key, options)] });
}

function octetsInPieces(content: Bytes): Buffer {
  const middle = Math.ceil(content.length / 2);
  return indefinite(0x24, der.octets(content.subarray(0, middle)), der.octets(content.subarray(middle)));
}

/** X.690 §8.1.3.6. */
export function indefinite(tag: number, ...items: readonly Bytes[]): Buffer {
  return der.concat(Buffer.of(tag, 0x80), ...items, Buffer.of(0, 0));
}
