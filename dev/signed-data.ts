/** CMS SignedData (RFC 5652) as a region signs identity documents, in DER: content inside, no certificates, one signer. */
import { createHash } from 'node:crypto';
import type { Authority } from '../core/certificate.ts';
import { certificateFacts } from '../core/certificate-facts.ts';
import { explicit, objectIdentifier, sequence, setOf } from '../core/der-encoder.ts';
import { encodeSubject } from '../core/subject.ts';

const oid = {
  signedData: '1.2.840.113549.1.7.2',
  data: '1.2.840.113549.1.7.1',
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
  sha256: '2.16.840.1.101.3.4.2.1',
  rsaEncryption: '1.2.840.113549.1.1.1',
} as const;

/** With a key that signs by RSA (PKCS #1 v1.5) and SHA-256. */
export async function signData(content: Uint8Array, { certificate, signer }: Authority): Promise<Uint8Array> {
  const attributes = [
    attribute(oid.contentType, objectIdentifier(oid.data)),
    attribute(oid.messageDigest, octets(createHash('sha256').update(content).digest())),
  ];
  // Signed as a SET, and sent under the tag [0] (§5.4): the same members in the same order.
  const signature = await signer.sign(setOf(...attributes));
  const digest = sequence(objectIdentifier(oid.sha256));
  const signerInfo = sequence(
    version1,
    // Who signed is told by the serial number alone: all regions have one name.
    sequence(encodeSubject({ attributes: [] }), primitive(2, certificateFacts(certificate).serialOctets)),
    digest,
    explicit(0, Buffer.concat([...attributes].sort((a, b) => Buffer.compare(a, b)))),
    sequence(objectIdentifier(oid.rsaEncryption)),
    octets(signature.bytes),
  );
  return sequence(
    objectIdentifier(oid.signedData),
    explicit(
      0,
      sequence(
        version1,
        setOf(digest),
        sequence(objectIdentifier(oid.data), explicit(0, octets(content))),
        setOf(signerInfo),
      ),
    ),
  );
}

function attribute(type: string, value: Uint8Array): Uint8Array {
  return sequence(objectIdentifier(type), setOf(value));
}

/** INTEGER 1. */
const version1 = Uint8Array.of(2, 1, 1);

export function octets(content: Uint8Array): Uint8Array {
  return primitive(4, content);
}

/** An element of up to 64 KiB. */
export function primitive(tag: number, content: Uint8Array): Uint8Array {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Uint8Array.of(tag, ...size), content]);
}
