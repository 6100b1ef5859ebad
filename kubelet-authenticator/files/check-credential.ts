/**
 * Checks a certificate from the cache or from the cluster: it matches its key, has this node's names, is valid now, and was
 * issued by a CA that the API server trusts.
 *
 * Loaded by every call of the kubelet, so it imports little.
 */
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { pemBlocks } from '../../core/encoding/pem.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import type { StoredCredential } from './cache.ts';

export interface Credential extends StoredCredential {
  readonly leaf: X509Certificate;
  readonly notBefore: number;
  readonly notAfter: number;
  /** When the next certificate should be requested. */
  readonly renewAt: number;
}

export interface Expectation {
  /** In the form of X509Certificate.subject. */
  readonly subject: string;
  readonly now: number;
  /** undefined: any issuer. */
  readonly issuers: readonly X509Certificate[] | undefined;
  /** What a serving certificate must contain. */
  readonly names: Names;
}

export interface Names {
  readonly ip: readonly string[];
  readonly dns: readonly string[];
}
export const noNames: Names = { ip: [], dns: [] };

export interface Unusable {
  readonly why: string;
  /** Set only if the key is usable for another request. */
  readonly keyPem?: string | undefined;
}

export function nodeSubject(nodeName: string): string {
  return `O=system:nodes\nCN=system:node:${nodeName}`;
}

export function checkCredential(stored: StoredCredential, expected: Expectation): Result<Credential, Unusable> {
  const { now, issuers, names } = expected;
  const no = (why: string, keyPem?: string) => failure({ why, keyPem });
  let chain: readonly X509Certificate[];
  let fits: boolean;
  try {
    const key = createPrivateKey(stored.keyPem);
    chain = readBundle(stored.certificatePem);
    fits = chain[0]?.checkPrivateKey(key) === true;
  } catch {
    return no('cannot be read');
  }
  const [leaf, ...others] = chain;
  if (leaf === undefined) return no('holds no certificate');
  if (!fits) return no('holds a key that is not that of its certificate');
  const { keyPem } = stored;
  // A certificate of another node: its key belongs to that node too, since node names do not change.
  if (leaf.subject !== expected.subject) return no(`is for ${oneLine(leaf.subject)}`);
  const [notBefore, notAfter] = [leaf.validFromDate.getTime(), leaf.validToDate.getTime()];
  if (now >= notAfter) return no(`expired at ${leaf.validToDate.toISOString()}`, keyPem);
  if (now < notBefore)
    return no(`is valid only from ${leaf.validFromDate.toISOString()} on: check the clock of this machine`, keyPem);
  if (issuers !== undefined && !isIssuedBy(leaf, others, issuers))
    return no(`was issued by ${oneLine(leaf.issuer)}, which is not in the client CA bundle`, keyPem);
  const lacking = [
    ...names.ip.filter((name) => leaf.checkIP(name) === undefined),
    ...names.dns.filter((name) => leaf.checkHost(name, { wildcards: false }) === undefined),
  ];
  if (lacking.length > 0) return no(`lacks the names ${lacking.join(', ')}`, keyPem);
  const credential = { ...stored, leaf, notBefore, notAfter };
  return success({ ...credential, renewAt: renewalMoment(credential) });
}

/**
 * 70 to 80 % of the lifetime after the certificate was received. A renewal at the end would be too late, since
 * client-go does not call before it. The jitter comes from the certificate's hash, so the nodes of a pool renew at different times
 * and every call of one node returns the same moment.
 */
export function renewalMoment({ leaf, notBefore, notAfter, issuedAt }: Omit<Credential, 'renewAt'>): number {
  // The recorded time may be wrong if the clock was wrong then.
  const from = issuedAt !== undefined && issuedAt > notBefore && issuedAt < notAfter ? issuedAt : notBefore;
  const jitter = createHash('sha256').update(leaf.raw).digest().readUInt32BE() / 2 ** 32;
  return Math.floor(from + (notAfter - from) * (0.7 + 0.1 * jitter));
}

/** Compares signatures, since any CA can have the same name. */
function isIssuedBy(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  issuers: readonly X509Certificate[],
): boolean {
  const hasIssued = (issuer: X509Certificate, subject: X509Certificate): boolean =>
    issuer.ca && subject.checkIssued(issuer) && subject.verify(issuer.publicKey);
  let current = leaf;
  for (const next of [...others, undefined]) {
    if (issuers.some((issuer) => hasIssued(issuer, current))) return true;
    if (next === undefined || !hasIssued(next, current)) return false;
    current = next;
  }
  return false;
}

/** The certificates of a bundle. Throws if one is malformed. */
export function readBundle(pem: string): readonly X509Certificate[] {
  return pemBlocks(pem, 'CERTIFICATE').map((block) => new X509Certificate(block));
}

function oneLine(name: string): string {
  return name.replaceAll('\n', ', ').slice(0, 300);
}
