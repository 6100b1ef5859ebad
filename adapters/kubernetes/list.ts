import type { JsonObject } from '../../core/ports/kubernetes-api.ts';

/** An item of a list, and how many bytes its JSON has. */
export type EachItem = (item: JsonObject, bytes: number) => void;

const byte = { quote: 0x22, comma: 0x2c, openBracket: 0x5b, backslash: 0x5c, closeBracket: 0x5d } as const;
const brace = { open: 0x7b, close: 0x7d } as const;
/** So far a string is read byte by byte; further on native code looks for its end, which is faster for base64. */
const shortString = 32;
/** Of an item's own braces: in the list's object, in the array. */
const itemDepth = 2;

/**
 * Takes a list apart as it comes in, in whatever pieces: each item is parsed by itself as soon as it is whole, given to
 * `each`, and forgotten. Read as a whole, a page is there four times, as pieces, as one buffer, as one text and as
 * objects, all of them too large or too long-lived for the young part of the heap: 50 000 requests make a gigabyte that
 * only full collections take away.
 *
 * The answer is what the list holds besides, with `items` empty. `undefined`: more than `maxBytes`, the rest was not
 * read. Throws when it is not a JSON object, or breaks off. In both cases `each` has had the first items.
 */
export async function decodeList(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
  each: EachItem,
): Promise<JsonObject | undefined> {
  const list = createListReader(each);
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > maxBytes) return undefined;
    list.read(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length));
  }
  return list.end();
}

/**
 * Of JSON it knows what a string is, how deep it is in brackets, and what stands between items; whether the rest is right
 * is JSON.parse's to say, of each item and of the head, which is everything else.
 */
function createListReader(each: EachItem) {
  const head: Buffer[] = [];
  /** Pieces of the item under way. */
  let item: Buffer[] = [];
  let depth = 0;
  let inItems = false;
  /** What stood there last between the items: the opening bracket at first. */
  let last: 'bracket' | 'item' | 'comma' = 'bracket';
  let inString = false;
  /** How many bytes of the next chunk belong to an escape that began in this one. */
  let skip = 0;

  /** Is this bracket, behind what came so far, the one of `items`, however that is spelled? Not asked within the items. */
  function opensItems(piece: Buffer): boolean {
    const key = /[{,]\s*("(?:[^"\\]|\\.)*")\s*:\s*\[$/.exec(text([...head, piece]))?.[1];
    return key !== undefined && JSON.parse(key) === 'items';
  }

  function finish(piece: Buffer): void {
    item.push(piece);
    const bytes = item.reduce((sum, { length }) => sum + length, 0);
    const whole = parse(item);
    item = [];
    last = 'item';
    each(whole, bytes);
  }

  /** Behind the string that goes on at `from`, or behind the chunk. A quote behind a backslash does not end it. */
  function passString(chunk: Buffer, from: number): number {
    const near = Math.min(from + shortString, chunk.length);
    let at = from;
    for (; at < near; at += 1) {
      if (chunk[at] === byte.backslash) at += 1;
      else if (chunk[at] === byte.quote) {
        inString = false;
        return at + 1;
      }
    }
    while (at < chunk.length) {
      const quote = chunk.indexOf(byte.quote, at);
      const end = quote === -1 ? chunk.length : quote;
      // An odd number of backslashes right before it takes its meaning; what lies before `at` has been looked at.
      let slashes = 0;
      while (end - slashes > at && chunk[end - slashes - 1] === byte.backslash) slashes += 1;
      at = end + (slashes % 2);
      if (quote === -1 || slashes % 2 === 1) continue;
      inString = false;
      return at + 1;
    }
    return at;
  }

  return {
    read(chunk: Buffer): void {
      /** Where what is not kept yet begins: of the item, or of the head. */
      let start = 0;
      let at = skip;
      while (at < chunk.length) {
        if (inString) {
          at = passString(chunk, at);
          continue;
        }
        const between = inItems && depth === itemDepth;
        const value = chunk[at] ?? 0;
        switch (value) {
          case brace.open:
          case byte.openBracket:
            if (between) {
              if (last === 'item') throw new Error('items without a comma between them');
              start = at;
            }
            depth += 1;
            if (depth === itemDepth && value === byte.openBracket && opensItems(chunk.subarray(start, at + 1))) {
              inItems = true;
              last = 'bracket';
              head.push(chunk.subarray(start, at + 1));
            }
            break;
          case brace.close:
          case byte.closeBracket:
            depth -= 1;
            if (inItems && depth === itemDepth) finish(chunk.subarray(start, at + 1));
            else if (between) {
              if (last === 'comma') throw new Error('a comma without an item behind it');
              inItems = false;
              start = at;
            }
            break;
          case byte.comma:
            if (between) {
              if (last !== 'item') throw new Error('a comma without an item before it');
              last = 'comma';
            }
            break;
          default:
            if (between && !isSpace(value)) throw new Error('an item that is no object');
            if (value === byte.quote) inString = true;
        }
        at += 1;
      }
      skip = at - chunk.length;
      if (!inItems) head.push(chunk.subarray(start));
      else if (depth > itemDepth) item.push(chunk.subarray(start));
    },

    end(): JsonObject {
      if (inItems || depth !== 0) throw new Error('the list breaks off');
      return parse(head);
    },
  };
}

function isSpace(value: number): boolean {
  return value === 0x20 || value === 0x0a || value === 0x0d || value === 0x09;
}

function parse(pieces: readonly Buffer[]): JsonObject {
  const value: unknown = JSON.parse(text(pieces));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('not a JSON object');
  return value as JsonObject;
}

function text(pieces: readonly Buffer[]): string {
  const [only] = pieces;
  return pieces.length === 1 && only !== undefined ? only.toString('utf8') : Buffer.concat(pieces).toString('utf8');
}
