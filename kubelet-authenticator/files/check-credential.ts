/**
 * Is this certificate worth presenting? The same question of one out of the cache and of one that just came: its key is
 * ours, its names are ours, its time is now, and an issuer that the API server believes made it.
 *
 * On the way of every call of the kubelet: `node:crypto` and nothing else.
 */
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import type { StoredCredential } from './cache.ts';

export interface Credential extends StoredCredential {
  readonly leaf: X509Certificate;
  readonly notBefore: number;
  readonly notAfter: number;
  /** When a new one should be asked for. */
  readonly renewAt: number;
}

export interface Expectation {
  /** As X509Certificate.subject has it. */
  readonly subject: string;
  readonly now: number;
  /** Absent: whoever issued it. */
  readonly issuers?: readonly X509Certificate[];
  /** IP addresses and DNS names it must hold; of serving certificates. */
  readonly names?: readonly string[];
}

export type CheckedCredential =
  | { readonly ok: true; readonly credential: Credential }
  /** `key`: it can be asked for again with this key, which is sound. */
  | { readonly ok: false; readonly problem: string; readonly keyPem?: string };

export function nodeSubject(nodeName: string): string {
  return `O=system:nodes\nCN=system:node:${nodeName}`;
}

export function checkCredential(stored: StoredCredential, expected: Expectation): CheckedCredential {
  const { now, issuers, names = [] } = expected;
  const no = (problem: string, keyPem?: string): CheckedCredential => ({
    ok: false,
    problem,
    ...(keyPem === undefined ? {} : { keyPem }),
  });
  let chain: readonly X509Certificate[];
  let fits: boolean;
  try {
    const key = createPrivateKey(stored.keyPem);
    chain = splitPem(stored.certificatePem).map((pem) => new X509Certificate(pem));
    fits = chain[0]?.checkPrivateKey(key) === true;
  } catch {
    return no('cannot be read');
  }
  const [leaf, ...others] = chain;
  if (leaf === undefined) return no('holds no certificate');
  if (!fits) return no('holds a key that is not that of its certificate');
  const { keyPem } = stored;
  // With another's name the key, too, was another's: node names do not change.
  if (leaf.subject !== expected.subject) return no(`is for ${oneLine(leaf.subject)}`);
  const [notBefore, notAfter] = [leaf.validFromDate.getTime(), leaf.validToDate.getTime()];
  if (now >= notAfter) return no(`expired at ${leaf.validToDate.toISOString()}`, keyPem);
  if (now < notBefore)
    return no(`is valid only from ${leaf.validFromDate.toISOString()} on: is the clock right?`, keyPem);
  if (issuers !== undefined && !isIssuedBy(leaf, others, issuers))
    return no(`was issued by ${oneLine(leaf.issuer)}, which is not in the client CA bundle`, keyPem);
  const lacking = names.filter((name) => !holds(leaf, name));
  if (lacking.length > 0) return no(`lacks the names ${lacking.join(', ')}`, keyPem);
  const credential = { ...stored, leaf, notBefore, notAfter };
  return { ok: true, credential: { ...credential, renewAt: renewalMoment(credential) } };
}

/**
 * 70 to 80 % of the way from when it was issued to its end; never the end itself, since client-go asks again only then.
 * Where in between is the certificate's own hash: the nodes of a pool do not all come at once, and each call says the same.
 */
export function renewalMoment({ leaf, notBefore, notAfter, issuedAt }: Omit<Credential, 'renewAt'>): number {
  // A clock that was wrong when it was written down would put the moment anywhere.
  const from = issuedAt !== undefined && issuedAt > notBefore && issuedAt < notAfter ? issuedAt : notBefore;
  const jitter = createHash('sha256').update(leaf.raw).digest().readUInt32BE() / 2 ** 32;
  return Math.floor(from + (notAfter - from) * (0.7 + 0.1 * jitter));
}

/** By signature, not by name: anybody can call a CA so. */
function isIssuedBy(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  issuers: readonly X509Certificate[],
): boolean {
  const made = (issuer: X509Certificate, subject: X509Certificate): boolean =>
    issuer.ca && subject.checkIssued(issuer) && subject.verify(issuer.publicKey);
  let current = leaf;
  for (const next of [...others, undefined]) {
    if (issuers.some((issuer) => made(issuer, current))) return true;
    if (next === undefined || !made(next, current)) return false;
    current = next;
  }
  return false;
}

function holds(leaf: X509Certificate, name: string): boolean {
  // checkIP throws for what is no address; node:net, which would tell, is not worth its time on every call.
  const isAddress = name.includes(':') || /^[\d.]+$/.test(name);
  return (isAddress ? leaf.checkIP(name) : leaf.checkHost(name, { wildcards: false })) !== undefined;
}

/** The certificates of a bundle; throws for one that cannot be read. */
export function readBundle(pem: string): readonly X509Certificate[] {
  return splitPem(pem).map((block) => new X509Certificate(block));
}

export function splitPem(pem: string): readonly string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\r?\n?/g) ?? [];
}

function oneLine(name: string): string {
  return name.replaceAll('\n', ', ').slice(0, 300);
}
