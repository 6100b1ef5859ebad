/**
 * The files of a certificate (`client`, `serving`): the current one with its key, a copy of it, and the work file of the next
 * one. All are 0600 in a directory of mode 0700.
 *
 * After a crash, a SIGKILL or on a full disk each file is complete, old or new: a temporary file is written, flushed and renamed,
 * and the directory is flushed. Certificate and key are in one file, so they always belong together. The copy helps where a rename
 * does not: a bad block, an editor, `> client.pem`. The copy is written first.
 *
 * Other users cannot write there: see own-files.ts.
 *
 * Loaded by every call of the kubelet, so it imports little.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pemBlocks } from '../../core/encoding/pem.ts';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';
import { checkOwnDirectory, checkOwnPlace, readCacheFile, UnsafeFileError } from './own-files.ts';

export interface Slot {
  readonly directory: string;
  /** `tpm`: the lock and the private directory of providers/tpm-tools.ts. */
  readonly name: 'client' | 'serving' | 'tpm';
}

export interface StoredCredential {
  /** The certificate, then its intermediate CAs. */
  readonly certificatePem: string;
  readonly keyPem: string;
  /** When it was received. Its notBefore is some minutes earlier. */
  readonly issuedAt: number | undefined;
}

function currentFile({ directory, name }: Slot): string {
  return join(directory, `${name}.pem`);
}
function copyFile({ directory, name }: Slot): string {
  return join(directory, `${name}-copy.pem`);
}
export function workFile({ directory, name }: Slot): string {
  return join(directory, `${name}-next.json`);
}

/** The current credential, then its copy, unchecked. Skips missing files. */
export function* readCredentials(slot: Slot): Generator<{ readonly file: string } & Result<StoredCredential, string>> {
  const unsafe = unsafeDirectory(slot);
  if (unsafe !== undefined) {
    yield { file: unsafe.path, ...failure(unsafe.problem) };
    return;
  }
  for (const file of [currentFile(slot), copyFile(slot)]) {
    const text = readText(file);
    if (!text.ok) yield { file, ...text };
    else if (text.value !== undefined) yield { file, ...decodeCredential(text.value) };
  }
}

/** If it throws, the old credential is still in place. */
export function writeCredential(slot: Slot, stored: StoredCredential): void {
  const text = encodeCredential(stored);
  replaceFile(copyFile(slot), text);
  // Crash here: the copy is newer than the current file. The next call reads the old certificate, and obtain() fetches the
  // new one again from the cluster.
  replaceFile(currentFile(slot), text);
}

/** Called before the lock is taken, since the lock file is in it. Throws UnsafeFileError if other users can write to it. */
export function makeDirectory(slot: Slot): void {
  const { directory } = slot;
  checkOwnPlace(directory);
  withWriteErrors(directory, () => mkdirSync(directory, { recursive: true, mode: 0o700 }));
  const unsafe = unsafeDirectory(slot);
  if (unsafe !== undefined) throw unsafe;
}

/** A missing directory is safe. */
function unsafeDirectory({ directory }: Slot): UnsafeFileError | undefined {
  try {
    checkOwnDirectory(directory);
  } catch (error) {
    if (error instanceof UnsafeFileError) return error;
    if (codeOf(error) !== 'ENOENT') return new UnsafeFileError(directory, `cannot be checked (${codeOf(error)})`);
  }
  return undefined;
}

/** Removes the temporary files of killed processes. Only with the lock. */
export function tidy({ directory, name }: Slot): void {
  for (const entry of readdirSync(directory)) {
    if (!entry.startsWith(name) || !entry.endsWith(temporarySuffix)) continue;
    const file = join(directory, entry);
    withWriteErrors(file, () => removeFile(file));
  }
}

const temporarySuffix = '.tmp';
const issuedAtPrefix = 'issued-at: ';

/** PEM permits explanatory text before the first block (RFC 7468 §2); OpenSSL and Go skip it. */
function encodeCredential({ certificatePem, keyPem, issuedAt }: StoredCredential): string {
  const when = issuedAt === undefined ? '' : `${issuedAtPrefix}${new Date(issuedAt).toISOString()}\n`;
  return `${when}${certificatePem.trimEnd()}\n${keyPem.trimEnd()}\n`;
}

function decodeCredential(text: string): Result<StoredCredential, string> {
  const certificates = pemBlocks(text, 'CERTIFICATE');
  const [keyPem, ...otherKeys] = pemBlocks(text, 'PRIVATE KEY');
  if (keyPem === undefined || otherKeys.length > 0 || certificates.length === 0)
    return failure('holds no certificate with its key');
  const [line = ''] = text.split('\n', 1);
  const issuedAt = line.startsWith(issuedAtPrefix) ? Date.parse(line.slice(issuedAtPrefix.length)) : Number.NaN;
  const value = {
    certificatePem: certificates.join(''),
    keyPem,
    issuedAt: Number.isNaN(issuedAt) ? undefined : issuedAt,
  };
  return success(value);
}

/** undefined if the file does not exist. */
export function readText(file: string): Result<string | undefined, string> {
  try {
    return success(readCacheFile(file));
  } catch (error) {
    if (error instanceof UnsafeFileError) return failure(error.problem);
    const code = codeOf(error);
    return code === 'ENOENT' ? success(undefined) : failure(`cannot be read (${code})`);
  }
}

/** All processes use the same temporary name: only the process with the lock writes. */
export function replaceFile(file: string, text: string): void {
  const temporary = `${file}${temporarySuffix}`;
  withWriteErrors(file, () => {
    removeFile(temporary);
    writeNewFile(temporary, text, 0o600);
    renameSync(temporary, file);
  });
  try {
    flushDirectory(join(file, '..'));
  } catch {
    // Some file systems do not support it. The renamed file is visible to other processes anyway.
  }
}

/** Fails if the file exists, also as a symbolic link. Flushes it: otherwise a rename can reach the disk before the content. */
export function writeNewFile(file: string, text: string, mode: number): void {
  writeFileSync(file, text, { flag: 'wx', mode, flush: true });
}

export function flushDirectory(directory: string): void {
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function withWriteErrors(file: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    throw new CacheWriteError(file, codeOf(error));
  }
}

/** A disk error, which a retry a second later does not change. */
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

export function removeFile(file: string): void {
  try {
    unlinkSync(file);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

/** `<file> cannot be read (<code>)`, or why it is unsafe and the command that corrects it. */
export function whyUnread(file: string, error: unknown): string {
  return error instanceof UnsafeFileError ? error.message : `${file} cannot be read (${codeOf(error)})`;
}

export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : error instanceof Error ? error.name : 'unknown';
}
