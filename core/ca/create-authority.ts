/** Creates a CA of a cluster, once. Its key is in KMS or a file. */
import { algorithmFault, authorityFrom, caFault, notThere } from './authority.ts';
import type { CaKey, CaPublicKey, CaRecord, CaStore, LoadedCa } from './authority.ts';
import { makeCaCertificate } from './make-ca-certificate.ts';
import type { CaOrigin } from './make-ca-certificate.ts';
import type { CaConfiguration, IssuedCa, SelfSignedCa } from '../configuration/model/cluster.ts';

export interface CreationPorts {
  /** The CAs of the cluster, where a CA finds its issuer. */
  readonly cas: ReadonlyMap<string, CaConfiguration>;
  readonly key: (ca: string) => CaKey;
  readonly store: CaStore;
  readonly origin: () => CaOrigin;
}

export type CreatedCa = LoadedCa & { readonly created: boolean };

/**
 * Creates the CA if it does not exist, and before it the CA that issues its certificate. An existing CA is returned unchanged,
 * even if the configuration has changed since. It can be repeated after any failure and run concurrently: only one CA is created.
 */
export async function createAuthority(ca: CaConfiguration, ports: CreationPorts): Promise<CreatedCa> {
  const key = ports.key(ca.name);
  const existing = await ports.store.find(ca.name);
  if (existing !== undefined) return { created: false, ...authorityFrom(existing, ca, key, await key.publicKey()) };
  // Its key is not asked: KMS does not show the public key of a key that awaits its material.
  if (ca.kind === 'imported') return { created: false, ...notThere(ca) };

  const publicKey = await key.publicKey();
  const wrongAlgorithm = algorithmFault(ca, publicKey.algorithms);
  if (wrongAlgorithm !== undefined) return { created: false, ...wrongAlgorithm };
  const made = ca.kind === 'issued' ? await issuedRecord(ca, publicKey, ports) : await selfSigned(ca, publicKey, ports);
  if ('problem' in made) return { created: false, ...made };
  // This write creates the CA; of concurrent writers the first one wins. After a crash before it, the certificate is lost, but
  // only this process knew it, so no client trusts it.
  const created = await ports.store.add(made);
  const kept = created ? made : await ports.store.find(ca.name);
  if (kept === undefined) throw new Error(`CA ${ca.name} was deleted while it was created`);
  return { created, ...authorityFrom(kept, ca, key, publicKey) };
}

async function selfSigned(ca: SelfSignedCa, { spki }: CaPublicKey, ports: CreationPorts): Promise<CaRecord> {
  const key = ports.key(ca.name);
  const origin = ports.origin();
  const certificate = await makeCaCertificate(ca, spki, { signer: key.signer(ca.signatureAlgorithm) }, origin);
  return { name: ca.name, keyId: key.keyId, certificate, chain: [], createdAt: origin.now };
}

async function issuedRecord(
  ca: IssuedCa,
  { spki }: CaPublicKey,
  ports: CreationPorts,
): Promise<CaRecord | Extract<LoadedCa, { ok: false }>> {
  const issuer = ports.cas.get(ca.issuedBy);
  if (issuer === undefined) throw new RangeError(`CA ${ca.name} names an issuer that is not configured`);
  const above = await createAuthority(issuer, ports);
  if (!above.ok) return caFault('AwaitsIssuer', `CA ${ca.name} awaits its issuer: ${above.problem.message}`);
  const record = await ports.store.find(issuer.name);
  if (record === undefined) throw new Error(`CA ${issuer.name} was deleted while it was used`);
  const { signer } = above.value;
  const origin = ports.origin();
  const certificate = await makeCaCertificate(ca, spki, { signer, issuer: record.certificate }, origin);
  const chain = [record.certificate, ...record.chain];
  return { name: ca.name, keyId: ports.key(ca.name).keyId, certificate, chain, createdAt: origin.now };
}
