/** Every case of test/corpus/attestation/gce, from the evidence as sent to the machine as told. */
import { describe, expect, test } from 'vitest';
import { gceProvider } from '../../../../../core/attestation/gce/provider.ts';
import { casesBySubject } from '../../../../corpus/attestation/gce/cases.ts';
import { dataOf, isAsExpected, judge, tokenOf } from '../../../../corpus/attestation/gce/judge.ts';
import * as world from '../../../../corpus/attestation/gce/machine.ts';

const place = world.identity.slice('gce#'.length);

describe.each(Object.entries(casesBySubject))('%s', (_, cases) => {
  test.for(cases.map((one) => [one.name, one] as const))('%s', async ([, one]) => {
    const judged = await judge(gceProvider, one);
    expect(isAsExpected(one, judged) || judged).toBe(true);
    // Google's own key first: no call for a VM that a requester only names. By the id, because a name passes on.
    expect(judged.asked).toEqual(['keys', `describe ${place}`].slice(0, judged.asked.length));
    if (one.machine !== undefined) expect(judged.machine).toMatchObject(one.machine);
  });

  test('names are told apart', () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  });
});

test('no message repeats the token or the nonce', async () => {
  for (const one of Object.values(casesBySubject).flat()) {
    const { outcome } = await judge(gceProvider, one, dataOf(one));
    for (const secret of [world.nonce, 'evil', ...tokenOf(one).split('.')]) expect(outcome).not.toContain(secret);
    expect(outcome.length).toBeLessThan(300);
  }
});
