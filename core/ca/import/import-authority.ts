/** Puts an imported CA certificate in force, once. */
import { authorityFrom, publicKeyOf } from '../authority.ts';
import type { CaFault, CaKey, CaRecord, CaStore } from '../authority.ts';
import type { CheckedImport } from './check-import.ts';
import type { ImportFault } from './faults.ts';
import type { ImportedCertificates } from './files.ts';
import type { ImportedCa } from '../../configuration/model/cluster.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';
import type { Authority } from '../../x509/leaf-certificate.ts';

export interface ImportPorts {
  readonly key: CaKey;
  readonly store: CaStore;
  readonly now: Instant;
}

export interface ImportedAuthority {
  readonly authority: Authority;
  /** False if it was in force before, with the same certificate and chain. */
  readonly created: boolean;
  readonly notes: readonly string[];
}

type Refusal = ImportFault | { readonly why: CaFault | 'AlreadyInForce'; readonly message: string };

/**
 * Checks the certificate and its chain against the key, and stores them. It can be repeated after any failure. A CA that is in
 * force is not changed: clients trust its certificate.
 */
export async function importAuthority(
  ca: ImportedCa,
  files: ImportedCertificates,
  { key, store, now }: ImportPorts,
): Promise<Result<ImportedAuthority, Refusal>> {
  const shown = await publicKeyOf(ca, key);
  if (!shown.ok) return shown;
  const publicKey = shown.value;
  // Imported only here, because its library takes longer to load than the rest of the command line.
  const { checkImport } = await import('./check-import.ts');
  const checked = await checkImport(ca, files, publicKey.spki, now);
  if (!checked.ok) return checked;
  const record = recordOf(ca, key, checked.value, now);
  // Before it is stored: what is stored is never changed.
  const usable = authorityFrom(record, ca, key, publicKey);
  if (!usable.ok) return usable;
  const created = (await store.find(ca.name)) === undefined && (await store.add(record));
  const kept = created ? record : await store.find(ca.name);
  if (kept === undefined) throw new Error(`CA ${ca.name} was deleted while it was imported`);
  if (!isSame(kept, record))
    return failure({
      why: 'AlreadyInForce',
      message: `CA ${ca.name} is in force with another certificate or chain; it was left as it is`,
    });
  const loaded = authorityFrom(kept, ca, key, publicKey);
  return loaded.ok ? success({ authority: loaded.value, created, notes: checked.value.notes }) : loaded;
}

function recordOf(ca: ImportedCa, key: CaKey, { certificate, chain }: CheckedImport, now: Instant): CaRecord {
  return { name: ca.name, keyId: key.keyId, certificate, chain, createdAt: now };
}

function isSame(kept: CaRecord, given: CaRecord): boolean {
  const [a, b] = [kept, given].map(({ certificate, chain }) => Buffer.concat([certificate, ...chain]));
  return a !== undefined && b !== undefined && a.equals(b);
}
