/** What every CertificateReads must do, over the ledger of the same store. */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CertificateLedger, Intent } from '../../core/ports/certificate-ledger.ts';
import type { CertificateReads, ExpiryRange } from '../../core/ports/certificate-reads.ts';
import { intentFixture } from './certificate-ledger.ts';

export interface ReadsUnderTest {
  readonly ledger: CertificateLedger;
  readonly reads: CertificateReads;
  /** Of another cluster. */
  readonly other: CertificateReads;
  readonly close: () => Promise<void>;
}

const day = 86_400_000;

/** The midnight of a day that no other test uses. */
export function ownDay(): number {
  return (randomInt(30_000, 60_000) * 10 + 5) * day;
}

export function certificateReadsContract(name: string, make: () => Promise<ReadsUnderTest>): void {
  describe(`CertificateReads contract: ${name}`, () => {
    let made: ReadsUnderTest;
    let ledger: CertificateLedger;
    let reads: CertificateReads;
    beforeAll(async () => {
      made = await make();
      ({ ledger, reads } = made);
    });
    afterAll(() => made.close());

    const opened = async (changes: readonly Partial<Intent>[]): Promise<readonly Intent[]> => {
      const intents = changes.map((change) => intentFixture(change));
      await Promise.all(intents.map((intent) => ledger.open(intent)));
      return intents;
    };
    const uidsIn = async (range: ExpiryRange): Promise<readonly string[]> =>
      (await Array.fromAsync(reads.listByExpiry(range))).map(({ uid }) => uid);

    test('a serial number leads to its record, as it is now', async () => {
      const [intent] = await opened([{ identity: 'aws#i-1' }]);
      expect(await reads.findSerial(intent!.serial)).toEqual({ ...intent, state: 'intent', attempt: 1 });
      await ledger.complete(intent!.uid, Uint8Array.of(1, 2), 'kms-1');
      expect(await reads.findSerial(intent!.serial)).toEqual(await ledger.find(intent!.uid));
      expect(await reads.findSerial(intent!.serial.slice(2))).toBeUndefined();
      expect(await made.other.findSerial(intent!.serial)).toBeUndefined();
    });

    test('what was requested comes back exactly, and a record without it is read too', async () => {
      const request = {
        signerName: 'kubernetes.io/kubelet-serving',
        requester: 'system:node:n1 "ü"',
        groups: ['system:nodes', 'a,b', ''],
        usages: [],
        expirationSeconds: 0,
      };
      const notAfter = ownDay();
      const intents = await opened([{ notAfter, request }, { notAfter: notAfter + 1 }]);
      const found = await Array.fromAsync(reads.listByExpiry({ from: notAfter, to: notAfter + 2 }));
      expect(found).toEqual(intents.map((intent) => ({ ...intent, state: 'intent', attempt: 1 })));
      expect(found.map((record) => 'request' in record)).toEqual([true, false]);
      await ledger.complete(intents[0]!.uid, Uint8Array.of(1));
      expect((await ledger.find(intents[0]!.uid))?.request).toEqual(request);
    });

    test('a range has its first instant and not its last, and any number of days', async () => {
      const from = ownDay() + 1_000;
      const to = from + 3 * day;
      const times = [from - 1, from, from + day, from + 2 * day, to - 1, to];
      const intents = await opened(times.map((notAfter) => ({ notAfter })));
      expect(await uidsIn({ from, to })).toEqual(intents.slice(1, 5).map(({ uid }) => uid));
      for (const empty of [from, from - 1]) expect(await uidsIn({ from, to: empty })).toEqual([]);
      expect(await Array.fromAsync(made.other.listByExpiry({ from, to }))).toEqual([]);
    });

    test('each state is listed', async () => {
      const from = ownDay();
      const [intent, issued, expired] = await opened([0, 1, 2].map((more) => ({ notAfter: from + more })));
      await ledger.complete(issued!.uid, Uint8Array.of(1));
      await ledger.expire(expired!.uid, 1);
      const found = await Array.fromAsync(reads.listByExpiry({ from, to: from + day }));
      expect(found.map(({ uid, state }) => [uid, state])).toEqual([
        [intent!.uid, 'intent'],
        [issued!.uid, 'issued'],
        [expired!.uid, 'expired'],
      ]);
    });

    test('from each record on: the rest, once each, in the same order, also where hundreds expire at one instant', async () => {
      const from = ownDay() - 2 * day;
      // As near the end of a CA, with which its certificates end. The pages of a store have 100 records.
      const together = Array.from({ length: 230 }, (_, i) => ({
        notAfter: from + day,
        serial: `${randomBytes(15).toString('hex')}0${i < 130 ? '7' : (i % 16).toString(16)}`,
      }));
      const apart = Array.from({ length: 40 }, () => ({ notAfter: from + randomInt(2 * day) }));
      const intents = await opened([...together, ...apart]);
      const range = { from, to: from + 2 * day };
      const all = await Array.fromAsync(reads.listByExpiry(range));
      expect(all.map(({ uid }) => uid).toSorted()).toEqual(intents.map(({ uid }) => uid).toSorted());
      const times = all.map(({ notAfter }) => notAfter);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      for (const at of [0, 1, 60, 119, 120, 121, 180, 229, 240, 268, 269]) {
        const rest = await uidsIn({ ...range, after: all[at]! });
        expect(rest, `after ${at}`).toEqual(all.slice(at + 1).map(({ uid }) => uid));
      }
      // A place before the range, and one behind it.
      expect(await uidsIn({ ...range, after: { uid: 'x', serial: 'ff', notAfter: from - 1 } })).toHaveLength(270);
      expect(await uidsIn({ ...range, after: { uid: 'x', serial: 'ff', notAfter: from + 3 * day } })).toEqual([]);
    });

    test('a record whose UID was taken over by another attempt is one record', async () => {
      const from = ownDay();
      const [intent] = await opened([{ notAfter: from, uid: `again-${randomUUID()}` }]);
      await ledger.takeOver(intent!.uid, 1, from);
      const found = await Array.fromAsync(reads.listByExpiry({ from, to: from + 1 }));
      expect(found.map(({ uid, attempt }) => [uid, attempt])).toEqual([[intent!.uid, 2]]);
    });
  });
}
