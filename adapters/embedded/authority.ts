/**
 * A self-signed CA whose key lies in a file beside its certificate: for the demo, development and tests.
 *
 *     <dir>/<name>/key.pem            PKCS #8, mode 0600
 *                 /certificate.pem
 *                 /authority.json     what the key signs with
 *
 * The folder appears whole or not at all: it is filled under another name and renamed into place, which no crash can
 * interrupt halfway and which never replaces a CA that is there. What a killed process left is removed by the next one.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CaOrigin } from '../../core/ca/create-authority.ts';
import { issueCaCertificate } from '../../core/ca/issue-ca-certificate.ts';
import { caValidity, checkCaCertificate } from '../../core/x509/ca-certificate.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import type { CaConfiguration } from '../../core/configuration/model/cluster.ts';
import { serialFrom, serialOctets } from '../../core/x509/validity.ts';
import type { SignatureAlgorithm } from '../../core/ports/signer.ts';
import { toPem } from '../../core/encoding/pem.ts';
import { refuseInsideLambda } from './refuse-in-lambda.ts';
import { embeddedSigner, generateKey, publicKeyInfo, signatureAlgorithms } from './signer.ts';
import { errorMessage } from '../../core/outcome/error-message.ts';

/** The steps of writing, in the order they are taken; a test lets each of them fail. */
export interface CaFiles {
  makeFolder(path: string): Promise<unknown>;
  makeTemporaryFolder(prefix: string): Promise<string>;
  /** On the disk when it returns; fails when the file exists. */
  writeNew(path: string, content: string, mode: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Makes names in this folder survive a power cut. */
  syncFolder(path: string): Promise<void>;
  remove(path: string): Promise<void>;
}

/** No usable CA is there. `Missing`: none was made. `Damaged`: what is there does not fit together. */
export class CaUnusableError extends Error {
  override readonly name = 'CaUnusableError';
  readonly why: 'Missing' | 'Damaged';
  constructor(why: 'Missing' | 'Damaged', message: string) {
    super(message);
    this.why = why;
  }
}

/** A new CA that is gone with the process. */
export async function temporaryCa(ca: CaConfiguration, origin: CaOrigin): Promise<Authority> {
  return (await newCa(ca, origin)).authority;
}

/** Makes the CA unless it is there: then it is given as it is, whatever `ca` says by now. */
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

  const { authority, privateKey } = await newCa(ca, origin);
  const { algorithm } = authority.signer;
  await files.makeFolder(dir);
  const draft = await files.makeTemporaryFolder(join(dir, draftPrefix(ca.name)));
  try {
    await files.writeNew(join(draft, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), 0o600);
    await files.writeNew(join(draft, 'certificate.pem'), toPem('CERTIFICATE', authority.certificate), 0o644);
    await files.writeNew(
      join(draft, 'authority.json'),
      `${JSON.stringify({ version: 1, signatureAlgorithm: algorithm })}\n`,
      0o644,
    );
    await files.syncFolder(draft);
    // Until here a crash leaves a draft nobody looks at, with a key that certified nothing. After the rename the CA is
    // there, complete.
    await files.rename(draft, join(dir, ca.name));
  } catch (error) {
    await files.remove(draft).catch(() => undefined);
    // Renaming onto a folder that is not empty fails: another process was first, and its CA is the one.
    const others = await loadUnlessMissing(dir, ca.name);
    if (others !== undefined) return { created: false, authority: others };
    throw error;
  }
  await files.syncFolder(dir);
  await removeDrafts(dir, ca.name, files);
  return { created: true, authority };
}

/** No CA's name has a dot in it, and nobody keeps anything of his own under such a name. */
function draftPrefix(name: string): string {
  return `.${name}.draft-`;
}

/**
 * Only where the CA is there. Then any draft of it has lost, also one that another process fills at this moment: it
 * fails now instead of at its rename, and takes the CA that is there.
 */
async function removeDrafts(dir: string, name: string, files: CaFiles): Promise<void> {
  const entries = (await readdir(dir).catch(() => [])).filter((entry) => entry.startsWith(draftPrefix(name)));
  // The key in it certified nothing. If it cannot be removed, the next start tries again.
  for (const entry of entries) await files.remove(join(dir, entry)).catch(() => undefined);
}

/** The CA of that name, after checking that its parts belong together. Throws CaUnusableError. */
export async function loadEmbeddedCa(dir: string, name: string): Promise<Authority> {
  refuseInsideLambda('the embedded CA', process.env);
  const folder = folderOf(dir, name);
  // First, because a folder that another process renames into place between two reads has all of its files.
  if (await isEmpty(folder)) throw new CaUnusableError('Missing', `there is no CA in ${folder}`);
  const signatureAlgorithm = algorithmIn(await read(folder, 'authority.json'), folder);
  const [keyPem, certificatePem] = [await read(folder, 'key.pem'), await read(folder, 'certificate.pem')];
  try {
    const key = createPrivateKey(keyPem);
    const certificate = new Uint8Array(new X509Certificate(certificatePem).raw);
    const faults = checkCaCertificate(certificate, publicKeyInfo(key));
    if (faults.length > 0) throw new Error(faults.join('; '));
    return { name, certificate, intermediates: [], signer: embeddedSigner(key, signatureAlgorithm) };
  } catch (error) {
    // Messages of node:crypto about a key say which structure is wrong, never what stands in it.
    throw new CaUnusableError('Damaged', `the CA in ${folder} cannot be used: ${messageOf(error)}`);
  }
}

async function loadUnlessMissing(dir: string, name: string): Promise<Authority | undefined> {
  try {
    return await loadEmbeddedCa(dir, name);
  } catch (error) {
    if (error instanceof CaUnusableError && error.why === 'Missing') return undefined;
    throw error;
  }
}

async function newCa(
  ca: CaConfiguration,
  { now, randomBytes }: CaOrigin,
): Promise<{ authority: Authority; privateKey: KeyObject }> {
  const privateKey = await generateKey(ca.keySpec);
  const signer = embeddedSigner(privateKey, ca.signatureAlgorithm);
  const certificate = await issueCaCertificate(
    {
      subject: ca.subject,
      spki: publicKeyInfo(privateKey),
      serial: serialFrom(randomBytes(serialOctets)),
      ...caValidity(now, ca.validitySeconds),
      pathLength: ca.pathLen,
    },
    signer,
  );
  return { authority: { name: ca.name, certificate, intermediates: [], signer }, privateKey };
}

/** Names come from the configuration, where they are DNS labels; this is the place where another would do harm. */
function folderOf(dir: string, name: string): string {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) throw new Error('a CA name is a DNS label');
  return join(dir, name);
}

async function read(folder: string, file: string): Promise<string> {
  try {
    return await readFile(join(folder, file), 'utf8');
  } catch (error) {
    const what = (error as { code?: unknown }).code === 'ENOENT' ? `no ${file}` : messageOf(error);
    throw new CaUnusableError('Damaged', `the CA in ${folder} cannot be used: ${what}`);
  }
}

/** Absent, or with nothing in it that a new CA could replace. */
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
    const known = signatureAlgorithms.find((algorithm) => algorithm === signatureAlgorithm);
    if (version === 1 && known !== undefined) return known;
  } catch {
    // Not JSON: said below.
  }
  throw new CaUnusableError('Damaged', `the CA in ${folder} has an authority.json this program does not understand`);
}

function messageOf(error: unknown): string {
  return errorMessage(error);
}

const realFiles: CaFiles = {
  makeFolder: (path) => mkdir(path, { recursive: true, mode: 0o700 }),
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
