/** The metadata server of a VM of Google, over a strict fake. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { connectMetadata } from '../../../../adapters/google/metadata.ts';
import { vm } from '../../../corpus/attestation/gce/machine.ts';
import { plain } from '../../../harness/fake-aws/service.ts';
import { createGoogleKey } from '../../../harness/fake-google/identity-token.ts';
import { startFakeMetadata } from '../../../harness/fake-google/metadata.ts';
import type { FakeMetadata } from '../../../harness/fake-google/metadata.ts';

let server: FakeMetadata;
beforeAll(async () => {
  server = await startFakeMetadata({ vm, key: createGoogleKey('google-1'), now: Date.now });
});
afterEach(() => server.mend());
afterAll(() => server.close());

const flavor = { 'metadata-flavor': 'Google' };
/** `timeoutMilliseconds`: short where nothing is to come of it. */
const connect = (timeoutMilliseconds = 10_000) => connectMetadata({ host: server.host, timeoutMilliseconds });

test('tells what it has; what is not there is nothing', async () => {
  expect(await connect().read('instance/name')).toBe(vm.name);
  expect(await connect().read('instance/no-such')).toBeUndefined();
  expect(server.received.at(-1)?.headers).toMatchObject({ 'metadata-flavor': 'Google' });
});

test('a server that is slow for a moment is asked again, one that stays so is not for ever', async () => {
  server.inject({ when: 'before', times: 2, answer: plain(503, 'moved', flavor) });
  expect(await connect().read('instance/name')).toBe(vm.name);
  const before = server.received.length;
  server.inject({ when: 'before', answer: plain(500, 'no', flavor) });
  await expect(connect().read('instance/name')).rejects.toThrow('answers with status 500');
  expect(server.received).toHaveLength(before + 3);
  server.inject({ delayMs: 2_000 });
  await expect(connect(200).read('instance/name')).rejects.toThrow('cannot be reached');
});

test('another server, which does not name its flavor, is not believed', async () => {
  server.inject({ when: 'before', answer: plain(200, 'evil') });
  await expect(connect().read('instance/name')).rejects.toThrow('no metadata server of Google');
  server.inject({ when: 'before', answer: plain(404, 'evil') });
  await expect(connect().read('instance/name')).rejects.toThrow('no metadata server of Google');
});

test('a redirect and an answer that is too large are refused', async () => {
  server.inject({ when: 'before', answer: plain(302, '', { ...flavor, location: 'http://evil.example/' }) });
  await expect(connect().read('instance/name')).rejects.toThrow('answers with status 302');
  server.inject({ when: 'before', answer: plain(200, 'x'.repeat(70_000), flavor) });
  await expect(connect().read('instance/name')).rejects.toThrow('cannot be reached');
});
