import { describe, expect, test } from 'vitest';
import { triage, triagePending } from '../../../../core/kubernetes/triage.ts';
import { object } from '../questions.ts';

const condition = (type: string, status: string | undefined = 'True') => ({
  type,
  ...(status === '' ? {} : { status }),
});
type Case = readonly [
  what: string,
  conditions: readonly { readonly type: string; readonly status?: string }[],
  hasCertificate: boolean,
  approved: string | undefined,
  pending: string | undefined,
];

/** Whose turn it is: of the signer, and of the one that judges before approval. */
const cases: readonly Case[] = [
  ['nothing decided', [], false, 'NotApproved', undefined],
  ['approved', [condition('Approved')], false, undefined, undefined],
  [
    'approved, by a writer that leaves the status out (v1beta1)',
    [condition('Approved', '')],
    false,
    undefined,
    undefined,
  ],
  ['an approval that says False', [condition('Approved', 'False')], false, 'NotApproved', undefined],
  ['an approval that says Unknown', [condition('Approved', 'Unknown')], false, 'NotApproved', undefined],
  [
    'two approvals of which one says False',
    [condition('Approved'), condition('Approved', 'False')],
    false,
    'NotApproved',
    undefined,
  ],
  ['denied', [condition('Denied')], false, 'Denied', 'Denied'],
  ['denied, whatever its status says', [condition('Denied', 'False')], false, 'Denied', 'Denied'],
  ['approved and denied', [condition('Approved'), condition('Denied')], false, 'Denied', 'Denied'],
  ['failed', [condition('Failed')], false, 'Failed', 'Failed'],
  ['failed, whatever its status says', [condition('Failed', 'False')], false, 'Failed', 'Failed'],
  ['approved and failed', [condition('Approved'), condition('Failed')], false, 'Failed', 'Failed'],
  ['approved and issued', [condition('Approved')], true, 'AlreadyIssued', 'AlreadyIssued'],
  ['issued without an approval', [], true, 'NotApproved', 'AlreadyIssued'],
  ['a condition of another type', [condition('Reviewed')], false, 'NotApproved', undefined],
];

describe('whose turn it is', () => {
  test.for(cases)('%s', ([, conditions, hasCertificate, approved, pending]) => {
    const asked = { ...object(), conditions, hasCertificate };
    expect(triage(asked)).toBe(approved);
    expect(triagePending(asked)).toBe(pending);
  });
});
