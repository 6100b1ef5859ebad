/** Loads a CA whose key is in KMS or a file, and checks that its certificate and key match. */
import { checkCaCertificate } from '../x509/ca-certificate.ts';
import type { Authority } from '../x509/leaf-certificate.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import type { CaConfiguration } from '../configuration/model/cluster.ts';
import type { SignatureAlgorithm, Signer } from '../ports/signer.ts';
import { KeyStateError } from '../ports/errors.ts';
import type { Instant } from '../ports/instant.ts';

export interface CaRecord {
  /** The name in countersign.yaml. */
  readonly name: string;
  /** `Signer.keyId` of its key. */
  readonly keyId: string;
  /** DER. */
  readonly certificate: Uint8Array;
  /** DER: the CAs above it, nearest first, the root last; empty for a self-signed CA. */
  readonly chain: readonly Uint8Array[];
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

/**
 * `Missing`: the CA was not created yet. `AwaitsImport`: an operator has to import its certificate. `AwaitsIssuer`: the CA that
 * signs its certificate is not in force. `KeyState`: the key awaits its material, is disabled, or waits for its deletion. With any other fault the stored CA must not be used until an operator has checked it.
 */
export type CaFault =
  'Missing' | 'AwaitsImport' | 'AwaitsIssuer' | 'KeyState' | 'OtherKey' | 'AlgorithmMismatch' | 'CertificateMismatch';
export type LoadedCa = Result<Authority, { readonly why: CaFault; readonly message: string }>;

/** The stored CA, checked against its key. Throws if the store or the key does not answer. */
export async function loadAuthority(ca: CaConfiguration, key: CaKey, store: CaStore): Promise<LoadedCa> {
  const [record, publicKey] = await Promise.allSettled([store.find(ca.name), key.publicKey()]);
  if (record.status === 'rejected') throw record.reason;
  // KMS does not show the public key of a key that awaits its material.
  if (record.value === undefined) return notThere(ca);
  if (publicKey.status === 'rejected') throw publicKey.reason;
  return authorityFrom(record.value, ca, key, publicKey.value);
}

/** What to say about a CA that is not in force yet. */
export function notThere(ca: CaConfiguration): Extract<LoadedCa, { ok: false }> {
  if (ca.kind !== 'imported') return caFault('Missing', `there is no CA ${ca.name} yet`);
  return caFault(
    'AwaitsImport',
    ca.keyMaterial === 'imported'
      ? `CA ${ca.name} awaits its key and its certificate (countersign ca import-key)`
      : `CA ${ca.name} awaits its certificate (countersign ca csr, then countersign ca import)`,
  );
}

/** The CA of this record, if record, key and configuration match. */
export function authorityFrom(
  record: CaRecord,
  ca: CaConfiguration,
  key: CaKey,
  { spki, algorithms }: CaPublicKey,
): LoadedCa {
  // Clients trust the old key. A new key needs a new CA with its own name.
  if (record.keyId !== key.keyId) return caFault('OtherKey', `CA ${ca.name} was made with another key`);
  const wrongAlgorithm = algorithmFault(ca, algorithms);
  if (wrongAlgorithm !== undefined) return wrongAlgorithm;
  const faults = checkCaCertificate(record.certificate, spki);
  if (faults.length > 0)
    return caFault('CertificateMismatch', `the certificate of CA ${ca.name} cannot be used: ${faults.join('; ')}`);
  const { certificate, chain } = record;
  const signer = key.signer(ca.signatureAlgorithm);
  return success({ name: ca.name, ...certificatesOf(certificate, chain), signer });
}

/** What follows a leaf of this CA is without the root: its receiver has it, or must not trust it (RFC 8446 §4.4.2). */
export function certificatesOf(
  certificate: Uint8Array,
  chain: readonly Uint8Array[],
): Pick<Authority, 'certificate' | 'intermediates' | 'root'> {
  const root = chain.at(-1);
  const intermediates = [certificate, ...chain].slice(0, chain.length);
  return { certificate, intermediates, ...(root === undefined ? {} : { root }) };
}

/** The public key; a fault if the state of the key forbids its use. Other failures are thrown. */
export async function publicKeyOf(
  { name }: CaConfiguration,
  key: CaKey,
): Promise<Result<CaPublicKey, { readonly why: CaFault; readonly message: string }>> {
  try {
    return success(await key.publicKey());
  } catch (error) {
    if (!(error instanceof KeyStateError)) throw error;
    const why = 'it awaits its material (countersign ca import-key), is disabled, or waits for its deletion';
    return caFault('KeyState', `the key of CA ${name} is not in use: ${why}`);
  }
}

export function algorithmFault(
  ca: CaConfiguration,
  algorithms: readonly string[],
): Extract<LoadedCa, { ok: false }> | undefined {
  if (algorithms.includes(ca.signatureAlgorithm)) return undefined;
  return caFault('AlgorithmMismatch', `the key of CA ${ca.name} does not sign with ${ca.signatureAlgorithm}`);
}

export function caFault(why: CaFault, message: string): Extract<LoadedCa, { ok: false }> {
  return failure({ why, message });
}
