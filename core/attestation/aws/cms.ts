/**
 * CMS SignedData (RFC 5652) in the one form in which AWS regions sign instance identity documents. AWS writes BER with
 * indefinite lengths, which core/encoding/der-reader.ts refuses, so asn1js reads it. All parts inside are compared with what the
 * signature covers.
 *
 * Known attacks made other verifiers trust a certificate inside or a document beside the message, the first of several signers,
 * or a chain without a signature. This one reads only the content inside the message, ignores its certificates, and requires
 * exactly one signer, whose key is pinned.
 */
import { constants, createHash, createPublicKey, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import * as asn1js from 'asn1js';
import { certificateFacts } from '../../x509/read-certificate.ts';
import { childrenOf, contentOf, derTag, oidOf, readDer } from '../../encoding/der-reader.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';

/** A trusted key with what identifies it. No chain is built, and the other fields of the certificate are not used. */
export interface PinnedCertificate {
  readonly region: string;
  /** The INTEGER's content octets: how a SignerInfo names its key. */
  readonly serial: Uint8Array;
  readonly notAfter: Instant;
  readonly key: KeyObject;
}

type VerifiedContent = Result<{ readonly content: Uint8Array; readonly signer: PinnedCertificate }, string>;

const oid = {
  signedData: '1.2.840.113549.1.7.2',
  data: '1.2.840.113549.1.7.1',
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
  sha256: '2.16.840.1.101.3.4.2.1',
  rsaEncryption: '1.2.840.113549.1.1.1',
  sha256WithRsa: '1.2.840.113549.1.1.11',
} as const;

/** Messages of AWS have about 1 100 bytes. */
const maxBytes = 16_384;
const limits = { maxDepth: 24, maxNodes: 500 } as const;

/** Throws unless it is a certificate with an RSA key of at least 2048 bits. */
export function pinCertificate(region: string, der: Uint8Array): PinnedCertificate {
  const { serialOctets, notAfter, spki } = certificateFacts(der);
  const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  if (key.asymmetricKeyType !== 'rsa' || (key.asymmetricKeyDetails?.modulusLength ?? 0) < 2048)
    throw new Error(`the certificate of region ${region} does not have an RSA key of at least 2048 bits`);
  return { region, serial: serialOctets, notAfter, key };
}

/** The signed content, and the key that signed it. Never throws. */
export function verifySignedData(
  der: Uint8Array,
  certificates: readonly PinnedCertificate[],
  now: Instant,
): VerifiedContent {
  try {
    return verifyMessage(der, certificates, now);
  } catch {
    // asn1js, or the code that reads its tree, throws for some damaged messages, and for no valid one.
    return failure('cannot be decoded');
  }
}

function verifyMessage(der: Uint8Array, certificates: readonly PinnedCertificate[], now: Instant): VerifiedContent {
  if (der.length > maxBytes) return failure(`is larger than ${maxBytes} bytes`);
  const { result: root, offset } = asn1js.fromBER(der, limits);
  if (offset === -1) return failure('is not BER');
  // The signature does not cover trailing bytes.
  if (offset !== der.length) return failure('has trailing bytes');

  // ContentInfo ::= SEQUENCE { contentType, content [0] SignedData } (RFC 5652 §3)
  const [type, wrapped] = members(root);
  if (oidText(type) !== oid.signedData) return failure('is not SignedData');
  // SignedData ::= SEQUENCE { version, digestAlgorithms, encapContentInfo, [0] certificates?, [1] crls?, signerInfos } (§5.1)
  const signedData = members(members(wrapped)[0]);
  const [contentType, contentHolder] = members(signedData[2]);
  if (oidText(contentType) !== oid.data) return failure('does not hold data');
  const eContent = contentHolder === undefined ? undefined : members(contentHolder)[0];
  if (eContent === undefined) return failure('does not hold its content inside');
  if (!(eContent instanceof asn1js.OctetString)) return failure('has content that is not octets');
  const content = new Uint8Array(eContent.getValue());

  const signerInfos = members(signedData.at(-1));
  // A verifier that checks one of several signers can be shown the wrong one.
  if (signerInfos.length !== 1) return failure('does not have exactly one signer');
  return verifySigner(content, members(signerInfos[0]), certificates, now);
}

/** SignerInfo ::= SEQUENCE { version, sid, digestAlgorithm, signedAttrs [0], signatureAlgorithm, signature, … } (§5.3) */
function verifySigner(
  content: Uint8Array,
  signerInfo: readonly asn1js.BaseBlock[],
  certificates: readonly PinnedCertificate[],
  now: Instant,
): VerifiedContent {
  const [, sid, digestAlgorithm, attributes, signatureAlgorithm, signature] = signerInfo;
  // Without signed attributes the signature covers the content itself, so content that looks like attributes would pass.
  if (!isTagged(attributes, 0)) return failure('has no signed attributes');
  // IssuerAndSerialNumber: the certificates of all regions have one issuer name, so the serial number identifies the key.
  const serial = members(sid)[1];
  if (!(serial instanceof asn1js.Integer)) return failure('does not name its signer by serial number');
  const signer = certificates.find((pinned) => sameBytes(pinned.serial, serial.valueBlock.valueHexView));
  if (signer === undefined) return failure('is signed with the key of no region configured');
  if (now > signer.notAfter) return failure(`is signed with a key of ${signer.region} that is over`);
  if (oidText(members(digestAlgorithm)[0]) !== oid.sha256) return failure('is not digested with SHA-256');
  const algorithm = oidText(members(signatureAlgorithm)[0]);
  if (algorithm !== oid.rsaEncryption && algorithm !== oid.sha256WithRsa)
    return failure('is not signed with RSA (PKCS #1 v1.5)');
  if (!(signature instanceof asn1js.OctetString)) return failure('has no signature');

  // §5.4: the signature is over the attributes as a SET OF, not under their tag in the message.
  const signedAttributes = Buffer.from(attributes.valueBeforeDecodeView);
  signedAttributes[0] = derTag.set;
  const problem = checkAttributes(signedAttributes, content);
  if (problem !== undefined) return failure(problem);
  const key = { key: signer.key, padding: constants.RSA_PKCS1_PADDING };
  if (!verify('sha256', signedAttributes, key, new Uint8Array(signature.getValue())))
    return failure(`is not signed with the key of ${signer.region}`);
  return success({ content, signer });
}

/** §11.1, §11.2: the type of the signed content, and its digest, which alone ties the signature to the content. */
function checkAttributes(der: Uint8Array, content: Uint8Array): string | undefined {
  const set = readDer(der);
  if (!set.ok) return 'has signed attributes that are not DER';
  const seen = new Set<string>();
  let contentType: string | undefined;
  let digest: Uint8Array | undefined;
  for (const attribute of set.value.children) {
    const [type, values] = childrenOf(attribute, derTag.sequence) ?? [];
    const name = oidOf(type);
    const held = childrenOf(values, derTag.set) ?? [];
    if (name === undefined || held.length === 0) return 'has an invalid signed attribute';
    // Of two digests, this verifier could check one and another verifier the other.
    if (seen.has(name)) return 'has a signed attribute twice';
    seen.add(name);
    const [value, ...more] = held;
    if (name === oid.contentType && more.length === 0) contentType = oidOf(value);
    if (name === oid.messageDigest && more.length === 0 && value?.tag === derTag.octetString) digest = contentOf(value);
  }
  if (contentType !== oid.data) return 'was not signed as data';
  if (digest === undefined || !sameBytes(digest, createHash('sha256').update(content).digest()))
    return 'has other content than was signed';
  return undefined;
}

/** The elements of a SEQUENCE, SET or explicit tag; empty for other blocks. */
function members(block: asn1js.BaseBlock | undefined): readonly asn1js.BaseBlock[] {
  return block instanceof asn1js.Constructed ? block.valueBlock.value : [];
}

function isTagged(block: asn1js.BaseBlock | undefined, number: number): block is asn1js.Constructed {
  return block instanceof asn1js.Constructed && block.idBlock.tagClass === 3 && block.idBlock.tagNumber === number;
}

function oidText(block: asn1js.BaseBlock | undefined): string | undefined {
  return block instanceof asn1js.ObjectIdentifier ? block.getValue() : undefined;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
