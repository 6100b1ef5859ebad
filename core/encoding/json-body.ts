import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

/** The limit of etcd for one object. A request with evidence stays far below 128 KiB. */
export const maxObjectBytes = 1_572_864;
/** Kubernetes objects are some ten levels deep; managedFields adds a few. */
const maxDepth = 100;

/** `message` names the field and never quotes content. */
export interface BodyProblem {
  readonly message: string;
  readonly tooLarge?: true;
}

export const objectTooLarge: BodyProblem = { message: 'the request object is larger than 1.5 MiB', tooLarge: true };

/** Decodes JSON. The messages of JSON.parse are not used, because they quote the body. */
export function decodeBody(body: Uint8Array, maxBytes = maxObjectBytes): Result<unknown, BodyProblem> {
  if (body.length > maxBytes) return failure(objectTooLarge);
  let text: string;
  try {
    // Without `fatal`, invalid bytes would become U+FFFD, which was not sent. `ignoreBOM` keeps a BOM, which JSON.parse refuses.
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return failure({ message: 'body is not UTF-8' });
  }
  // JSON.parse accepts any depth, but a later JSON.stringify of the object, after signing, would overflow the stack.
  if (nestedDeeperThan(maxDepth, text)) return failure({ message: `body is nested deeper than ${maxDepth} levels` });
  try {
    return success(JSON.parse(text) as unknown);
  } catch {
    return failure({ message: 'body is not JSON' });
  }
}

/** Position of the quote that closes the string at `start`: the next one after an even number of backslashes. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let first = end;
    while (text[first - 1] === '\\') first--;
    if ((end - first) % 2 === 0) return end;
  }
  return text.length;
}

/** Counts brackets outside strings in one pass. JSON.parse refuses text that is not JSON. */
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
