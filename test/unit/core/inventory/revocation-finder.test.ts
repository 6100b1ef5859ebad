import { expect, test } from 'vitest';
import { revocationFinder } from '../../../../core/inventory/revocation-finder.ts';
import type { Revocation } from '../../../../core/ports/revocations.ts';
import { revocationFixture } from '../../../contract/revocation/revocations.ts';

const from = 1_000;

/** The lists of two keys, and how far each was read. */
function lists(...revocations: readonly Revocation[]) {
  const read: string[] = [];
  async function* list(caKeyId: string, now: number) {
    const own = revocations.filter((each) => each.caKeyId === caKeyId && each.notAfter > now);
    for (const each of own.toSorted((a, b) => a.notAfter - b.notAfter)) {
      read.push(each.serial);
      yield each;
    }
  }
  return { find: revocationFinder(list, from), read };
}

const of = (caKeyId: string, serial: string, notAfter: number) => revocationFixture({ caKeyId, serial, notAfter });

test('each record finds its own revocation: of its key, its serial number, at its time', async () => {
  const all = [of('a', '01', from), of('a', '02', 2_000), of('a', '03', 2_000), of('b', '02', 2_000)];
  const { find } = lists(...all);
  const [first, second, third, other] = all;
  expect(await find({ caKeyId: 'a', serial: '01', notAfter: from })).toBe(first);
  expect(await find({ caKeyId: 'a', serial: '09', notAfter: 1_500 })).toBeUndefined();
  expect(await find({ caKeyId: 'b', serial: '02', notAfter: 2_000 })).toBe(other);
  expect(await find({ caKeyId: 'a', serial: '03', notAfter: 2_000 })).toBe(third);
  expect(await find({ caKeyId: 'a', serial: '04', notAfter: 2_000 })).toBeUndefined();
  expect(await find({ caKeyId: 'a', serial: '02', notAfter: 2_000 })).toBe(second);
  expect(await find({ caKeyId: 'a', serial: '02', notAfter: 2_001 })).toBeUndefined();
  expect(await find({ caKeyId: 'c', serial: '02', notAfter: 2_001 })).toBeUndefined();
});

test('no more is read than the record needs: one revocation ahead', async () => {
  const { find, read } = lists(...Array.from({ length: 10 }, (_, i) => of('a', `0${i}`, 2_000 + i)));
  await find({ caKeyId: 'a', serial: '02', notAfter: 2_002 });
  expect(read).toEqual(['00', '01', '02', '03']);
});
