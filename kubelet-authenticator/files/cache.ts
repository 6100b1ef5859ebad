/**
 * The files that outlive a call: per certificate (`client`, `serving`) the current one with its key, a copy of it, and
 * what is being worked on. Whoever reads them is root; they are 0600 in a directory that is 0700.
 *
 * At every moment a crash, a SIGKILL or a full disk leaves the old file or the new one, whole: written beside it, flushed,
 * renamed, and the directory flushed. Certificate and key are in one file, so they can never be of two requests. The copy
 * is for what renaming does not protect from: a bad block, an editor, `> client.pem`. It is written first.
 *
 * Others cannot put anything there: see own-files.ts.
 *
 * On the way of every call of the kubelet: `node:fs` and nothing else.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { checkOwnDirectory, checkOwnPlace, readCacheFile, UnsafeFileError } from './own-files.ts';

export type SlotName = 'client' | 'serving';

export interface Slot {
  readonly directory: string;
  readonly name: SlotName;
}

/** What a certificate file holds. */
export interface StoredCredential {
  /** The certificate first, then those that lead to its CA. */
  readonly certificatePem: string;
  readonly keyPem: string;
  /** When we got it: its notBefore lies some minutes before that. */
  readonly issuedAt: number | undefined;
}

export function currentFile({ directory, name }: Slot): string {
  return join(directory, `${name}.pem`);
}
function copyFile({ directory, name }: Slot): string {
  return join(directory, `${name}-copy.pem`);
}
function workFile({ directory, name }: Slot): string {
  return join(directory, `${name}-next.json`);
}

export type Candidate =
  { readonly file: string; readonly stored: StoredCredential } | { readonly file: string; readonly problem: string };

/** The current credential and its copy, unchecked, best first; nothing for what is not there. */
export function* readCredentials(slot: Slot): Generator<Candidate> {
  const unsafe = unsafeDirectory(slot);
  if (unsafe !== undefined) {
    yield { file: unsafe.path, problem: unsafe.problem };
    return;
  }
  for (const file of [currentFile(slot), copyFile(slot)]) {
    const text = readText(file);
    if (text === undefined) continue;
    if (typeof text !== 'string') yield { file, ...text };
    else {
      const stored = decodeCredential(text);
      yield stored === undefined ? { file, problem: 'holds no certificate with its key' } : { file, stored };
    }
  }
}

/** Throws what the file system says, with the old credential still in place. */
export function writeCredential(slot: Slot, stored: StoredCredential): void {
  const text = encodeCredential(stored);
  replaceFile(copyFile(slot), text);
  // Dying here leaves a copy that is newer than the current one: the next call still reads the old certificate, and finds
  // the new one's request finished.
  replaceFile(currentFile(slot), text);
}

/** Text of the work file; nothing when there is none. */
export function readWork(slot: Slot): string | { readonly problem: string } | undefined {
  return readText(workFile(slot));
}

export function writeWork(slot: Slot, text: string): void {
  replaceFile(workFile(slot), text);
}

export function removeWork(slot: Slot): void {
  removeFile(workFile(slot));
}

/** Before the lock, which lies in it. Throws UnsafeFileError where others could put files. */
export function makeDirectory(slot: Slot): void {
  const { directory } = slot;
  checkOwnPlace(directory);
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new CacheWriteError(directory, codeOf(error));
  }
  const unsafe = unsafeDirectory(slot);
  if (unsafe !== undefined) throw unsafe;
}

/** One that is not there is safe: nothing is in it. */
function unsafeDirectory({ directory }: Slot): UnsafeFileError | undefined {
  try {
    checkOwnDirectory(directory);
  } catch (error) {
    if (error instanceof UnsafeFileError) return error;
    if (codeOf(error) !== 'ENOENT') return new UnsafeFileError(directory, `cannot be looked at (${codeOf(error)})`);
  }
  return undefined;
}

/** Takes away what killed predecessors left half written. Only under the lock. */
export function tidy({ directory, name }: Slot): void {
  for (const entry of readdirSync(directory)) {
    if (!entry.startsWith(name) || !entry.endsWith(temporarySuffix)) continue;
    const file = join(directory, entry);
    try {
      removeFile(file);
    } catch (error) {
      throw new CacheWriteError(file, codeOf(error));
    }
  }
}

const temporarySuffix = '.tmp';
const issuedAtPrefix = 'issued-at: ';

/** Text before the first block is for people, in PEM (RFC 7468 §2): OpenSSL and Go pass over it. */
function encodeCredential({ certificatePem, keyPem, issuedAt }: StoredCredential): string {
  const when = issuedAt === undefined ? '' : `${issuedAtPrefix}${new Date(issuedAt).toISOString()}\n`;
  return `${when}${ended(certificatePem)}${ended(keyPem)}`;
}

function ended(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

function decodeCredential(text: string): StoredCredential | undefined {
  const blocks = text.match(/-----BEGIN ([A-Z ]+)-----\n[A-Za-z0-9+/=\n]+-----END \1-----\n/g) ?? [];
  const certificates = blocks.filter((block) => block.startsWith('-----BEGIN CERTIFICATE-----'));
  const [keyPem, ...more] = blocks.filter((block) => block.startsWith('-----BEGIN PRIVATE KEY-----'));
  if (keyPem === undefined || more.length > 0 || certificates.length === 0) return undefined;
  const [line = ''] = text.split('\n', 1);
  const issuedAt = line.startsWith(issuedAtPrefix) ? Date.parse(line.slice(issuedAtPrefix.length)) : Number.NaN;
  return { certificatePem: certificates.join(''), keyPem, issuedAt: Number.isNaN(issuedAt) ? undefined : issuedAt };
}

function readText(file: string): string | { readonly problem: string } | undefined {
  try {
    return readCacheFile(file);
  } catch (error) {
    if (error instanceof UnsafeFileError) return { problem: error.problem };
    const code = codeOf(error);
    return code === 'ENOENT' ? undefined : { problem: `cannot be read (${code})` };
  }
}

/** The name tells no two processes apart: only one at a time may write, the one that has the lock. */
function replaceFile(file: string, text: string): void {
  const temporary = `${file}${temporarySuffix}`;
  try {
    removeFile(temporary);
    // `wx` follows no link that somebody put there.
    const descriptor = openSync(temporary, 'wx', 0o600);
    try {
      const bytes = Buffer.from(text, 'utf8');
      for (let written = 0; written < bytes.length;) written += writeSync(descriptor, bytes, written);
      // Without it the rename can be on disk before the content is.
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, file);
  } catch (error) {
    throw new CacheWriteError(file, codeOf(error));
  }
  flushDirectory(join(file, '..'));
}

/** The disk, not the cluster: said as it is, and the same for as long as nobody mends it. */
export class CacheWriteError extends Error {
  override readonly name = 'CacheWriteError';
  constructor(file: string, code: string) {
    super(`${file} cannot be written (${code}${explained[code] === undefined ? '' : `: ${explained[code]}`})`);
  }
}

const explained: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EDQUOT: 'the quota is used up',
  EIO: 'the disk reports an error',
};

function removeFile(file: string): void {
  try {
    unlinkSync(file);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

function flushDirectory(directory: string): void {
  try {
    const descriptor = openSync(directory, 'r');
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // Some file systems do not know it; what was renamed is there for all who look now.
  }
}

/** `<file> cannot be read (<code>)`, or what is unsafe about it and how to mend it. */
export function whyUnread(file: string, error: unknown): string {
  return error instanceof UnsafeFileError ? error.message : `${file} cannot be read (${codeOf(error)})`;
}

export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : error instanceof Error ? error.name : 'unknown';
}
