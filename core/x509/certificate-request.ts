/**
 * Reads a PKCS#10 request (RFC 2986) from the requester's text and verifies that the requester has the private key.
 *
 * Policy and signer must see the same values: only this decoder reads the request, and the certificate is built from its
 * result, never from a second parse. A request that can be read in more than one way is refused.
 */
import type { CertificateRequest } from './model.ts';
import { bitsOf, childrenOf, contentOf, derTag, encodingOf, isAscii, oidOf, readDer } from '../encoding/der-reader.ts';
import type { DerElement } from '../encoding/der-reader.ts';
import { decodePublicKey } from './public-key.ts';
import { violation } from '../outcome/outcome.ts';
import type { Violation, Violations } from '../outcome/outcome.ts';
import { decodePem } from '../encoding/pem.ts';
import { verifySelfSignature } from './proof-of-possession.ts';
import { decodeSubjectAltNames, noSubjectAltNames } from './subject-alt-names.ts';
import { decodeSubject } from './distinguished-name.ts';

export type DecodedRequest =
  { readonly ok: true; readonly request: CertificateRequest } | { readonly ok: false; readonly violations: Violations };

export type { Violation };

/** In this order, each at most once, the first one required; no other labels (docs/attestation.md). */
const pemLabels = [
  'CERTIFICATE REQUEST',
  'KUBELET AUTHENTICATOR ATTESTATION PROVIDER',
  'KUBELET AUTHENTICATOR ATTESTATION DATA',
];
const maxEvidenceBytes = 32_768;

/** PKCS #9 extensionRequest (RFC 2985 §5.4.2); Microsoft's own attribute of the same purpose is ignored, as in-tree. */
const extensionRequestType = '1.2.840.113549.1.9.14';
const subjectAltNameType = '2.5.29.17';
export const providerIdType = '1.3.6.1.4.1.11129.2.1.21';

/** `text` is spec.request after base64 decoding. Never throws. */
export function decodeRequest(text: Uint8Array): DecodedRequest {
  const request = decode(text);
  return 'code' in request ? { ok: false, violations: [request] } : { ok: true, request };
}

function decode(text: Uint8Array): CertificateRequest | Violation {
  if (text.length > maxRequestBytes)
    return violation('RequestTooLarge', `spec.request has more than ${maxRequestBytes} bytes`);
  const blocks = decodePem(text, pemLabels);
  if ('problem' in blocks) return malformed(`spec.request ${blocks.problem}`);
  const [block, ...evidence] = blocks;
  if (block === undefined) return malformed('spec.request has no CERTIFICATE REQUEST block');
  if (evidence.some(({ content }) => content.length > maxEvidenceBytes))
    return violation('RequestTooLarge', `an evidence block has more than ${maxEvidenceBytes} bytes`);

  const root = readDer(block.content);
  if ('problem' in root) return malformed(`the certificate request is not DER: it ${root.problem}`);
  const [info, algorithm, signatureValue, ...rest] = childrenOf(root, derTag.sequence) ?? [];
  const signature = bitsOf(signatureValue);
  if (info === undefined || algorithm === undefined || signature === undefined || rest.length > 0)
    return malformed('the certificate request is not a signed request (RFC 2986)');

  const content = decodeInfo(info);
  if ('code' in content) return content;
  const key = decodePublicKey(content.key);
  if ('code' in key) return key;
  const proof = verifySelfSignature(encodingOf(info), algorithm, signature, key);
  if ('code' in proof) return proof;
  return {
    der: block.content,
    subject: content.subject,
    sans: content.sans,
    publicKey: key.publicKey,
    signatureHash: proof.hash,
    requestedExtensions: content.requestedExtensions,
    ...(content.providerId === undefined ? {} : { providerId: content.providerId }),
    evidence,
  };
}

function malformed(message: string): Violation {
  return violation('RequestMalformed', message);
}

interface RequestInfo extends Pick<CertificateRequest, 'subject' | 'sans' | 'requestedExtensions' | 'providerId'> {
  readonly key: DerElement;
}

/** CertificationRequestInfo ::= SEQUENCE { version, subject, subjectPKInfo, attributes [0] } (RFC 2986 §4.1). */
function decodeInfo(info: DerElement): RequestInfo | Violation {
  const [version, name, key, attributeSet, ...rest] = childrenOf(info, derTag.sequence) ?? [];
  // The attributes may be empty but not absent, in RFC 2986 as in Go.
  const attributes = childrenOf(attributeSet, 0xa0);
  if (
    version?.tag !== derTag.integer ||
    name === undefined ||
    key === undefined ||
    attributes === undefined ||
    rest.length > 0
  )
    return malformed('the certificate request does not hold version, subject, key and attributes (RFC 2986)');
  const [number, ...more] = contentOf(version);
  if (number !== 0 || more.length > 0) return malformed('the certificate request has a version other than 0 (v1)');
  const subject = decodeSubject(name);
  if ('code' in subject) return subject;
  const extensions = decodeAttributes(attributes);
  if ('code' in extensions) return extensions;
  const subjectAltName = extensions.get(subjectAltNameType);
  const sans = subjectAltName === undefined ? noSubjectAltNames : decodeSubjectAltNames(subjectAltName);
  if ('code' in sans) return sans;
  const providerId = decodeProviderId(extensions.get(providerIdType));
  return {
    subject,
    sans,
    requestedExtensions: [...extensions.keys()],
    ...(providerId === undefined ? {} : { providerId }),
    key,
  };
}

function decodeProviderId(value: Uint8Array | undefined): string | undefined {
  const element = value === undefined ? undefined : readDer(value);
  if (element === undefined || 'problem' in element || element.tag !== derTag.utf8String) return undefined;
  const content = contentOf(element);
  return isAscii(content) ? Buffer.from(content).toString('latin1') : undefined;
}

type Extensions = ReadonlyMap<string, Uint8Array>;

/** The requested extensions. Other attributes (challengePassword …) do not affect the certificate and are ignored. */
function decodeAttributes(attributes: readonly DerElement[]): Extensions | Violation {
  let extensions: Extensions | undefined;
  for (const attribute of attributes) {
    const [type, values, ...rest] = childrenOf(attribute, derTag.sequence) ?? [];
    const oid = oidOf(type);
    const members = childrenOf(values, derTag.set);
    if (oid === undefined || members === undefined || rest.length > 0)
      return malformed('the certificate request has an attribute that is not a type and values');
    if (oid !== extensionRequestType) continue;
    const [value, ...others] = members;
    // Of several values some readers take the first, the last or all: policy and certificate could differ.
    if (extensions !== undefined || value === undefined || others.length > 0)
      return malformed('the certificate request has more or less than one value of extensionRequest');
    const decoded = decodeExtensions(value);
    if ('code' in decoded) return decoded;
    extensions = decoded;
  }
  return extensions ?? new Map();
}

/** Extensions ::= SEQUENCE OF SEQUENCE { extnID, critical DEFAULT FALSE, extnValue } (RFC 5280 §4.1). */
function decodeExtensions(value: DerElement): Extensions | Violation {
  const members = childrenOf(value, derTag.sequence);
  if (members === undefined) return malformed('the requested extensions are not a sequence');
  const extensions = new Map<string, Uint8Array>();
  for (const member of members) {
    const parts = childrenOf(member, derTag.sequence) ?? [];
    const [type, second, third] = parts;
    const octets = second?.tag === derTag.boolean ? third : second;
    const oid = oidOf(type);
    if (oid === undefined || octets?.tag !== derTag.octetString || octets !== parts.at(-1))
      return malformed('a requested extension is not a type, a criticality and a value');
    if (extensions.has(oid)) return malformed(`extension ${oid} is requested twice`);
    extensions.set(oid, contentOf(octets));
  }
  return extensions;
}

export const maxRequestBytes = 131_072;
