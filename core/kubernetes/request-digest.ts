/**
 * Identifies one request: the same UID with another digest is another request.
 *
 *   SHA-256( L(cluster) L(uid) L(signerName) L(username) N(groups) L(group)… N(usages) L(usage)… L(expiration) L(request) )
 *
 * L is the length in bytes as 32-bit big-endian and then the UTF-8 bytes; N is the count of a list as 32-bit big-endian.
 * Lists are sorted by their UTF-8 bytes, duplicates kept: the API server does not promise an order. Expiration is the
 * decimal number of seconds, or empty when none was asked for.
 */
import { hash } from 'node:crypto';
import type { RequestObject } from './certificate-signing-request.ts';

/** Lower-case hex. `signerName` is the object's, or the default of v1beta1. */
export function requestDigest(cluster: string, object: RequestObject, signerName: string): string {
  const parts = [
    ...lengthPrefixed(cluster),
    ...lengthPrefixed(object.uid),
    ...lengthPrefixed(signerName),
    ...lengthPrefixed(object.username),
    ...list(object.groups),
    ...list(object.usages),
    ...lengthPrefixed(object.expirationSeconds === undefined ? '' : String(object.expirationSeconds)),
    ...lengthPrefixed(object.request),
  ];
  return hash('sha256', Buffer.concat(parts), 'hex');
}

/** Without the count, a group could be moved into the usages and the bytes would be the same. */
function list(values: readonly string[]): Uint8Array[] {
  const sorted = values.map((value) => Buffer.from(value, 'utf8')).sort((a, b) => Buffer.compare(a, b));
  return [uint32(values.length), ...sorted.flatMap(lengthPrefixed)];
}

function lengthPrefixed(value: string | Uint8Array): readonly Uint8Array[] {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
  return [uint32(bytes.length), bytes];
}

function uint32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
