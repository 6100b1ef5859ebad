/**
 * Finds the revocation of each record of a stream. Records and revocations come by notAfter, so only the revocations of one instant are
 * kept for each CA key, however many there are.
 */
import type { JsonObject } from '../encoding/json-object.ts';
import type { Instant } from '../ports/instant.ts';
import type { Revocation, RevocationStore } from '../ports/revocations.ts';
import type { InventoryRecord } from './certificate-entry.ts';

export type RevocationFinder = (
  record: Pick<InventoryRecord, 'caKeyId' | 'serial' | 'notAfter'>,
) => Promise<Revocation | undefined>;

/** The finder takes records by notAfter; none expires before `from`. */
export function revocationFinder(list: RevocationStore['list'], from: Instant): RevocationFinder {
  const streams = new Map<string, Stream>();
  return async ({ caKeyId, serial, notAfter }) => {
    const stream = streams.get(caKeyId) ?? (await opened(list(caKeyId, from - 1)));
    streams.set(caKeyId, stream);
    if (stream.at !== notAfter) stream.bySerial.clear();
    stream.at = notAfter;
    while (stream.ahead !== undefined && stream.ahead.notAfter <= notAfter) {
      if (stream.ahead.notAfter === notAfter) stream.bySerial.set(stream.ahead.serial, stream.ahead);
      await advance(stream);
    }
    return stream.bySerial.get(serial);
  };
}

interface Stream {
  readonly source: AsyncIterator<Revocation>;
  /** The next one. Absent at the end. */
  ahead?: Revocation | undefined;
  at: Instant;
  /** Those that expire at `at`. */
  readonly bySerial: Map<string, Revocation>;
}

async function opened(revocations: AsyncIterable<Revocation>): Promise<Stream> {
  const stream: Stream = { source: revocations[Symbol.asyncIterator](), at: NaN, bySerial: new Map() };
  await advance(stream);
  return stream;
}

async function advance(stream: Stream): Promise<void> {
  const next = await stream.source.next();
  stream.ahead = next.done === true ? undefined : next.value;
}

/** For programs: who revoked the certificate, when, why, and what their command named. */
export function revocationJson({ at, reason, by, note, matchedBy, auditId }: Revocation): JsonObject {
  return { at: new Date(at).toISOString(), reason, by, note, matchedBy, auditId };
}
