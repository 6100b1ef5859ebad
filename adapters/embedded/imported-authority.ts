/**
 * A CA of a data folder whose certificate is imported. Its key waits beside the CAs, until the certificate comes:
 *
 *     <dir>/.<name>.awaits-import/key.pem      PKCS #8, mode 0600
 */
import { createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CaKey, CaStore } from '../../core/ca/authority.ts';
import { importAuthority } from '../../core/ca/import/import-authority.ts';
import type { ImportedCertificates } from '../../core/ca/import/files.ts';
import { makeCaRequest } from '../../core/ca/make-ca-request.ts';
import type { ImportedCa } from '../../core/configuration/model/cluster.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { draftPrefix, findEmbeddedCa, putCa } from './authority.ts';
import type { CaFiles } from './authority.ts';
import { makeFolder } from './make-folder.ts';
import { algorithmsFor, embeddedSigner, generateKey, publicKeyInfo } from './signer.ts';

/** The request for the certificate. The first call makes the key. */
export async function requestForEmbedded(dir: string, ca: ImportedCa): ReturnType<typeof makeCaRequest> {
  const present = await findEmbeddedCa(dir, ca.name);
  if (present !== undefined) return makeCaRequest(ca, keyOf(await keyIn(join(dir, ca.name))));
  const folder = waitingFolder(dir, ca.name);
  try {
    return await makeCaRequest(ca, keyOf(await keyIn(folder)));
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ENOENT') throw error;
  }
  makeFolder(dir, 0o700);
  const draft = await mkdtemp(join(dir, draftPrefix(ca.name)));
  const pem = (await generateKey(ca.keySpec)).export({ type: 'pkcs8', format: 'pem' }).toString();
  await writeFile(join(draft, 'key.pem'), pem, { mode: 0o600, flush: true });
  // A rename is atomic, and fails if another process was faster: its key counts.
  await rename(draft, folder).catch(() => rm(draft, { recursive: true, force: true }));
  return makeCaRequest(ca, keyOf(await keyIn(folder)));
}

/** Without `privateKey` it takes the key that `requestForEmbedded` made, and throws Node's error ENOENT if that was never called. */
export async function importEmbeddedCa(
  dir: string,
  ca: ImportedCa,
  certificates: ImportedCertificates,
  now: Instant,
  { privateKey, files }: { readonly privateKey?: KeyObject | undefined; readonly files?: CaFiles } = {},
): ReturnType<typeof importAuthority> {
  const present = await findEmbeddedCa(dir, ca.name);
  const key = privateKey ?? (await keyIn(present === undefined ? waitingFolder(dir, ca.name) : join(dir, ca.name)));
  const store = storeIn(dir, key, ca, files);
  const imported = await importAuthority(ca, certificates, { key: keyOf(key), store, now });
  // The CA has the key now.
  if (imported.ok) await rm(waitingFolder(dir, ca.name), { recursive: true, force: true });
  return imported;
}

/** The name of a CA contains no dot, so no CA has this name. */
function waitingFolder(dir: string, name: string): string {
  return join(dir, `.${name}.awaits-import`);
}

async function keyIn(folder: string): Promise<KeyObject> {
  return createPrivateKey(await readFile(join(folder, 'key.pem')));
}

function keyOf(key: KeyObject): CaKey {
  return {
    keyId: embeddedSigner(key).keyId,
    publicKey: async () => ({ spki: publicKeyInfo(key), algorithms: algorithmsFor(key) }),
    signer: (algorithm) => embeddedSigner(key, algorithm),
  };
}

function storeIn(
  dir: string,
  privateKey: KeyObject,
  { signatureAlgorithm: algorithm }: ImportedCa,
  files: CaFiles | undefined,
): CaStore {
  return {
    async find(name) {
      const found = await findEmbeddedCa(dir, name);
      if (found === undefined) return undefined;
      const { authority, chain } = found;
      return { name, keyId: authority.signer.keyId, certificate: authority.certificate, chain, createdAt: 0 };
    },
    add: ({ name, certificate, chain }) =>
      putCa(dir, name, { privateKey, algorithm, certificates: [certificate, ...chain] }, files),
  };
}
