/**
 * A CA whose key lies elsewhere: made once, and taken into use only while its certificate and its key belong together.
 */
import { caValidity, checkCaCertificate, issueCaCertificate } from '../x509/ca-certificate.ts';
import { CertificateUnreadableError } from '../x509/read-certificate.ts';
import type { Authority } from '../x509/leaf-certificate.ts';
import type { CaConfiguration } from '../configuration/model/cluster.ts';
import { serialFrom, serialOctets } from '../x509/validity.ts';
import type { SignatureAlgorithm, Signer } from '../ports/signer.ts';
import type { Instant } from '../ports/instant.ts';

/** What is kept of a CA. */
export interface CaRecord {
  /** As in countersign.yaml. */
  readonly name: string;
  /** `Signer.keyId` of its key. */
  readonly keyId: string;
  /** DER. */
  readonly certificate: Uint8Array;
  readonly createdAt: Instant;
}

/** Remembers one CA for each name of a cluster, for good: there is no way to replace one. */
export interface CaStore {
  /** Read-after-write consistent. */
  find(name: string): Promise<CaRecord | undefined>;
  /** Writes the CA only if that name has none; `false`: it has one. */
  add(record: CaRecord): Promise<boolean>;
}

export interface CaPublicKey {
  /** DER SubjectPublicKeyInfo. */
  readonly spki: Uint8Array;
  /** What it can sign with; names we do not know may be among them. */
  readonly algorithms: readonly string[];
}

/** The key of one CA. */
export interface CaKey {
  readonly keyId: string;
  publicKey(): Promise<CaPublicKey>;
  signer(algorithm: SignatureAlgorithm): Signer;
}

/** `Missing`: none was made. The others: what is there must not be used until an operator has looked at it. */
export type CaFault = 'Missing' | 'OtherKey' | 'AlgorithmMismatch' | 'CertificateMismatch';
export type LoadedCa =
  | { readonly ok: true; readonly authority: Authority }
  | { readonly ok: false; readonly why: CaFault; readonly message: string };

/** The CA, after asking its key who it is. Throws when store or key cannot be asked. */
export async function loadAuthority(ca: CaConfiguration, key: CaKey, store: CaStore): Promise<LoadedCa> {
  const [record, publicKey] = await Promise.all([store.find(ca.name), key.publicKey()]);
  if (record === undefined) return fault('Missing', `there is no CA ${ca.name} yet`);
  return authorityFrom(record, ca, key, publicKey);
}

function authorityFrom(record: CaRecord, ca: CaConfiguration, key: CaKey, { spki, algorithms }: CaPublicKey): LoadedCa {
  // Its clients trust the old key. Whoever wants another makes another CA, under a name of its own.
  if (record.keyId !== key.keyId) return fault('OtherKey', `CA ${ca.name} was made with another key`);
  const wrongAlgorithm = algorithmFault(ca, algorithms);
  if (wrongAlgorithm !== undefined) return wrongAlgorithm;
  const faults = certificateFaults(record.certificate, spki);
  if (faults.length > 0)
    return fault('CertificateMismatch', `the certificate of CA ${ca.name} cannot be used: ${faults.join('; ')}`);
  const { certificate } = record;
  const signer = key.signer(ca.signatureAlgorithm);
  return { ok: true, authority: { name: ca.name, certificate, intermediates: [], signer } };
}

function algorithmFault(ca: CaConfiguration, algorithms: readonly string[]): LoadedCa | undefined {
  if (algorithms.includes(ca.signatureAlgorithm)) return undefined;
  return fault('AlgorithmMismatch', `the key of CA ${ca.name} does not sign with ${ca.signatureAlgorithm}`);
}

function certificateFaults(certificate: Uint8Array, spki: Uint8Array): readonly string[] {
  try {
    return checkCaCertificate(certificate, spki);
  } catch (error) {
    if (error instanceof CertificateUnreadableError) return [error.message];
    throw error;
  }
}

function fault(why: CaFault, message: string): LoadedCa & { readonly ok: false } {
  return { ok: false, why, message };
}

/** Where time and chance come from. */
export interface CaOrigin {
  readonly now: Instant;
  /** Cryptographically strong. */
  readonly randomBytes: (count: number) => Uint8Array;
}

export type CreatedCa = LoadedCa & { readonly created: boolean };

/**
 * Makes the CA unless there is one, which is then given as it is, whatever the configuration says by now. May be
 * repeated after any failure, and done by several at once: there is one CA in the end.
 */
export async function createAuthority(
  ca: CaConfiguration,
  key: CaKey,
  store: CaStore,
  { now, randomBytes }: CaOrigin,
): Promise<CreatedCa> {
  const existing = await store.find(ca.name);
  const publicKey = await key.publicKey();
  if (existing !== undefined) return { created: false, ...authorityFrom(existing, ca, key, publicKey) };
  const wrongAlgorithm = algorithmFault(ca, publicKey.algorithms);
  if (wrongAlgorithm !== undefined) return { created: false, ...wrongAlgorithm };

  const template = {
    subject: ca.subject,
    spki: publicKey.spki,
    serial: serialFrom(randomBytes(serialOctets)),
    ...caValidity(now, ca.validitySeconds),
    pathLength: ca.pathLen,
  };
  const certificate = await issueCaCertificate(template, key.signer(ca.signatureAlgorithm));
  const record: CaRecord = { name: ca.name, keyId: key.keyId, certificate, createdAt: now };
  // Until here a crash leaves a certificate that only this process knew: nobody can have trusted it. With the write the
  // CA is there; of several who try, the first one's.
  const created = await store.add(record);
  const kept = created ? record : await store.find(ca.name);
  if (kept === undefined) throw new Error(`CA ${ca.name} was there and is gone`);
  return { created, ...authorityFrom(kept, ca, key, publicKey) };
}
