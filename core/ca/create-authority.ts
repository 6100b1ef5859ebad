/** Creates a CA of a cluster, once. Its key is in KMS or a file. */
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
 * Creates the CA if it does not exist. An existing CA is returned unchanged, even if the configuration has changed since.
 * It can be repeated after any failure and run concurrently: only one CA is created.
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
  // This write creates the CA; of concurrent writers the first one wins. After a crash before it, the certificate is lost, but
  // only this process knew it, so no client trusts it.
  const created = await store.add(record);
  const kept = created ? record : await store.find(ca.name);
  if (kept === undefined) throw new Error(`CA ${ca.name} was deleted while it was created`);
  return { created, ...authorityFrom(kept, ca, key, publicKey) };
}
