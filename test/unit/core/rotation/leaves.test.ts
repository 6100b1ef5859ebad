import { expect, test } from 'vitest';
import { countLeaves } from '../../../../core/rotation/leaves.ts';
import type { IssuingRecord } from '../../../../core/ports/certificate-ledger.ts';
import { day, ledgerFolder } from '../../cli/inventory/ledger.ts';

const now = Date.parse('2026-06-01T12:00:00Z');
const kubelet = 'kubernetes.io/kube-apiserver-client-kubelet';

async function* each(records: readonly IssuingRecord[]): AsyncGenerator<IssuingRecord> {
  yield* records;
}
const count = (records: readonly IssuingRecord[], revoked: readonly string[] = [], limit = 10) =>
  countLeaves(each(records), { keyId: 'key-a', revoked: new Set(revoked), now, limit });

async function nodes(keyId: string, at: number, ...names: string[]): Promise<IssuingRecord[]> {
  const ledger = await ledgerFolder(keyId);
  const made: IssuingRecord[] = [];
  for (const name of names)
    made.push(await ledger.issued(at, { request: { subject: { O: 'system:nodes', CN: `system:node:${name}` } } }));
  return made;
}

test('counts by signer and holder, and tells who has renewed', async () => {
  const old = await nodes('key-a', now - 10 * day, 'n1', 'n2', 'n3');
  const again = await nodes('key-a', now - 5 * day, 'n1');
  const renewed = await nodes('key-b', now - day, 'n2');
  const earlier = await nodes('key-b', now - 20 * day, 'n3');
  const leaves = await count([...old, ...again, ...renewed, ...earlier]);
  expect(leaves).toMatchObject({
    certificates: 4,
    last: again[0]?.notAfter,
    signers: [{ signerName: kubelet, certificates: 4, last: again[0]?.notAfter }],
    more: false,
    revoked: 0,
  });
  // Holders that have not renewed come first. A certificate of another CA from before is no renewal.
  expect(
    leaves.holders.map(({ holder, certificates, renewed: done, node }) => ({ holder, certificates, done, node })),
  ).toEqual([
    { holder: 'n1', certificates: 2, done: false, node: true },
    { holder: 'n3', certificates: 1, done: false, node: true },
    { holder: 'n2', certificates: 1, done: true, node: true },
  ]);
  expect(leaves.holders[0]).toMatchObject({ serial: again[0]?.serial, notAfter: again[0]?.notAfter });
});

test('expired, revoked and abandoned ones do not count; one that is being signed does', async () => {
  const [expired] = await nodes('key-a', now - 31 * day, 'n1');
  const [revoked, intent, given] = await nodes('key-a', now - day, 'n2', 'n3', 'n4');
  const { certificate: _, ...unsigned } = intent!;
  const begun = { ...unsigned, state: 'intent', leaseUntil: now + 1 } as const;
  const records = [expired!, revoked!, begun, { ...unsigned, uid: 'x', state: 'intent', leaseUntil: now } as const];
  expect(await count([...records, { ...given!, state: 'expired' }], [revoked!.serial])).toMatchObject({
    certificates: 1,
    revoked: 1,
    holders: [{ holder: 'n3' }],
  });
});

test('lists as many holders as wanted, and says that there are more', async () => {
  const records = await nodes('key-a', now - day, 'n1', 'n2', 'n3');
  const leaves = await count(records, [], 2);
  expect([leaves.certificates, leaves.holders.length, leaves.more]).toEqual([3, 2, true]);
});
