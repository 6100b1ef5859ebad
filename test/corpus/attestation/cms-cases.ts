/** What carries a document: forged, stripped, doubled, or of another form than AWS's. */
import { createHash } from 'node:crypto';
import * as der from '../../harness/x509/der-writer.ts';
import { forged, foreign, keys, otherInstanceId } from './aws-machine.ts';
import { attribute, indefinite, message, oids, signedMessage, signerInfo } from './cms-writer.ts';
import type { SignerOptions } from './cms-writer.ts';
import type { Case } from './judge.ts';

const own = keys['eu-central-1'];
const invalid = (check: string) => ['AttestationInvalid', `the instance identity document ${check}`] as const;
const signed = (options: SignerOptions) => (content: Buffer) => signedMessage(content, own, options);
const substituted = (content: Buffer): Buffer =>
  Buffer.from(content.toString().replace('i-0123456789abcdef0', otherInstanceId));
const noAttribute = invalid('has an invalid signed attribute');
const otherContent = invalid('has other content than was signed');

export const cmsCases: readonly Case[] = [
  {
    name: 'DER instead of BER',
    expect: 'accepted',
    cms: (content) => {
      const signerInfos = der.set(signerInfo(content, own));
      const algorithms = der.set(der.sequence(der.oid(oids.sha256)));
      const inside = der.sequence(der.oid(oids.data), der.constructed(0, der.octets(content)));
      const signedData = der.sequence(der.integer(1), algorithms, inside, signerInfos);
      return der.sequence(der.oid(oids.signedData), der.constructed(0, signedData));
    },
  },
  {
    name: 'sha256WithRSAEncryption as the signature algorithm',
    expect: 'accepted',
    cms: signed({ signatureAlgorithm: oids.sha256WithRsa }),
  },
  {
    name: 'a true certificate inside, which is ignored',
    expect: 'accepted',
    cms: (content) => message(content, { signers: [signerInfo(content, own)], certificates: [forged.certificate] }),
  },

  // Keys.
  {
    name: 'signed with the key of an unconfigured region',
    expect: invalid('is signed with the key of no region configured'),
    signedWith: foreign,
  },
  {
    name: "an attacker's key with the true serial number",
    expect: invalid('is not signed with the key of eu-central-1'),
    signedWith: forged,
  },
  {
    name: "an attacker's certificate inside, with the true serial number",
    expect: invalid('is not signed with the key of eu-central-1'),
    cms: (content) => message(content, { signers: [signerInfo(content, forged)], certificates: [forged.certificate] }),
  },
  {
    name: "an attacker's certificate inside",
    expect: invalid('is signed with the key of no region configured'),
    cms: (content) =>
      message(content, { signers: [signerInfo(content, foreign)], certificates: [foreign.certificate] }),
  },
  {
    name: "another pinned region's key under this one's serial number",
    expect: invalid('is not signed with the key of eu-central-1'),
    cms: signed({ signedBy: keys['us-east-1'].key }),
  },
  {
    name: 'a pinned key whose certificate is over',
    expect: invalid('is signed with a key of eu-west-1 that is over'),
    document: { region: 'eu-west-1', availabilityZone: 'eu-west-1a' },
    signedWith: keys['eu-west-1'],
    presign: { region: 'eu-west-1' },
    instance: { availabilityZone: 'eu-west-1a' },
  },
  {
    name: 'named by key identifier',
    expect: invalid('does not name its signer by serial number'),
    cms: signed({ sid: der.primitive(0, Buffer.alloc(20, 1)) }),
  },
  {
    name: 'named by nothing',
    expect: invalid('does not name its signer by serial number'),
    cms: signed({ sid: der.sequence() }),
  },

  // Signers.
  {
    name: 'two signers, the true one first',
    expect: invalid('does not have exactly one signer'),
    cms: (content) => message(content, { signers: [signerInfo(content, own), signerInfo(content, foreign)] }),
  },
  {
    name: 'two signers, the true one last',
    expect: invalid('does not have exactly one signer'),
    cms: (content) => message(content, { signers: [signerInfo(content, foreign), signerInfo(content, own)] }),
  },
  {
    name: 'no signer',
    expect: invalid('does not have exactly one signer'),
    cms: (content) => message(content, { signers: [] }),
  },

  // Content.
  {
    name: 'another document in place of the signed one',
    expect: otherContent,
    cms: (content) => message(substituted(content), { signers: [signerInfo(content, own)] }),
  },
  {
    name: 'another document beside the signed one',
    expect: invalid('has trailing bytes'),
    cms: (content) => Buffer.concat([signedMessage(content, own), der.octets(substituted(content))]),
  },
  {
    name: 'a trailing byte',
    expect: invalid('has trailing bytes'),
    cms: (content) => Buffer.concat([signedMessage(content, own), Buffer.of(0)]),
  },
  {
    name: 'detached',
    expect: invalid('does not hold its content inside'),
    cms: (content) => message(content, { signers: [signerInfo(content, own)], eContent: null }),
  },
  {
    name: 'content of another type of string',
    expect: invalid('has content that is not octets'),
    cms: (content) => message(content, { signers: [signerInfo(content, own)], eContent: der.utf8(content.toString()) }),
  },
  {
    name: 'content that says it is a time stamp',
    expect: invalid('does not hold data'),
    cms: (content) => message(content, { signers: [signerInfo(content, own)], contentType: oids.timestampInfo }),
  },
  {
    name: 'not signed at all',
    expect: invalid('is not SignedData'),
    cms: (content) => message(content, { signers: [signerInfo(content, own)], type: oids.data }),
  },
  { name: 'the bare document', expect: invalid('is not BER'), cms: (content) => content },
  { name: 'nothing', expect: invalid('is not BER'), cms: () => Buffer.alloc(0) },
  { name: 'cut off', expect: invalid('is not BER'), cms: (content) => signedMessage(content, own).subarray(0, -3) },
  {
    name: '16 kB',
    expect: invalid('is larger than 16384 bytes'),
    content: (usual) => Buffer.concat([usual, Buffer.alloc(16_384, ' ')]),
  },
  { name: 'nested 1 000 deep', expect: invalid('is not BER'), cms: () => nested(1_000) },

  // Signed attributes.
  { name: 'no signed attributes', expect: invalid('has no signed attributes'), cms: signed({ attributes: null }) },
  {
    name: 'attributes that are not signed',
    expect: invalid('has no signed attributes'),
    cms: signed({ attributesSent: (encoded) => Buffer.concat([Buffer.of(0xa1), encoded.subarray(1)]) }),
  },
  // The tag is not part of what was signed, so the signature holds in both.
  {
    name: "attributes under another class's tag",
    expect: invalid('has no signed attributes'),
    cms: signed({ attributesSent: (encoded) => Buffer.concat([Buffer.of(0x60), encoded.subarray(1)]) }),
  },
  {
    name: 'attributes under a primitive tag',
    expect: invalid('has no signed attributes'),
    cms: signed({ attributesSent: (encoded) => Buffer.concat([Buffer.of(0x80), encoded.subarray(1)]) }),
  },
  {
    name: 'attributes in BER',
    expect: invalid('has signed attributes that are not DER'),
    cms: signed({ attributesSent: (encoded) => indefinite(0xa0, encoded.subarray(encoded[1] === 0x81 ? 3 : 2)) }),
  },
  {
    name: 'no messageDigest',
    expect: otherContent,
    cms: signed({ attributes: (usual) => usual.slice(0, 2) }),
  },
  { name: 'a messageDigest of other content', expect: otherContent, cms: signed({ digest: Buffer.alloc(32) }) },
  { name: 'a messageDigest of no length', expect: otherContent, cms: signed({ digest: Buffer.alloc(0) }) },
  {
    name: 'a second messageDigest',
    expect: invalid('has a signed attribute twice'),
    cms: signed({
      attributes: (usual) => [...usual, attribute(oids.messageDigest, der.octets(Buffer.alloc(32, 0)))],
    }),
  },
  {
    name: 'a messageDigest with two values',
    expect: otherContent,
    cms: (content) =>
      signedMessage(content, own, {
        attributes: ([type, time]) => [
          type!,
          time!,
          attribute(oids.messageDigest, der.octets(sha256(content)), der.octets(Buffer.alloc(32))),
        ],
      }),
  },
  {
    name: 'a messageDigest that is a text',
    expect: otherContent,
    cms: (content) =>
      signedMessage(content, own, {
        attributes: ([type, time]) => [type!, time!, attribute(oids.messageDigest, der.tlv(0x0c, sha256(content)))],
      }),
  },
  {
    name: "another attribute's digest for that of the content",
    expect: otherContent,
    cms: (content) => {
      const other = Buffer.from(content.toString().replace('m7i.large', 'm7i.metal'));
      const further = attribute('1.2.840.113549.1.9.16.2.47', der.octets(sha256(other)));
      return message(other, { signers: [signerInfo(content, own, { attributes: (usual) => [...usual, further] })] });
    },
  },
  {
    name: 'no contentType',
    expect: invalid('was not signed as data'),
    cms: signed({ attributes: (usual) => usual.slice(1) }),
  },
  {
    name: 'a contentType of time stamps',
    expect: invalid('was not signed as data'),
    cms: signed({ contentType: oids.timestampInfo }),
  },
  {
    name: 'two contentTypes',
    expect: invalid('was not signed as data'),
    cms: signed({
      attributes: ([, ...usual]) => [
        attribute(oids.contentType, der.oid(oids.data), der.oid(oids.timestampInfo)),
        ...usual,
      ],
    }),
  },
  {
    name: 'an attribute without a value',
    expect: noAttribute,
    cms: signed({ attributes: (usual) => [...usual, attribute('1.2.3')] }),
  },
  {
    name: 'an attribute without a name',
    expect: noAttribute,
    cms: signed({ attributes: (usual) => [...usual, der.sequence(der.integer(1), der.set(der.integer(1)))] }),
  },

  // Algorithms.
  { name: 'SHA-1', expect: invalid('is not digested with SHA-256'), cms: signed({ digestAlgorithm: oids.sha1 }) },
  { name: 'SHA-384', expect: invalid('is not digested with SHA-256'), cms: signed({ digestAlgorithm: oids.sha384 }) },
  {
    name: 'RSA-PSS',
    expect: invalid('is not signed with RSA (PKCS #1 v1.5)'),
    cms: signed({ signatureAlgorithm: oids.rsaPss, padding: 'pss' }),
  },
  {
    name: 'RSA-PSS under the name of PKCS #1',
    expect: invalid('is not signed with the key of eu-central-1'),
    cms: signed({ padding: 'pss' }),
  },
  {
    name: 'a signature that is a BIT STRING',
    expect: invalid('has no signature'),
    cms: signed({ signature: (octets) => der.bits(octets) }),
  },
  {
    name: 'an empty signature',
    expect: invalid('is not signed with the key of eu-central-1'),
    cms: signed({ signature: () => der.octets() }),
  },
  {
    name: 'an INTEGER for everything',
    expect: invalid('does not hold data'),
    cms: () => der.sequence(der.oid(oids.signedData), der.constructed(0, der.integer(1))),
  },
];

function nested(depth: number): Buffer {
  let inner: Buffer = der.integer(1);
  for (let level = 0; level < depth; level += 1) inner = indefinite(0x30, inner);
  return inner;
}

function sha256(content: Buffer): Buffer {
  return createHash('sha256').update(content).digest();
}
