/**
 * JSON in which nothing has two readings. JSON.parse takes the last of several equal keys, other readers the first:
 * what one of them checked the other would not have seen.
 */
import type { Problem } from './der-reader.ts';
import { decodeBody } from './json-body.ts';

export type JsonObject = Readonly<Record<string, unknown>>;
export type ReadObject = { readonly object: JsonObject } | Problem;

/** Exactly one JSON object, UTF-8, no key twice at any depth. */
export function readJsonObject(bytes: Uint8Array): ReadObject {
  const body = decodeBody(bytes);
  if (!body.ok) return { problem: 'is not JSON' };
  if (!isObject(body.json)) return { problem: 'is not a JSON object' };
  if (hasDuplicateKeys(Buffer.from(bytes).toString('utf8'))) return { problem: 'has a key twice' };
  return { object: body.json };
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An evidence block by its closed schema. A key that is not understood may be one that the sender relies on. */
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
      // The name itself, however it is escaped.
      const key: unknown = JSON.parse(token.slice(0, -colon.length));
      const keys = open.at(-1);
      if (keys?.has(key) === true) return true;
      keys?.add(key);
    }
  }
  return false;
}
