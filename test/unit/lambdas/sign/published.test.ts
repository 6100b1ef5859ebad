import { createHash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedRevocations } from '../../../../adapters/embedded/revocations.ts';
import { renewCrl } from '../../../../core/revocation/renew-crl.ts';
import { decodeRevokedList } from '../../../../core/revocation/revoked-list.ts';
import { revocationFixture } from '../../../contract/revocation/revocations.ts';
import { eventFixture, startStack } from './stack.ts';

async function opened() {
  const { revocations, crls, close } = openEmbeddedRevocations(':memory:');
  onTestFinished(close);
  const stack = await startStack({ crls: () => crls });
  onTestFinished(stack.close);
  const authority = await stack.ports.authority('demo', 'ca');
  const get = (path: string, headers: Record<string, string> = {}) =>
    stack.handler(eventFixture({ path: `/v1/clusters/demo/${path}`, headers }));
  const revoke = async () => {
    const revocation = revocationFixture({
      caKeyId: authority.signer.keyId,
      notAfter: stack.clock.now + 3_600_000,
      at: stack.clock.now,
    });
    await revocations.add(revocation);
    const { crl } = await renewCrl(authority, [revocation.serial], { revocations, crls, now: () => stack.clock.now });
    return { revocation, crl };
  };
  return { get, revoke };
}

test('GET …/crl/<ca> is the stored CRL in DER', async () => {
  const { get, revoke } = await opened();
  expect(await get('crl/ca')).toMatchObject({ statusCode: 404 });
  const { crl } = await revoke();
  const answer = await get('crl/ca');
  expect(answer).toMatchObject({ statusCode: 200, isBase64Encoded: true });
  expect(answer.headers).toMatchObject({ 'content-type': 'application/pkix-crl', 'x-countersign-outcome': 'ok' });
  expect(createHash('sha256').update(Buffer.from(answer.body, 'base64')).digest('hex')).toBe(
    createHash('sha256').update(crl.der!).digest('hex'),
  );
  expect(await get('crl/other')).toMatchObject({ statusCode: 404 });
  expect(await get('crl')).toMatchObject({ statusCode: 404 });
});

test('GET …/revoked is the list for relays, without notes and names; 304 while the CRL is the same', async () => {
  const { get, revoke } = await opened();
  const empty = await get('revoked');
  expect(empty).toMatchObject({ statusCode: 200, headers: { etag: '"0"' } });
  expect(decodeRevokedList(Buffer.from(empty.body), 'demo')).toEqual({ ok: true, value: new Map() });

  const { revocation } = await revoke();
  const answer = await get('revoked', { 'if-none-match': '"0"' });
  expect(answer).toMatchObject({ statusCode: 200, headers: { etag: '"1"' } });
  const { fingerprint, reason, at } = revocation;
  expect(JSON.parse(answer.body)).toEqual({ cluster: 'demo', revoked: [{ fingerprint, reason, at }] });
  expect(decodeRevokedList(Buffer.from(answer.body), 'demo')).toEqual({
    ok: true,
    value: new Map([[fingerprint, { reason, at }]]),
  });
  expect(await get('revoked', { 'if-none-match': '"1"' })).toMatchObject({ statusCode: 304, body: '' });
});

test.each<[string, unknown]>([
  ['the list of another cluster', { cluster: 'other', revoked: [] }],
  ['no list', { cluster: 'demo' }],
  ['an entry without a fingerprint', { cluster: 'demo', revoked: [{ reason: 'superseded', at: 1 }] }],
  ['an entry with half a fingerprint', { cluster: 'demo', revoked: [{ fingerprint: 'ab', reason: 'x', at: 1 }] }],
])('a relay refuses %s', (_, body) => {
  expect(decodeRevokedList(Buffer.from(JSON.stringify(body)), 'demo')).toMatchObject({ ok: false });
});
