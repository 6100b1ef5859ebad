/**
 * JSON with exactly one meaning. Of two equal keys JSON.parse takes the last one and other readers the first (RFC 8259 §4), so
 * one reader could check a value and another one use a different value.
 */
import type { Problem } from './der-reader.ts';
import { decodeBody } from './json-body.ts';
import { isObject } from './json-object.ts';
import type { JsonObject } from './json-object.ts';

export type ReadObject = { readonly object: JsonObject } | Problem;

/** Exactly one JSON object in UTF-8, without a repeated key at any depth. */
export function readJsonObject(bytes: Uint8Array): ReadObject {
  const body = decodeBody(bytes);
  if (!body.ok) return { problem: 'is not JSON' };
  if (!isObject(body.json)) return { problem: 'is not a JSON object' };
  if (hasDuplicateKeys(Buffer.from(bytes).toString('utf8'))) return { problem: 'has a key twice' };
  return { object: body.json };
}

/** An evidence block by its closed schema. An unknown key is refused because the sender may rely on it. */
export function readEvidence<Required extends string, Optional extends string = never>(
  data: Uint8Array,
  schema: { readonly required: readonly Required[]; readonly optional?: readonly Optional[] },
): { readonly fields: Readonly<Record<Required, unknown> & Partial<Record<Optional, unknown>>> } | Problem {
  const read = readJsonObject(data);
  if ('problem' in read) return read;
  const known = new Set<string>([...schema.required, ...(schema.optional ?? [])]);
  if (!Object.keys(read.object).every((key) => known.has(key))) return { problem: 'has an unknown key' };
  if (!schema.required.every((key) => Object.hasOwn(read.object, key)))
    return { problem: `lacks one of ${schema.required.join(', ')}` };
  return { fields: read.object as Record<Required, unknown> & Partial<Record<Optional, unknown>> };
}

/** `text` must be valid JSON: then a string that a colon follows is a key of the innermost object. */
export function hasDuplicateKeys(text: string): boolean {
  const open: Set<unknown>[] = [];
  for (const [token, colon] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}]/g)) {
    if (token === '{') open.push(new Set());
    else if (token === '}') open.pop();
    else if (colon !== undefined) {
      // Unescaped: `"a"` and `"\u0061"` are the same key.
      const key: unknown = JSON.parse(token.slice(0, -colon.length));
      const keys = open.at(-1);
      if (keys?.has(key) === true) return true;
      keys?.add(key);
    }
  }
  return false;
}
