/** A JSON object whose fields are not known yet: requesters, API servers and AWS sent it. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object; an empty one in place of any other value. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
