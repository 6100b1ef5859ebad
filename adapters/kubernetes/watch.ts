import type { ApiRefusal, JsonObject, WatchEvent } from '../../core/ports/kubernetes-api.ts';
import { isObject, objectOf } from '../../core/encoding/json-object.ts';

/** An object is at most 1.5 MiB in etcd. In JSON, base64 takes a third more, and a control character six times as much. */
const maxLineBytes = 8 * 1_048_576;

const newline = 0x0a;

/**
 * The events of a watch: one JSON document per line. The pieces of a line are kept until it is complete, so each byte is
 * read once, however small the pieces are. A line that is too long is skipped and not kept.
 */
export async function* decodeWatch(
  chunks: AsyncIterable<Uint8Array>,
  /** Interprets the Status of an ERROR event. */
  refusal: (status: JsonObject) => { why: ApiRefusal | 'Unavailable'; message: string },
  lineLimit: number = maxLineBytes,
): AsyncGenerator<WatchEvent, void, undefined> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  let skipping = false;
  for await (const chunk of chunks) {
    let start = 0;
    while (start < chunk.length) {
      const end = chunk.indexOf(newline, start);
      const piece = chunk.subarray(start, end === -1 ? chunk.length : end);
      start += piece.length + 1;
      length += piece.length;
      if (length > lineLimit) {
        skipping = true;
        pieces = [];
      } else if (piece.length > 0) pieces.push(piece);
      if (end === -1) break;

      if (skipping) yield { type: 'OVERSIZED', bytes: length };
      else if (length > 0) yield decodeLine(pieces, length, refusal);
      pieces = [];
      length = 0;
      skipping = false;
    }
  }
  // An incomplete last line was cut off by the end of the stream. The next watch delivers it again.
}

function decodeLine(
  pieces: readonly Uint8Array[],
  bytes: number,
  refusal: (status: JsonObject) => { why: ApiRefusal | 'Unavailable'; message: string },
): WatchEvent {
  let event: unknown;
  try {
    event = JSON.parse(Buffer.concat(pieces, bytes).toString('utf8'));
  } catch {
    return { type: 'UNREADABLE', message: 'a line that is not JSON' };
  }
  const { type, object } = objectOf(event);
  if (!isObject(object)) return { type: 'UNREADABLE', message: 'an event without an object' };
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object, bytes };
    case 'BOOKMARK': {
      const { resourceVersion } = objectOf(object['metadata']);
      if (typeof resourceVersion === 'string' && resourceVersion !== '') return { type, resourceVersion };
      return { type: 'UNREADABLE', message: 'a bookmark without a resourceVersion' };
    }
    case 'ERROR':
      return { type, ...refusal(object) };
    default:
      return { type: 'UNREADABLE', message: 'an event of unknown type' };
  }
}
