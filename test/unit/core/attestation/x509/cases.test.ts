/** Every case of test/corpus/attestation/x509, from the evidence as sent to the machine as told. */
import { describe, expect, test } from 'vitest';
import { x509Provider } from '../../../../../core/attestation/x509/provider.ts';
import { casesBySubject } from '../../../../corpus/attestation/x509/cases.ts';
import { dataOf, isAsExpected, judge } from '../../../../corpus/attestation/x509/judge.ts';

describe.each(Object.entries(casesBySubject))('%s', (_, cases) => {
  test.for(cases.map((one) => [one.name, one] as const))('%s', async ([, one]) => {
    const judged = await judge(x509Provider, one);
    expect(isAsExpected(one, judged) || judged.outcome).toBe(true);
    if (one.machine !== undefined) expect(judged.machine).toMatchObject(one.machine);
  });

  test('names are told apart', () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  });
});

test('no message repeats a signature, a nonce or a certificate', async () => {
  for (const one of Object.values(casesBySubject).flat()) {
    const data = dataOf(one);
    const { outcome } = await judge(x509Provider, one, data);
    const { signature, nonce } = (one.dataText === undefined ? JSON.parse(data.toString()) : {}) as {
      readonly signature?: unknown;
      readonly nonce?: unknown;
    };
    for (const secret of [signature, nonce, 'MII', 'evil'])
      if (typeof secret === 'string' && secret.length > 2) expect(outcome).not.toContain(secret);
    expect(outcome.length).toBeLessThan(300);
  }
});
