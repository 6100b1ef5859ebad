/**
 * Identifies one request: the same UID with another digest is another request.
 *
 *   SHA-256( L(cluster) L(uid) L(signerName) L(username) N(groups) L(group)… N(usages) L(usage)… L(expiration) L(request) )
 *
 * L(x) is the length of x in bytes (32-bit big-endian), then the UTF-8 bytes of x. N(list) is its number of entries (32-bit
 * big-endian). Lists are sorted by their UTF-8 bytes, because the API server does not promise an order; duplicates stay.
 * Expiration is the decimal number of seconds, or empty if spec.expirationSeconds is absent.
 */
import { hash } from 'node:crypto';
import type { RequestObject } from './certificate-signing-request.ts';

/** Lower-case hex. `signerName` is spec.signerName, or the default of v1beta1. */
export function requestDigest(
  cluster: string,
  object: Pick<RequestObject, 'uid' | 'username' | 'groups' | 'usages' | 'expirationSeconds' | 'request'>,
  signerName: string,
): string {
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

/** Without the count, the bytes would be the same if a group moved to the usages. */
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
