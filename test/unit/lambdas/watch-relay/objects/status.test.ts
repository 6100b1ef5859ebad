import { expect, test } from 'vitest';
import { violation } from '../../../../../core/outcome/outcome.ts';
import { classify } from '../../../../../lambdas/watch-relay/objects/request-phase.ts';
import {
  approvedAt,
  certificateOf,
  maxMessageBytes,
  metaTime,
  microTime,
  truncate,
  withCertificate,
  withFailed,
} from '../../../../../lambdas/watch-relay/objects/status.ts';
import { approved, object } from '../fixtures.ts';

test('a certificate is added as base64, and nothing else changes, __proto__ included', () => {
  const odd = JSON.parse(
    '{"metadata":{"name":"x","__proto__":{"a":1}},"__proto__":{"b":2},"status":{"later":true}}',
  ) as object;
  const changed = withCertificate(odd as Readonly<Record<string, unknown>>, 'PEM');
  expect(JSON.stringify(changed)).toBe(
    '{"metadata":{"name":"x","__proto__":{"a":1}},"__proto__":{"b":2},"status":{"later":true,"certificate":"UEVN"}}',
  );
  expect(certificateOf(changed)).toBe('UEVN');
  expect(certificateOf(object('x'))).toBeUndefined();
});

test('a Failed condition fits into the API, however much there is to say', () => {
  const many = Array.from({ length: 5_000 }, (_, i) => violation('SanNotPermitted', `name ${i} ${'ü'.repeat(20)}`));
  const changed = withFailed(object('x'), [violation('NameReserved', 'first'), ...many], 0);
  const status = changed['status'] as { conditions: { type: string; message: string; reason: string }[] };
  const [before, failed] = status.conditions;
  expect(before).toEqual(approved);
  expect(failed).toMatchObject({
    type: 'Failed',
    status: 'True',
    reason: 'NameReserved',
    lastUpdateTime: '1970-01-01T00:00:00Z',
  });
  expect(Buffer.byteLength(failed!.message)).toBeLessThanOrEqual(maxMessageBytes);
  expect(failed!.message.startsWith('first; name 0 ü')).toBe(true);
  expect(failed!.message.endsWith('…')).toBe(true);
});

test('text is cut between characters', () => {
  for (let bytes = 3; bytes < 40; bytes += 1) {
    const cut = truncate('aü€😀aü€😀aü€😀aü€😀', bytes);
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(bytes);
    expect(cut).not.toContain('\ufffd');
  }
  expect(truncate('short', 5)).toBe('short');
});

test('times are as the API server parses them', () => {
  expect(metaTime(1_700_000_000_987)).toBe('2023-11-14T22:13:20Z');
  expect(microTime(1_700_000_000_987)).toBe('2023-11-14T22:13:20.987000Z');
  expect(approvedAt(object('x'))).toBe(Date.UTC(2026, 0, 1));
  expect(approvedAt(object('x', { conditions: [{ type: 'Approved', status: 'True' }] }))).toBeUndefined();
  const odd = [null, 'Approved', [{ type: 'Approved' }], { type: 'Approved', lastUpdateTime: '2026-01-01T00:00:00Z' }];
  expect(approvedAt({ status: { conditions: odd } })).toBe(Date.UTC(2026, 0, 1));
});

test('a request too large to sign is still a candidate: the sign function refuses it in its own words', () => {
  const large = object('x');
  large.spec.request = Buffer.alloc(200_000, 65).toString('base64');
  expect(classify(large)).toMatchObject({ kind: 'approved' });
  expect(classify({ ...large, status: {} })).toMatchObject({ kind: 'pending' });
});

test.each(['groups', 'usages'])('finding 6: so is a request with too many %s', (field) => {
  const crowded = object('x');
  const spec = { ...crowded.spec, [field]: Array.from({ length: 1_025 }, () => 'a') };
  expect(classify({ ...crowded, spec })).toMatchObject({ kind: 'approved' });
  expect(classify({ ...crowded, spec, status: {} })).toMatchObject({ kind: 'pending' });
});

test.each([{}, { kind: 'Secret' }, { ...object('x'), spec: 3 }, { ...object('x'), status: { conditions: 'x' } }])(
  'an object the API server should not have given is malformed: %j',
  (json) => {
    expect(classify(json)).toMatchObject({ kind: 'malformed' });
  },
);
