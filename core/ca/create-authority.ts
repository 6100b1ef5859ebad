/** Makes the CA of a cluster: once, with a key in a key store. */
import { algorithmFault, authorityFrom } from './authority.ts';
import type { CaKey, CaRecord, CaStore, LoadedCa } from './authority.ts';
import { issueCaCertificate } from './issue-ca-certificate.ts';
import type { CaConfiguration } from '../configuration/model/cluster.ts';
import type { Instant } from '../ports/instant.ts';
import { caValidity } from '../x509/ca-certificate.ts';
import { serialFrom, serialOctets } from '../x509/validity.ts';

export interface CaOrigin {
  readonly now: Instant;
  /** Cryptographically strong. */
  readonly randomBytes: (count: number) => Uint8Array;
}

export type CreatedCa = LoadedCa & { readonly created: boolean };

/**
 * Makes the CA if it does not exist. An existing CA is returned unchanged, even if the configuration has changed since.
 * Safe to repeat after any failure and to run concurrently: exactly one CA results.
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
  // A crash before this write loses a certificate that only this process knew, so no client can trust it. The write makes
  // the CA exist; of concurrent writers the first one wins.
  const created = await store.add(record);
  const kept = created ? record : await store.find(ca.name);
  if (kept === undefined) throw new Error(`CA ${ca.name} was there and is gone`);
  return { created, ...authorityFrom(kept, ca, key, publicKey) };
}
