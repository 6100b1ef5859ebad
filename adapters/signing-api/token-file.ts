import { readFile } from 'node:fs/promises';
import { failure, success } from '../../core/outcome/result.ts';
import type { Result } from '../../core/outcome/result.ts';

/** The longest header that front doors accept. */
const maxLength = 8_192;

/**
 * A bearer token (RFC 6750 §2.1) from a file, such as a projected service-account token. Read for every call, since kubelet
 * replaces it at four fifths of its lifetime.
 */
export function bearerFromFile(path: string): () => Promise<Result<{ readonly authorization: string }, string>> {
  return async () => {
    const token = await readToken(path);
    return token.ok ? success({ authorization: `Bearer ${token.value}` }) : token;
  };
}

/** The problem names the file and never quotes it. */
export async function readToken(path: string): Promise<Result<string, string>> {
  let token: string;
  try {
    token = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    return failure(`token file ${path}: ${(error as NodeJS.ErrnoException).code ?? 'unreadable'}`);
  }
  if (token.length > maxLength || !/^[\w.~+/-]+=*$/.test(token)) return failure(`token file ${path}: holds no token`);
  return success(token);
}
