/** Every case of test/corpus/attestation/tpm: from the evidence as sent to the machine as told, and what was asked on the way. */
import { describe, expect, test } from 'vitest';
import { tpmProvider } from '../../../../../core/attestation/tpm/provider.ts';
import { casesBySubject } from '../../../../corpus/attestation/tpm/cases.ts';
import { isAsExpected, judge } from '../../../../corpus/attestation/tpm/judge.ts';

describe.each(Object.entries(casesBySubject))('%s', (subject, cases) => {
  test.for(cases.map((one) => [one.name, one] as const))('%s', async ([, one]) => {
    const judged = await judge(tpmProvider, one);
    expect(isAsExpected(one, judged) ? one.expect : judged.outcome).toEqual(one.expect);
    // Nothing is asked of others before all local checks hold.
    if (typeof one.expect !== 'string' && !['challenge', 'trust'].includes(subject)) expect(judged.asked).toEqual([]);
    if (one.expect === 'activated') expect(judged.asked).toEqual(['list', 'mac']);
  });
});

test('names are told apart, within a subject', () => {
  for (const cases of Object.values(casesBySubject))
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
});
