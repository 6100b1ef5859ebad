/** Google's keys for identity tokens, over a strict fake of Google. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { fetchGoogleKeySet } from '../../../../adapters/google/key-set.ts';
import { ThrottledError } from '../../../../core/ports/errors.ts';
import { plain } from '../../../harness/fake-aws/service.ts';
import { startFakeGoogle } from '../../../harness/fake-google/google.ts';
import type { FakeGoogle } from '../../../harness/fake-google/google.ts';
import { createGoogleKey, jwkOf } from '../../../harness/fake-google/identity-token.ts';

const keySet = { keys: [jwkOf(createGoogleKey('google-1'))] };
let google: FakeGoogle;
beforeAll(async () => {
  const pool = { provider: '//iam.googleapis.com/x', account: '111122223333', role: 'none' };
  google = await startFakeGoogle({ pool, stsPort: 0, now: Date.now });
  google.keySet = keySet;
});
afterEach(() => google.mend());
afterAll(() => google.close());

const fetchKeySet = (timeoutMilliseconds = 10_000) =>
  fetchGoogleKeySet({ endpoint: () => google.url, timeoutMilliseconds });

test('is read from one address, without a login', async () => {
  expect(await fetchKeySet()).toEqual(keySet);
  expect(google.received.at(-1)).toMatchObject({
    method: 'GET',
    target: '/oauth2/v3/certs',
    headers: { host: 'www.googleapis.com' },
  });
});

test.each([
  ['a redirect', plain(302, '', { location: 'https://evil.example/certs' }), 'status 302'],
  ['no such page', plain(404, 'x'), 'status 404'],
  ['an error', plain(503, 'x'), 'status 503'],
  ['a page of two megabytes', plain(200, `{"keys":"${'x'.repeat(2_000_000)}"}`), 'did not answer properly'],
])('%s is no answer', async (_, answer, message) => {
  const before = google.received.length;
  google.inject({ when: 'before', answer, times: 1 });
  await expect(fetchKeySet()).rejects.toThrow(message);
  expect(google.received).toHaveLength(before + 1);
});

test('an answer that is no JSON object has no keys', async () => {
  google.inject({ when: 'before', answer: plain(200, '["keys"]'), times: 1 });
  expect(await fetchKeySet()).toEqual({});
});

test('is asked to slow down, or not answered at all', async () => {
  google.inject({ when: 'before', answer: plain(429, ''), times: 1 });
  await expect(fetchKeySet()).rejects.toThrow(ThrottledError);
  google.inject({ delayMs: 2_000, times: 1 });
  await expect(fetchKeySet(200)).rejects.toThrow('did not answer properly');
});
