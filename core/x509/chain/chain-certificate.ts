/**
 * Reads one certificate of a chain, strictly, and makes the checks that need no other certificate: the encoding, the key, and the
 * algorithm of the signature. verify-chain.ts verifies the signature.
 */
import type { KeyObject } from 'node:crypto';
import { childrenOf, contentOf, derTag, elementIn, oidOf } from '../../encoding/der-reader.ts';
import { decodePem } from '../../encoding/pem.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { decodeSubject } from '../distinguished-name.ts';
import type { KeyKind, SubjectAltNames } from '../model.ts';
import { decodeSpki } from '../public-key.ts';
import { readCertificate } from '../read-certificate.ts';
import type { CertificateFacts } from '../read-certificate.ts';
import { decodeSubjectAltNames } from '../subject-alt-names.ts';
import { algorithmIdentifiers, extensionType } from '../model.ts';

export interface ChainCertificate {
  readonly der: Uint8Array;
  readonly facts: CertificateFacts;
  readonly key: CertificateKey;
  /** `undefined` if the certificate has no such extension. */
  readonly basicConstraints: BasicConstraints | undefined;
  /** Whether the extension keyUsage permits the use. Without the extension every use is permitted (RFC 5280 §4.2.1.3). */
  readonly permits: (use: KeyUse) => boolean;
  /** OIDs; `undefined` if the certificate has no such extension. */
  readonly extKeyUsage: readonly string[] | undefined;
  readonly names: CertificateNames;
}

export interface CertificateKey {
  readonly kind: KeyKind;
  /** DER SubjectPublicKeyInfo. */
  readonly spki: Uint8Array;
  readonly keyObject: KeyObject;
}

interface BasicConstraints {
  readonly isCa: boolean;
  /** How many CA certificates may follow below this one; `undefined` = any number. */
  readonly pathLength: number | undefined;
}

/** Bits of KeyUsage (RFC 5280 §4.2.1.3) in the first octet. */
const keyUses = {
  digitalSignature: 0x80,
  keyEncipherment: 0x20,
  keyAgreement: 0x08,
  keyCertSign: 0x04,
  cRLSign: 0x02,
} as const;
type KeyUse = keyof typeof keyUses;

export interface CertificateNames {
  /** All common names of the subject; `undefined` if the subject cannot be read. */
  readonly cn: readonly string[] | undefined;
  readonly sans: SubjectAltNames;
}

/** RFC 8410 §3. */
const ed25519 = Buffer.from('300506032b6570', 'hex');
/** The AlgorithmIdentifiers with which a certificate may be signed: SHA-256, SHA-384 or SHA-512, and Ed25519. */
const signatureAlgorithms = [...Object.values(algorithmIdentifiers), ed25519];

const minRsaBits = 2048;
const noNames: SubjectAltNames = { dns: [], email: [], ip: [], uri: [], unsupported: [] };

/** A problem is a clause: `has a key that …`. Never throws. */
export function decodeCertificate(der: Uint8Array): Result<ChainCertificate, string> {
  const decoded = decodeRoot(der);
  if (!decoded.ok) return decoded;
  const problem = signatureProblem(decoded.value.facts);
  return problem === undefined ? decoded : failure(problem);
}

/** Why the signature of a certificate must not count, with any issuer. A clause. */
export function signatureProblem({ signedAlgorithm, outerAlgorithm }: CertificateFacts): string | undefined {
  // The signature covers the inner identifier only. A verifier that reads the outer one could be led to another algorithm.
  if (!same(signedAlgorithm, outerAlgorithm)) return 'names two signature algorithms';
  return signatureAlgorithms.some((algorithm) => same(algorithm, outerAlgorithm))
    ? undefined
    : 'is signed with an algorithm that is not accepted: use SHA-256, SHA-384, SHA-512 or Ed25519';
}

/** The signature of a root proves nothing: its key is pinned. So it may have any algorithm. */
export function decodeRoot(der: Uint8Array): Result<ChainCertificate, string> {
  const read = readCertificate(der);
  if (!read.ok) return failure('is not an X.509 v3 certificate in DER');
  const facts = read.value;
  const key = readKey(facts.spki);
  if (key === undefined) return failure(keyNotAccepted);
  const valueOf = (type: string): Uint8Array | undefined => facts.extensions.get(type)?.value;
  const basicConstraints = readBasicConstraints(valueOf(extensionType.basicConstraints));
  if (basicConstraints === 'unreadable') return failure('has basicConstraints that cannot be read');
  const keyUsage = readKeyUsage(valueOf(extensionType.keyUsage));
  if (keyUsage === 'unreadable') return failure('has a keyUsage that cannot be read');
  const extKeyUsage = readExtKeyUsage(valueOf(extensionType.extKeyUsage));
  if (extKeyUsage === 'unreadable') return failure('has an extKeyUsage that cannot be read');
  const san = valueOf(extensionType.subjectAltName);
  const sans = san === undefined ? success(noNames) : decodeSubjectAltNames(san);
  if (!sans.ok) return failure('has a subjectAltName that cannot be read');
  const names = { cn: commonNames(facts), sans: sans.value };
  const permits = (use: KeyUse): boolean => keyUsage === undefined || (keyUsage & keyUses[use]) !== 0;
  return success({ der, facts, key, basicConstraints, permits, extKeyUsage, names });
}

/** `decode`: one of the two above. */
export function decodePemCertificate(pem: string, decode: typeof decodeRoot): Result<ChainCertificate, string> {
  const blocks = decodePem(Buffer.from(pem), ['CERTIFICATE']);
  if (!blocks.ok) return failure(`is not one PEM certificate: it ${blocks.problem}`);
  return decode(blocks.value[0]?.content ?? new Uint8Array());
}

export const keyNotAccepted =
  'has a key that is not accepted: use RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519';

/** `undefined` for a key that is not accepted. */
export function readKey(spki: Uint8Array): CertificateKey | undefined {
  const decoded = decodeSpki(spki);
  if (!decoded.ok) return undefined;
  const { publicKey, keyObject } = decoded.value;
  const { kind, bits } = publicKey;
  if (kind === undefined || (kind === 'RSA' && bits < minRsaBits)) return undefined;
  return { kind, spki, keyObject };
}

/** BasicConstraints ::= SEQUENCE { cA BOOLEAN DEFAULT FALSE, pathLenConstraint INTEGER (0..MAX) OPTIONAL } (§4.2.1.9) */
function readBasicConstraints(value: Uint8Array | undefined): BasicConstraints | undefined | 'unreadable' {
  if (value === undefined) return undefined;
  const fields = childrenOf(elementIn(value), derTag.sequence);
  if (fields === undefined) return 'unreadable';
  const [first, ...rest] = fields;
  const isCa = first?.tag === derTag.boolean && contentOf(first)[0] === 0xff;
  const [length, ...more] = first?.tag === derTag.boolean ? rest : fields;
  if (length === undefined) return { isCa, pathLength: undefined };
  const [octet = 0x80, ...octets] = contentOf(length);
  // One octet, 0 to 127: no chain is longer, and a negative number would read as a large one.
  if (length.tag !== derTag.integer || octet >= 0x80 || octets.length > 0 || more.length > 0) return 'unreadable';
  return { isCa, pathLength: octet };
}

/** The first octet of the BIT STRING. */
function readKeyUsage(value: Uint8Array | undefined): number | undefined | 'unreadable' {
  if (value === undefined) return undefined;
  const bits = elementIn(value);
  return bits?.tag === derTag.bitString ? (contentOf(bits)[1] ?? 0) : 'unreadable';
}

/** ExtKeyUsageSyntax ::= SEQUENCE SIZE (1..MAX) OF KeyPurposeId (§4.2.1.12) */
function readExtKeyUsage(value: Uint8Array | undefined): readonly string[] | undefined | 'unreadable' {
  if (value === undefined) return undefined;
  const purposes = childrenOf(elementIn(value), derTag.sequence)?.map(oidOf) ?? [];
  const known = purposes.filter((purpose) => purpose !== undefined);
  return known.length === 0 || known.length < purposes.length ? 'unreadable' : known;
}

/** `undefined` if the subject cannot be read: some CAs write characters that its string types do not have. */
function commonNames({ subjectName }: CertificateFacts): readonly string[] | undefined {
  const element = elementIn(subjectName);
  const subject = element === undefined ? undefined : decodeSubject(element);
  if (subject?.ok !== true) return undefined;
  return subject.value.attributes.filter(({ type }) => type === '2.5.4.3').map(({ value }) => value);
}

export function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
