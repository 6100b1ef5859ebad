/**
 * Does an object of this JSON text say the same key twice? JSON.parse takes the last one, other readers the first
 * (RFC 8259 §4): a token must have one reading. The text is JSON already; only then is the answer worth anything.
 */
export function repeatsKey(json: string): boolean {
  /** The keys of each object we are in; of an array none. */
  const open: (Set<string> | undefined)[] = [];
  for (const [mark] of json.matchAll(/"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}[\]]/g)) {
    if (mark === '{') open.push(new Set());
    else if (mark === '[') open.push(undefined);
    else if (mark === '}' || mark === ']') open.pop();
    else if (mark.endsWith(':')) {
      const key = JSON.parse(mark.slice(0, -1)) as string; // two spellings of one key are one key
      const keys = open.at(-1);
      if (keys?.has(key) === true) return true;
      keys?.add(key);
    }
  }
  return false;
}
