/**
 * A CA whose key lies in a file beside its certificate: for the demo, development and tests.
 *
 *     <dir>/<name>/key.pem            PKCS #8, mode 0600
 *                 /certificate.pem   followed by the certificates of the CAs above it, unless it is self-signed
 *                 /authority.json     the signature algorithm
 *
 * The folder is filled under another name and then renamed. A rename is atomic, so a crash leaves no incomplete CA, and it
 * never replaces an existing CA. The next process removes what a killed process left.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { mkdtemp, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { certificatesOf } from '../../core/ca/authority.ts';
import { makeCaCertificate } from '../../core/ca/make-ca-certificate.ts';
import type { CaOrigin, MadeCa } from '../../core/ca/make-ca-certificate.ts';
import { checkCaCertificate } from '../../core/x509/ca-certificate.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import type { CaConfiguration } from '../../core/configuration/model/cluster.ts';
import { signatureDigests } from '../../core/ports/signer.ts';
import type { SignatureAlgorithm } from '../../core/ports/signer.ts';
import { pemBlocks, toPem } from '../../core/encoding/pem.ts';
import { makeFolder } from './make-folder.ts';
import { refuseInsideLambda } from './refuse-in-lambda.ts';
import { embeddedSigner, generateKey, publicKeyInfo } from './signer.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** The file operations, which a test replaces to make each of them fail. */
export interface CaFiles {
  makeFolder(path: string): Promise<unknown>;
  makeTemporaryFolder(prefix: string): Promise<string>;
  /** Returns when the file is on the disk; fails if it exists. */
  writeNew(path: string, content: string, mode: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Makes the names in this folder survive a power cut. */
  syncFolder(path: string): Promise<void>;
  remove(path: string): Promise<void>;
}

/**
 * `Missing`: it was never made. `AwaitsImport`: an operator has to import its certificate. `Damaged`: its files do not fit
 * together.
 */
type Unusable = 'Missing' | 'AwaitsImport' | 'Damaged';

/** There is no usable CA. */
export class CaUnusableError extends Error {
  override readonly name = 'CaUnusableError';
  readonly why: Unusable;
  constructor(why: Unusable, message: string) {
    super(message);
    this.why = why;
  }
}

/** A new CA in memory only. `issuer`: of a CA that is not self-signed. */
export async function temporaryCa(ca: CaConfiguration, origin: CaOrigin, issuer?: Authority): Promise<Authority> {
  if (ca.kind === 'imported')
    throw new CaUnusableError('AwaitsImport', `CA ${ca.name} is imported, so it needs a data folder`);
  return (await newCa(ca, origin, issuer)).authority;
}

/**
 * Makes the CA unless it exists; the CA that issues its certificate must exist. An existing CA is returned as it is, even if `ca`
 * has changed since.
 */
export async function createEmbeddedCa(
  dir: string,
  ca: CaConfiguration,
  origin: CaOrigin,
  files: CaFiles = realFiles,
): Promise<{ readonly created: boolean; readonly authority: Authority }> {
  const existing = await loadUnlessMissing(dir, ca.name);
  if (existing !== undefined) {
    await removeDrafts(dir, ca.name, files);
    return { created: false, authority: existing };
  }

  if (ca.kind === 'imported') throw new CaUnusableError('AwaitsImport', `CA ${ca.name} awaits its import into ${dir}`);

  const issuer = ca.kind === 'issued' ? await loadWithChain(dir, ca.issuedBy) : undefined;
  const { authority, privateKey } = await newCa(ca, origin, issuer?.authority);
  const chain = issuer === undefined ? [] : [issuer.authority.certificate, ...issuer.chain];
  const parts = { privateKey, algorithm: authority.signer.algorithm, certificates: [authority.certificate, ...chain] };
  if (await putCa(dir, ca.name, parts, files)) return { created: true, authority };
  return { created: false, authority: await loadEmbeddedCa(dir, ca.name) };
}

interface CaParts {
  readonly privateKey: KeyObject;
  readonly algorithm: SignatureAlgorithm;
  /** DER: that of the CA, then its chain. */
  readonly certificates: readonly Uint8Array[];
}

/** Writes a CA only if no CA has that name; `false`: one exists. */
export async function putCa(
  dir: string,
  name: string,
  { privateKey, algorithm, certificates }: CaParts,
  files: CaFiles = realFiles,
): Promise<boolean> {
  await files.makeFolder(dir);
  const draft = await files.makeTemporaryFolder(join(dir, draftPrefix(name)));
  try {
    await files.writeNew(join(draft, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), 0o600);
    await files.writeNew(join(draft, 'certificate.pem'), pemOf(certificates), 0o644);
    await files.writeNew(
      join(draft, 'authority.json'),
      `${JSON.stringify({ version: 1, signatureAlgorithm: algorithm })}\n`,
      0o644,
    );
    await files.syncFolder(draft);
    // Until here a crash leaves a draft that is never read, with a key that certified nothing here. After the rename the CA is
    // complete.
    await files.rename(draft, join(dir, name));
  } catch (error) {
    await files.remove(draft).catch(() => undefined);
    // Renaming onto a folder that is not empty fails: another process made the CA first, and that CA counts.
    if ((await loadUnlessMissing(dir, name)) !== undefined) return false;
    throw error;
  }
  await files.syncFolder(dir);
  await removeDrafts(dir, name, files);
  return true;
}

/** Of folders that are not complete. The name of a CA contains no dot, so no CA has this name. */
export function draftPrefix(name: string): string {
  return `.${name}.draft-`;
}

/** Once the CA exists, every draft of it is obsolete. A process that still fills one fails now, and loads the existing CA. */
async function removeDrafts(dir: string, name: string, files: CaFiles): Promise<void> {
  const entries = (await readdir(dir).catch(() => [])).filter((entry) => entry.startsWith(draftPrefix(name)));
  // The key in a draft certified nothing. If a draft cannot be removed, the next start tries again.
  for (const entry of entries) await files.remove(join(dir, entry)).catch(() => undefined);
}

/** The CA of that name, after checking that its parts belong together. Throws CaUnusableError. */
export async function loadEmbeddedCa(dir: string, name: string): Promise<Authority> {
  return (await loadWithChain(dir, name)).authority;
}

export interface EmbeddedCa {
  readonly authority: Authority;
  /** DER: the CAs above it, nearest first, the root last. */
  readonly chain: readonly Uint8Array[];
}

async function loadWithChain(dir: string, name: string): Promise<EmbeddedCa> {
  refuseInsideLambda('the embedded CA', process.env);
  const folder = folderOf(dir, name);
  // This is checked first: a folder that another process renames into place after the check has all of its files.
  if (await isEmpty(folder)) throw new CaUnusableError('Missing', `there is no CA in ${folder}`);
  const signatureAlgorithm = algorithmIn(await read(folder, 'authority.json'), folder);
  const [keyPem, certificatePem] = [await read(folder, 'key.pem'), await read(folder, 'certificate.pem')];
  try {
    const key = createPrivateKey(keyPem);
    const [certificate = new Uint8Array(), ...chain] = pemBlocks(certificatePem, 'CERTIFICATE').map(
      (pem) => new Uint8Array(new X509Certificate(pem).raw),
    );
    const faults = checkCaCertificate(certificate, publicKeyInfo(key));
    if (faults.length > 0) throw new Error(faults.join('; '));
    const signer = embeddedSigner(key, signatureAlgorithm);
    return { authority: { name, ...certificatesOf(certificate, chain), signer }, chain };
  } catch (error) {
    // Messages of node:crypto about a key name the structure that is wrong, never its content.
    throw new CaUnusableError('Damaged', `the CA in ${folder} cannot be used: ${errorMessage(error)}`);
  }
}

async function loadUnlessMissing(dir: string, name: string): Promise<Authority | undefined> {
  return (await findEmbeddedCa(dir, name))?.authority;
}

/** `undefined`: there is no such CA. Throws CaUnusableError for a damaged one. */
export async function findEmbeddedCa(dir: string, name: string): Promise<EmbeddedCa | undefined> {
  try {
    return await loadWithChain(dir, name);
  } catch (error) {
    if (error instanceof CaUnusableError && error.why === 'Missing') return undefined;
    throw error;
  }
}

async function newCa(
  ca: MadeCa,
  origin: CaOrigin,
  issuer: Authority | undefined,
): Promise<{ authority: Authority; privateKey: KeyObject }> {
  const privateKey = await generateKey(ca.keySpec);
  const signer = embeddedSigner(privateKey, ca.signatureAlgorithm);
  const by = issuer === undefined ? { signer } : { signer: issuer.signer, issuer: issuer.certificate };
  const certificate = await makeCaCertificate(ca, publicKeyInfo(privateKey), by, origin);
  const chain = issuer === undefined ? [] : [...issuer.intermediates, issuer.root ?? issuer.certificate];
  return { authority: { name: ca.name, ...certificatesOf(certificate, chain), signer }, privateKey };
}

function pemOf(certificates: readonly Uint8Array[]): string {
  return certificates.map((certificate) => toPem('CERTIFICATE', certificate)).join('');
}

/** Names in the configuration are DNS labels; another name could lead out of the folder. */
function folderOf(dir: string, name: string): string {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) throw new Error('a CA name is a DNS label');
  return join(dir, name);
}

async function read(folder: string, file: string): Promise<string> {
  try {
    return await readFile(join(folder, file), 'utf8');
  } catch (error) {
    const what = (error as { code?: unknown }).code === 'ENOENT' ? `no ${file}` : errorMessage(error);
    throw new CaUnusableError('Damaged', `the CA in ${folder} cannot be used: ${what}`);
  }
}

/** Absent or empty, so that a new CA replaces nothing. */
async function isEmpty(folder: string): Promise<boolean> {
  try {
    return (await readdir(folder)).length === 0;
  } catch (error) {
    return (error as { code?: unknown }).code === 'ENOENT';
  }
}

function algorithmIn(json: string, folder: string): SignatureAlgorithm {
  try {
    const { version, signatureAlgorithm } = JSON.parse(json) as { version?: unknown; signatureAlgorithm?: unknown };
    if (version === 1 && Object.hasOwn(signatureDigests, String(signatureAlgorithm)))
      return signatureAlgorithm as SignatureAlgorithm;
  } catch {
    // Not JSON: the same error.
  }
  throw new CaUnusableError('Damaged', `the CA in ${folder} has an authority.json this program does not understand`);
}

const realFiles: CaFiles = {
  makeFolder: async (path) => makeFolder(path, 0o700),
  makeTemporaryFolder: (prefix) => mkdtemp(prefix),
  writeNew: (path, content, mode) => writeFile(path, content, { mode, flag: 'wx', flush: true }),
  rename,
  syncFolder: async (path) => {
    const folder = await open(path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  },
  remove: (path) => rm(path, { recursive: true, force: true }),
};
