/**
 * From the certificate of a machine to a root of the configuration (RFC 5280 §6). @peculiar/x509 finds each issuer and verifies the
 * signatures. It checks nothing else, so the checks of every certificate on the path are here, each with its own problem. What the
 * certificate of the machine must be for, its provider checks.
 *
 * The library reads only bytes that chain-certificate.ts has read as strict DER, with keys and algorithms of closed sets.
 */
import 'reflect-metadata';
import { X509Certificate, X509ChainBuilder } from '@peculiar/x509';
import { quoted } from '../../outcome/printable-text.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import { MisconfigurationError } from '../../ports/errors.ts';
import type { Instant } from '../../ports/instant.ts';
import { extensionType } from '../model.ts';
import { decodeCertificate, decodePemCertificate, decodeRoot, same } from './chain-certificate.ts';
import type { ChainCertificate } from './chain-certificate.ts';
import { checkNameConstraints } from './name-constraints.ts';

/** What the operator trusts, in PEM. */
export interface AnchorTexts {
  readonly roots: readonly { readonly name: string; readonly certificates: readonly string[] }[];
  readonly intermediates: readonly string[];
}

export interface Anchors {
  /** By the names that the operator gave to the roots. */
  readonly roots: ReadonlyMap<string, readonly Candidate[]>;
  readonly intermediates: readonly Candidate[];
}

interface Candidate {
  readonly certificate: ChainCertificate;
  readonly parsed: X509Certificate;
}

export interface VerifiedPath {
  /** The name of the root. */
  readonly root: string;
  /** From the machine's certificate to the root, both included. */
  readonly certificates: readonly ChainCertificate[];
}

/** A root, four intermediates and the machine's certificate: longer chains are not in use. */
const longestPath = 6;

/** Throws a MisconfigurationError for a text that is not one usable certificate. `key`: of the configuration. */
export function readAnchors(key: string, { roots, intermediates }: AnchorTexts): Anchors {
  const read = (decode: typeof decodeRoot) => (pem: string) => {
    const certificate = decodePemCertificate(pem, decode);
    if (!certificate.ok) throw new MisconfigurationError(`a certificate under ${key} ${certificate.problem}`);
    return candidateOf(certificate.value);
  };
  return {
    roots: new Map(roots.map(({ name, certificates }) => [name, certificates.map(read(decodeRoot))])),
    intermediates: intermediates.map(read(decodeCertificate)),
  };
}

function candidateOf(certificate: ChainCertificate): Candidate {
  return { certificate, parsed: new X509Certificate(new Uint8Array(certificate.der)) };
}

/** `intermediates`: those of the evidence; only the configuration has roots. The problem is a whole clause. Never rejects. */
export async function verifyChain(
  leaf: ChainCertificate,
  intermediates: readonly ChainCertificate[],
  anchors: Anchors,
  now: Instant,
): Promise<Result<VerifiedPath, string>> {
  let found: VerifiedPath | undefined;
  try {
    found = await findPath(leaf, intermediates, anchors, now);
  } catch {
    // The library throws for a cycle of issuers, and for some damaged certificates.
    return failure('the chain of certificates cannot be verified');
  }
  if (found === undefined) return failure('the chain of certificates does not lead to a root of the configuration');
  const problem = checkPath(found.certificates, now);
  return problem === undefined ? success(found) : failure(problem);
}

async function findPath(
  leaf: ChainCertificate,
  intermediates: readonly ChainCertificate[],
  anchors: Anchors,
  now: Instant,
): Promise<VerifiedPath | undefined> {
  // The library takes the first certificate that fits. So roots come first, and of two certificates of one CA the valid one.
  const roots = [...anchors.roots.values()].flat();
  const others = [...anchors.intermediates, ...intermediates.map(candidateOf)];
  const candidates = [...validFirst(roots, now), ...validFirst(others, now)];
  const builder = new X509ChainBuilder({ certificates: candidates.map(({ parsed }) => parsed) });
  const built = await builder.build(candidateOf(leaf).parsed);
  const path = [...built].slice(1).map((parsed) => candidates.find((candidate) => candidate.parsed === parsed));
  const end = path.findIndex((candidate) => roots.some((each) => each === candidate));
  const root = [...anchors.roots].find(([, each]) => each.some((candidate) => candidate === path[end]))?.[0];
  if (root === undefined) return undefined;
  const issuers = path.slice(0, end + 1).flatMap((candidate) => candidate?.certificate ?? []);
  return { root, certificates: [leaf, ...issuers] };
}

function validFirst(candidates: readonly Candidate[], now: Instant): readonly Candidate[] {
  return candidates.toSorted((a, b) => Number(isValid(b.certificate, now)) - Number(isValid(a.certificate, now)));
}

function isValid({ facts: { notBefore, notAfter } }: ChainCertificate, now: Instant): boolean {
  return notBefore <= now && now <= notAfter;
}

/** What the library does not check, of every certificate on the path, the root included. */
function checkPath(path: readonly ChainCertificate[], now: Instant): string | undefined {
  if (path.length > longestPath) return `the chain of certificates is longer than ${longestPath}`;
  for (const [index, certificate] of path.entries()) {
    const issuer = path[index + 1];
    const problem =
      checkEach(certificate, now) ??
      (index === 0 ? undefined : checkCa(certificate, index - 1)) ??
      checkNames(certificate, path.slice(0, index)) ??
      // The library compares names as text, and two different names can have one text.
      (issuer === undefined || same(certificate.facts.issuerName, issuer.facts.subjectName)
        ? undefined
        : 'names another issuer than the CA that signed it');
    if (problem !== undefined) return `${titleOf(certificate)} ${problem}`;
  }
  return undefined;
}

/** The certificate of an endorsement key has no subject. */
function titleOf({ facts }: ChainCertificate): string {
  return facts.subject === '' ? 'the certificate' : `certificate ${quoted(facts.subject)}`;
}

const nameConstraintsType = '2.5.29.30';

/**
 * The extensions that this folder judges, two that only help to find an issuer, and policies, which limit nothing without the
 * extensions policyConstraints and inhibitAnyPolicy.
 */
const judged: ReadonlySet<string> = new Set([
  extensionType.basicConstraints,
  extensionType.keyUsage,
  extensionType.extKeyUsage,
  extensionType.subjectAltName,
  extensionType.subjectKeyIdentifier,
  extensionType.authorityKeyIdentifier,
  nameConstraintsType,
  '2.5.29.32', // certificatePolicies
]);

function checkEach({ facts }: ChainCertificate, now: Instant): string | undefined {
  const { notBefore, notAfter, extensions } = facts;
  if (now < notBefore) return `is valid only from ${new Date(notBefore).toISOString()} on`;
  if (now > notAfter) return `expired at ${new Date(notAfter).toISOString()}`;
  const unknown = [...extensions].find(([type, { critical }]) => critical && !judged.has(type))?.[0];
  return unknown === undefined ? undefined : `has the critical extension ${unknown}, which is not judged here`;
}

/** SPIFFE X509-SVID §4: the certificate of a machine that signs is no CA, and its key may sign content. The problem is a clause. */
export function checkSigner({ basicConstraints, permits, facts, names }: ChainCertificate): string | undefined {
  if (names.cn === undefined) return 'has a subject that cannot be read';
  if (basicConstraints?.isCa === true) return 'is a CA and not of a machine';
  if (facts.extensions.has(extensionType.keyUsage) && permits('keyCertSign'))
    return 'has a key that may sign certificates (keyUsage)';
  return permits('digitalSignature') ? undefined : 'has a key that may not sign (keyUsage)';
}

/** `below`: how many CA certificates are between this one and the certificate of the machine. */
function checkCa({ basicConstraints, permits }: ChainCertificate, below: number): string | undefined {
  if (basicConstraints?.isCa !== true) return 'is not a CA (basicConstraints)';
  if (!permits('keyCertSign')) return 'has a key that may not sign certificates (keyUsage)';
  return below > (basicConstraints.pathLength ?? below) ? 'does not permit so many CAs below it (pathLen)' : undefined;
}

function checkNames({ facts }: ChainCertificate, below: readonly ChainCertificate[]): string | undefined {
  const constraints = facts.extensions.get(nameConstraintsType);
  if (constraints === undefined) return undefined;
  return checkNameConstraints(
    constraints.value,
    below.map(({ names }) => names.sans),
  );
}

/** Whether a CA on the path limits names. Such limits say nothing about common names. */
export function limitsNames(path: readonly ChainCertificate[]): boolean {
  return path.some(({ facts }) => facts.extensions.has(nameConstraintsType));
}

const anyPurpose = '2.5.29.37.0';

/** A CA with extKeyUsage limits the certificates below it, as OpenSSL, Windows and browsers read it. */
export function checkIssuerPurposes([, ...issuers]: readonly ChainCertificate[], purpose: string): string | undefined {
  const narrow = issuers.find(
    ({ extKeyUsage }) => extKeyUsage !== undefined && ![purpose, anyPurpose].some((one) => extKeyUsage.includes(one)),
  );
  return narrow === undefined ? undefined : `${titleOf(narrow)} does not permit ${purpose} below it (extKeyUsage)`;
}
