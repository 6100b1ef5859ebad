/**
 * Reads a PKCS#10 request (RFC 2986) from the requester's text and verifies that the requester has the private key.
 *
 * The rules and the certificate must use the same values, so only this decoder reads the request, and the certificate is
 * built from its result. A request that can be read in more than one way is refused.
 */
import type { CertificateRequest } from './model.ts';
import {
  bitsOf,
  childrenOf,
  contentOf,
  derTag,
  elementIn,
  emptySequence,
  encodingOf,
  isAscii,
  oidOf,
  readDer,
} from '../encoding/der-reader.ts';
import type { DerElement } from '../encoding/der-reader.ts';
import { decodePublicKey } from './public-key.ts';
import { malformed, violation } from '../outcome/outcome.ts';
import type { Violations } from '../outcome/outcome.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import { decodePem } from '../encoding/pem.ts';
import { verifySelfSignature } from './proof-of-possession.ts';
import { decodeSubjectAltNames } from './subject-alt-names.ts';
import { decodeSubject } from './distinguished-name.ts';

/** Who writes the blocks that may follow the certificate request. A profile says which ones it accepts. */
export type RequestBlocks = 'kubelet-authenticator' | 'gce-vtpm';

/** In this order, each at most once, the first one required; no other labels (docs/attestation.md). */
const pemLabels: Readonly<Record<RequestBlocks, readonly string[]>> = {
  'kubelet-authenticator': [
    'CERTIFICATE REQUEST',
    'KUBELET AUTHENTICATOR ATTESTATION PROVIDER',
    'KUBELET AUTHENTICATOR ATTESTATION DATA',
  ],
  // gke-exec-auth-plugin (docs/attestation/gce-vtpm.md)
  'gce-vtpm': [
    'CERTIFICATE REQUEST',
    'ATTESTATION DATA',
    'ATTESTATION SIGNATURE',
    'VM IDENTITY',
    'ATTESTATION CERTIFICATE',
  ],
};
const maxEvidenceBytes = 32_768;

/** PKCS #9 extensionRequest (RFC 2985 §5.4.2). Microsoft's attribute for the same purpose is ignored, as by the in-tree signer. */
export const extensionRequestType = '1.2.840.113549.1.9.14';
const subjectAltNameType = '2.5.29.17';
export const providerIdType = '1.3.6.1.4.1.11129.2.1.21';

/** `text` is spec.request after base64 decoding. `accepted`: no request has blocks of two of them. Never throws. */
export function decodeRequest(
  text: Uint8Array,
  accepted: RequestBlocks | 'either' = 'kubelet-authenticator',
): Result<CertificateRequest, Violations> {
  if (text.length > maxRequestBytes) return tooLarge(`spec.request has more than ${maxRequestBytes} bytes`);
  const blocks = decodePem(text, pemLabels[accepted === 'either' ? writerOf(text) : accepted]);
  if (!blocks.ok) return malformed(`spec.request ${blocks.problem}`);
  const [block, ...evidence] = blocks.value;
  if (block === undefined) return malformed('spec.request has no CERTIFICATE REQUEST block');
  if (evidence.some(({ content }) => content.length > maxEvidenceBytes))
    return tooLarge(`an evidence block has more than ${maxEvidenceBytes} bytes`);

  const root = readDer(block.content);
  if (!root.ok) return malformed(`the certificate request is not DER: it ${root.problem}`);
  const [info, algorithm, signatureValue, ...rest] = childrenOf(root.value, derTag.sequence) ?? [];
  const signature = bitsOf(signatureValue);
  if (info === undefined || algorithm === undefined || signature === undefined || rest.length > 0)
    return malformed('the certificate request is not a signed request (RFC 2986)');

  const content = decodeInfo(info);
  if (!content.ok) return content;
  const { keyInfo, ...fields } = content.value;
  const key = decodePublicKey(keyInfo);
  if (!key.ok) return key;
  const signatureHash = verifySelfSignature(encodingOf(info), algorithm, signature, key.value);
  if (!signatureHash.ok) return signatureHash;
  return success({
    der: block.content,
    ...fields,
    publicKey: key.value.publicKey,
    signatureHash: signatureHash.value,
    evidence,
  });
}

/** By a block that every such request has. The strict decoder then refuses all blocks of the other writer. */
function writerOf(text: Uint8Array): RequestBlocks {
  return Buffer.from(text).includes('-----BEGIN ATTESTATION DATA-----') ? 'gce-vtpm' : 'kubelet-authenticator';
}

function tooLarge(message: string): Result<never, Violations> {
  return failure([violation('RequestTooLarge', message)]);
}

interface RequestInfo extends Pick<CertificateRequest, 'subject' | 'sans' | 'requestedExtensions' | 'providerId'> {
  readonly keyInfo: DerElement;
}

/** CertificationRequestInfo ::= SEQUENCE { version, subject, subjectPKInfo, attributes [0] } (RFC 2986 §4.1). */
function decodeInfo(info: DerElement): Result<RequestInfo, Violations> {
  const [version, name, keyInfo, attributeSet, ...rest] = childrenOf(info, derTag.sequence) ?? [];
  // The attributes may be empty but not absent (RFC 2986; Go).
  const attributes = childrenOf(attributeSet, 0xa0);
  if (
    version?.tag !== derTag.integer ||
    name === undefined ||
    keyInfo === undefined ||
    attributes === undefined ||
    rest.length > 0
  )
    return malformed('the certificate request does not hold version, subject, key and attributes (RFC 2986)');
  const [number, ...more] = contentOf(version);
  if (number !== 0 || more.length > 0) return malformed('the certificate request has a version other than 0 (v1)');
  const subject = decodeSubject(name);
  if (!subject.ok) return subject;
  const requested = decodeAttributes(attributes);
  if (!requested.ok) return requested;
  const extensions = requested.value;
  const sans = decodeSubjectAltNames(extensions.get(subjectAltNameType) ?? emptySequence);
  if (!sans.ok) return sans;
  const providerId = decodeProviderId(extensions.get(providerIdType));
  return success({
    subject: subject.value,
    sans: sans.value,
    requestedExtensions: [...extensions.keys()],
    ...(providerId === undefined ? {} : { providerId }),
    keyInfo,
  });
}

function decodeProviderId(value: Uint8Array | undefined): string | undefined {
  const element = elementIn(value);
  if (element?.tag !== derTag.utf8String) return undefined;
  const content = contentOf(element);
  return isAscii(content) ? Buffer.from(content).toString('latin1') : undefined;
}

type Extensions = ReadonlyMap<string, Uint8Array>;

/** The requested extensions. Other attributes (challengePassword …) do not affect the certificate and are ignored. */
function decodeAttributes(attributes: readonly DerElement[]): Result<Extensions, Violations> {
  let extensions: Extensions | undefined;
  for (const attribute of attributes) {
    const [type, values, ...rest] = childrenOf(attribute, derTag.sequence) ?? [];
    const oid = oidOf(type);
    const members = childrenOf(values, derTag.set);
    if (oid === undefined || members === undefined || rest.length > 0)
      return malformed('the certificate request has an attribute that is not a type and values');
    if (oid !== extensionRequestType) continue;
    const [value, ...others] = members;
    // Readers take the first, the last or all of several values, so the rules and the certificate could differ.
    if (extensions !== undefined || value === undefined || others.length > 0)
      return malformed('the certificate request has more or less than one value of extensionRequest');
    const decoded = decodeExtensions(value);
    if (!decoded.ok) return decoded;
    extensions = decoded.value;
  }
  return success(extensions ?? new Map());
}

/** Extensions ::= SEQUENCE OF SEQUENCE { extnID, critical DEFAULT FALSE, extnValue } (RFC 5280 §4.1). */
function decodeExtensions(value: DerElement): Result<Extensions, Violations> {
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
  return success(extensions);
}

export const maxRequestBytes = 131_072;
