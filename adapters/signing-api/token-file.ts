import { readFile } from 'node:fs/promises';

type BearerAnswer =
  | { readonly ok: true; readonly headers: { readonly authorization: string } }
  | { readonly ok: false; readonly message: string };

/** As much as front doors take in a header. */
const maxLength = 8_192;

/**
 * A bearer token (RFC 6750 §2.1) from a file, such as a projected service-account token. Read for every call: kubelet
 * replaces it at four fifths of its life, and a kilobyte from memory is cheaper than knowing when.
 */
export function bearerFromFile(path: string): () => Promise<BearerAnswer> {
  return async () => {
    const token = await readToken(path);
    return typeof token === 'string'
      ? { ok: true, headers: { authorization: `Bearer ${token}` } }
      : { ok: false, message: token.problem };
  };
}

/** Nothing of the content is in a problem's words. */
export async function readToken(path: string): Promise<string | { readonly problem: string }> {
  let token: string;
  try {
    token = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    return { problem: `token file ${path}: ${(error as NodeJS.ErrnoException).code ?? 'unreadable'}` };
  }
  if (token.length > maxLength || !/^[\w.~+/-]+=*$/.test(token))
    return { problem: `token file ${path}: holds no token` };
  return token;
}
