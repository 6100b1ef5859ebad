/** Kubernetes objects are some ten levels deep; managedFields adds a few. */
const maxDepth = 100;

export type DecodedBody =
  | { readonly ok: true; readonly json: unknown }
  | { readonly ok: false; readonly message: string; readonly tooLarge?: true };

export const objectTooLarge = {
  ok: false,
  tooLarge: true,
  message: 'the request object is larger than 1.5 MiB',
} as const;

/** Bytes to JSON. Messages never quote the body: JSON.parse's own do, so they are not passed on. */
export function decodeBody(body: Uint8Array, maxBytes = maxObjectBytes): DecodedBody {
  if (body.length > maxBytes) return objectTooLarge;
  const text = utf8Text(body);
  if (text === undefined) return { ok: false, message: 'body is not UTF-8' };
  // JSON.parse takes any depth; JSON.stringify of what came out would then overflow the stack, after signing.
  if (nestedDeeperThan(maxDepth, text)) return { ok: false, message: `body is nested deeper than ${maxDepth} levels` };
  try {
    return { ok: true, json: JSON.parse(text) };
  } catch {
    return { ok: false, message: 'body is not JSON' };
  }
}

/** Strict: a replacement character would be treated as if the requester had sent it. A byte order mark is not JSON. */
function utf8Text(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Where the string that begins at `start` has its closing quote: the next one that an even number of backslashes precede. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let first = end;
    while (text[first - 1] === '\\') first--;
    if ((end - first) % 2 === 0) return end;
  }
  return text.length;
}

/** Brackets outside strings, counted in one pass; the parser reports text that is not JSON. */
function nestedDeeperThan(limit: number, text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '"') i = endOfString(text, i);
    else if (character === '[' || character === '{') depth++;
    else if (character === ']' || character === '}') depth--;
    if (depth > limit) return true;
  }
  return false;
}

/** Caps checked before parsing. An etcd object is at most 1.5 MiB; a request with evidence stays far below 128 KiB. */
export const maxObjectBytes = 1_572_864;
