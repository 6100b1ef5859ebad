/**
 * JSON with exactly one meaning. If a key occurs twice, JSON.parse takes the last value and other readers the first (RFC 8259 §4),
 * so one program could check a value and another one use a different value.
 */
import { decodeBody } from './json-body.ts';
import { isObject } from './json-object.ts';
import type { JsonObject } from './json-object.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';

/** Exactly one JSON object in UTF-8, without a repeated key at any depth. */
export function readJsonObject(bytes: Uint8Array): Result<JsonObject, string> {
  const body = decodeBody(bytes);
  if (!body.ok) return failure('is not JSON');
  if (!isObject(body.value)) return failure('is not a JSON object');
  if (hasDuplicateKeys(Buffer.from(bytes).toString('utf8'))) return failure('has a key twice');
  return success(body.value);
}

/** An evidence block. An unknown key is refused, because the sender may rely on its effect. */
export function readEvidence<Required extends string, Optional extends string = never>(
  data: Uint8Array,
  schema: Schema<Required, Optional>,
): Result<Readonly<Record<Required, unknown> & Partial<Record<Optional, unknown>>>, string> {
  const read = readJsonObject(data);
  return read.ok ? checkKeys(read.value, schema) : read;
}

interface Schema<Required extends string, Optional extends string> {
  readonly required: readonly Required[];
  readonly optional?: readonly Optional[];
}

/** An object inside an evidence block. */
export function checkKeys<Required extends string, Optional extends string = never>(
  object: JsonObject,
  schema: Schema<Required, Optional>,
): Result<Readonly<Record<Required, unknown> & Partial<Record<Optional, unknown>>>, string> {
  const known = new Set<string>([...schema.required, ...(schema.optional ?? [])]);
  if (!Object.keys(object).every((key) => known.has(key))) return failure('has an unknown key');
  if (!schema.required.every((key) => Object.hasOwn(object, key)))
    return failure(`lacks one of ${schema.required.join(', ')}`);
  return success(object as Record<Required, unknown> & Partial<Record<Optional, unknown>>);
}

/** `text` must be valid JSON, in which a string before a colon is a key of the innermost object. */
export function hasDuplicateKeys(text: string): boolean {
  const open: Set<unknown>[] = [];
  for (const [token, colon] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}]/g)) {
    if (token === '{') open.push(new Set());
    else if (token === '}') open.pop();
    else if (colon !== undefined) {
      // Keys are compared unescaped: `"a"` and `"\u0061"` are the same key.
      const key: unknown = JSON.parse(token.slice(0, -colon.length));
      const keys = open.at(-1);
      if (keys?.has(key) === true) return true;
      keys?.add(key);
    }
  }
  return false;
}
