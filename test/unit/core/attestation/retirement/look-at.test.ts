/** What one look at a recorded machine means: docs/attestation.md, Machines that end. */
import { expect, test } from 'vitest';
import { lookAt } from '../../../../../core/attestation/retirement/look-at.ts';
import type { IdentityRecord } from '../../../../../core/ports/attestation-store.ts';

const minute = 60_000;
const now = 1_800_000_000_000;
const record: IdentityRecord = {
  identity: 'aws#m1',
  nodeName: 'node-1',
  state: 'active',
  previousSpkis: [],
  providerId: 'aws:///a/m1',
  addresses: [],
  firstSeen: now - 900 * minute,
  lastSeen: now - minute,
  renewals: 0,
  uses: 3,
  rev: 3,
};
const seen = (ago: number): IdentityRecord => ({ ...record, unknownSince: now - ago });
const keep = { kind: 'keep' };
const marked = { kind: 'observe', record: { ...record, unknownSince: now, rev: 4 } };
const unmarked = { kind: 'observe', record: { ...record, rev: 4 } };

test.each([
  ['terminated for the first time', record, 'gone', marked],
  ['terminated, and the first look is too recent', seen(2 * minute - 1), 'gone', keep],
  ['terminated at both looks', seen(2 * minute), 'gone', { kind: 'retire', record: seen(2 * minute) }],
  [
    'terminated, 30 minutes after the first look',
    seen(30 * minute),
    'gone',
    { kind: 'retire', record: seen(30 * minute) },
  ],
  ['terminated, and the first look is too old', seen(30 * minute + 1), 'gone', marked],
  ['terminated, and the clock of the first look is a little ahead', seen(-minute), 'gone', keep],
  ['terminated, and the first look is in the future', seen(-minute - 1), 'gone', marked],
  ['running', record, 'running', keep],
  ['running after a first look', seen(5 * minute), 'running', unmarked],
  ['stopped', record, 'stopped', keep],
  ['stopped after a first look', seen(5 * minute), 'stopped', unmarked],
  ['unknown', record, 'unknown', keep],
  ['unknown, long after a first look', seen(20 * minute), 'unknown', keep],
  ['retired before', { ...seen(5 * minute), state: 'retired' }, 'gone', keep],
  ['retired before, and running', { ...seen(5 * minute), state: 'retired' }, 'running', keep],
] as const)('%s', (_, of, state, look) => {
  expect(lookAt(of, state, now)).toEqual(look);
});
