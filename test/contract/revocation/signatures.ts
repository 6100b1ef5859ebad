/** What a store of signature records has to keep. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { SignatureLog, SignatureReads, SignatureRecord } from '../../../core/ports/signature-log.ts';

const midnight = Date.UTC(2026, 5, 2);

export function signaturesContract(open: () => SignatureLog & SignatureReads): void {
  test('a signature is listed by its time, once, with its KMS request when that is known', async () => {
    const store = open();
    const caKeyId = `arn:aws:kms:eu-central-1:123456789012:key/${randomUUID()}`;
    const record = (id: string, at: number): SignatureRecord => ({
      id,
      caKeyId,
      ca: 'nodes',
      action: 'crl',
      tbsSha256: 'ab'.repeat(32),
      at,
    });
    const [before, last, first, later] = [
      record('a', midnight - 2_000),
      record('b', midnight - 1_000),
      record('c', midnight),
      record('d', midnight + 1_000),
    ];
    for (const each of [later, first, last, before]) await store.put(each);
    await store.put({ ...first, kmsRequestId: 'kms-1' });
    const listed = async (from: number, to: number) =>
      (await Array.fromAsync(store.list({ from, to }))).filter((each) => each.caKeyId === caKeyId);
    expect(await listed(last.at, later.at)).toEqual([last, { ...first, kmsRequestId: 'kms-1' }]);
    expect(await listed(midnight, midnight)).toEqual([]);
    expect(await listed(before.at, later.at + 1)).toHaveLength(4);
  });

  test('more than a page', async () => {
    const store = open();
    const at = midnight + 10 * 86_400_000;
    const all = Array.from({ length: 700 }, () => ({
      id: randomUUID(),
      caKeyId: 'key',
      ca: 'x'.repeat(1_800),
      action: 'crl',
      tbsSha256: 'ab'.repeat(32),
      at,
    }));
    for (let i = 0; i < all.length; i += 50) await Promise.all(all.slice(i, i + 50).map((each) => store.put(each)));
    const ids = (await Array.fromAsync(store.list({ from: at, to: at + 1 }))).map(({ id }) => id);
    expect(ids.toSorted()).toEqual(all.map(({ id }) => id).toSorted());
  });
}
