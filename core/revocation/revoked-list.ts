/** The list of revoked certificates that the sign function gives to relays: JSON, by fingerprint. */
import { decodeBody } from '../encoding/json-body.ts';
import { isObject, objectOf } from '../encoding/json-object.ts';
import { failure, success } from '../outcome/result.ts';
import type { Result } from '../outcome/result.ts';
import type { ListedRevocation, RevocationReason } from '../ports/revocations.ts';

/** By fingerprint: SHA-256 of the certificate's DER, lower-case hex. */
export type RevokedList = ReadonlyMap<string, Pick<ListedRevocation, 'reason' | 'at'>>;

export function encodeRevokedList(cluster: string, revoked: readonly ListedRevocation[]): string {
  const entries = revoked.map(({ fingerprint, reason, at }) => ({ fingerprint, reason, at }));
  return JSON.stringify({ cluster, revoked: entries });
}

/** About 45 000 entries: Lambda answers with at most 6 MB. */
const maxListBytes = 6 * 1_048_576;

/**
 * The list of this cluster. An entry that cannot be read makes the whole list unusable: without it the certificate would be
 * accepted. An unknown reason, of a newer service, is an entry all the same.
 */
export function decodeRevokedList(body: Uint8Array, cluster: string): Result<RevokedList, string> {
  const json = decodeBody(body, maxListBytes);
  if (!json.ok) return failure(json.problem.message);
  const { cluster: of, revoked } = objectOf(json.value);
  if (of !== cluster || !Array.isArray(revoked)) return failure('it is not the list of this cluster');
  const list = new Map<string, Pick<ListedRevocation, 'reason' | 'at'>>();
  for (const entry of revoked as readonly unknown[]) {
    const { fingerprint, reason, at } = objectOf(entry);
    const known = isObject(entry) && typeof fingerprint === 'string' && /^[0-9a-f]{64}$/.test(fingerprint);
    if (!known || typeof reason !== 'string' || !Number.isSafeInteger(at)) return failure('an entry cannot be read');
    list.set(fingerprint, { reason: reason as RevocationReason, at: Number(at) });
  }
  return success(list);
}
