/** Loads a CA whose key is in KMS or a file, and checks that its certificate and key match. */
import { checkCaCertificate } from '../x509/ca-certificate.ts';
import type { Authority } from '../x509/leaf-certificate.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import type { CaConfiguration } from '../configuration/model/cluster.ts';
import type { SignatureAlgorithm, Signer } from '../ports/signer.ts';
import type { Instant } from '../ports/instant.ts';

export interface CaRecord {
  /** The name in countersign.yaml. */
  readonly name: string;
  /** `Signer.keyId` of its key. */
  readonly keyId: string;
  /** DER. */
  readonly certificate: Uint8Array;
  readonly createdAt: Instant;
}

/** Stores one CA for each name of a cluster, permanently: a CA cannot be replaced. */
export interface CaStore {
  /** Read-after-write consistent. */
  find(name: string): Promise<CaRecord | undefined>;
  /** Writes the CA only if no CA has that name; `false`: one exists. */
  add(record: CaRecord): Promise<boolean>;
}

export interface CaPublicKey {
  /** DER SubjectPublicKeyInfo. */
  readonly spki: Uint8Array;
  /** May contain names that this program does not know. */
  readonly algorithms: readonly string[];
}

export interface CaKey {
  readonly keyId: string;
  publicKey(): Promise<CaPublicKey>;
  signer(algorithm: SignatureAlgorithm): Signer;
}

/** `Missing`: the CA was not created yet. With any other fault the stored CA must not be used until an operator has checked it. */
export type CaFault = 'Missing' | 'OtherKey' | 'AlgorithmMismatch' | 'CertificateMismatch';
export type LoadedCa = Result<Authority, { readonly why: CaFault; readonly message: string }>;

/** The stored CA, checked against its key. Throws if the store or the key does not answer. */
export async function loadAuthority(ca: CaConfiguration, key: CaKey, store: CaStore): Promise<LoadedCa> {
  const [record, publicKey] = await Promise.all([store.find(ca.name), key.publicKey()]);
  if (record === undefined) return fault('Missing', `there is no CA ${ca.name} yet`);
  return authorityFrom(record, ca, key, publicKey);
}

/** The CA of this record, if record, key and configuration match. */
export function authorityFrom(
  record: CaRecord,
  ca: CaConfiguration,
  key: CaKey,
  { spki, algorithms }: CaPublicKey,
): LoadedCa {
  // Clients trust the old key. A new key needs a new CA with its own name.
  if (record.keyId !== key.keyId) return fault('OtherKey', `CA ${ca.name} was made with another key`);
  const wrongAlgorithm = algorithmFault(ca, algorithms);
  if (wrongAlgorithm !== undefined) return wrongAlgorithm;
  const faults = checkCaCertificate(record.certificate, spki);
  if (faults.length > 0)
    return fault('CertificateMismatch', `the certificate of CA ${ca.name} cannot be used: ${faults.join('; ')}`);
  const { certificate } = record;
  const signer = key.signer(ca.signatureAlgorithm);
  return success({ name: ca.name, certificate, intermediates: [], signer });
}

export function algorithmFault(
  ca: CaConfiguration,
  algorithms: readonly string[],
): Extract<LoadedCa, { ok: false }> | undefined {
  if (algorithms.includes(ca.signatureAlgorithm)) return undefined;
  return fault('AlgorithmMismatch', `the key of CA ${ca.name} does not sign with ${ca.signatureAlgorithm}`);
}

function fault(why: CaFault, message: string): Extract<LoadedCa, { ok: false }> {
  return failure({ why, message });
}
