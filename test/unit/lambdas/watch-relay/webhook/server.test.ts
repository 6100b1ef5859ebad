import { renameSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { connect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { statusOf, strangeTargets } from '../../../../harness/processes/raw-requests.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../../harness/x509/test-certificates.ts';
import {
  authority,
  bearer,
  byCertificate,
  byToken,
  client,
  clientOf,
  file,
  path,
  serve,
  token,
  useWebhookFiles,
} from '../webhook-front.ts';

useWebhookFiles();

test('more than it can do at once are told to come back, strangers not even that', async () => {
  const { ask, calls, hold, outcomes, release } = await serve(byToken(), 2);
  hold();
  const first = [ask({ headers: bearer(token) }), ask({ headers: bearer(token) })];
  await expect.poll(() => calls.length).toBe(2);
  const answer = await ask({ headers: bearer(token) });
  expect(answer).toMatchObject({ status: 503, outcome: 'busy' });
  expect(answer.headers).not.toHaveProperty('retry-after');
  expect(await ask()).toMatchObject({ status: 401 });
  release();
  for (const one of first) expect(await one).toMatchObject({ status: 200 });
  expect(await ask({ headers: bearer(token) })).toMatchObject({ status: 200 });
  expect(outcomes).toEqual(['busy', 'unauthenticated', 'issued', 'issued', 'issued']);
});

test('too large a body is refused, whether it says so or not', async () => {
  const { ask, calls } = await serve(byToken());
  const body = 'x'.repeat(1_572_865);
  expect(await ask({ headers: bearer(token), body })).toMatchObject({ status: 413, outcome: 'refused' });
  const chunked = { ...bearer(token), 'transfer-encoding': 'chunked' };
  expect(await ask({ headers: chunked, body })).toMatchObject({ status: 413 });
  expect(await ask({ headers: bearer(token), body: body.slice(1) })).toMatchObject({ status: 200 });
  expect(calls).toHaveLength(1);
});

test('work without a waiting client is called off, after 25 s or when the client is gone', async () => {
  const { ask, calls, clock, hold, server, signals } = await serve(byToken(), 1);
  hold();
  const slow = ask({ headers: bearer(token) });
  await expect.poll(() => calls.length).toBe(1);
  await clock.advance(24_999);
  expect(signals[0]?.aborted).toBe(false);
  await clock.advance(1);
  expect(signals[0]?.aborted).toBe(true);
  await slow;

  const socket = connect({ host: '127.0.0.1', port: server.address.port, ca: authority.certificatePem });
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-length: 0\r\n\r\n`);
  await expect.poll(() => calls.length).toBe(2);
  socket.destroy();
  await expect.poll(() => signals[1]?.aborted).toBe(true);
  // And its place is free again.
  const next = ask({ headers: bearer(token) });
  await expect.poll(() => calls.length).toBe(3);
  await clock.advance(25_000);
  expect(await next).toMatchObject({ status: 200 });
});

test('no request line ends anything, known callers’ and strangers’', async () => {
  const { ask, logged, server } = await serve(byToken());
  const open = () => connect({ host: '127.0.0.1', port: server.address.port, ca: authority.certificatePem });
  for (const target of strangeTargets)
    for (const headers of [{}, bearer(token)])
      expect([200, 400, 401, 'closed']).toContain(await statusOf(open, target, { method: 'POST', headers }));
  expect(await ask({ headers: bearer(token) })).toMatchObject({ status: 200 });
  expect(logged.filter((line) => line.startsWith('error'))).toEqual([]);
});

test('nor does an answer that cannot be sent', async () => {
  const { answerWith, ask, logged } = await serve(byToken());
  answerWith({ statusCode: 200, headers: { 'x-bad': 'a\nb' }, body: '' });
  await expect(ask({ headers: bearer(token) })).rejects.toThrow();
  expect(logged.filter((line) => line.startsWith('error webhook: internal error'))).toHaveLength(1);
  expect(await ask()).toMatchObject({ status: 401 });
});

test('only over TLS of today', async () => {
  const { server } = await serve(byToken());
  const old = new Promise((resolve, reject) => {
    const { port } = server.address;
    const options = { host: '127.0.0.1', port, ca: authority.certificatePem, minVersion: 'TLSv1' as const };
    const socket = connect({ ...options, maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }, () =>
      resolve('let in'),
    );
    socket.on('error', reject);
  });
  await expect(old).rejects.toThrow(/protocol version|EPROTO|alert/i);
  await expect(fetch(`http://127.0.0.1:${server.address.port}${path}`, { method: 'POST' })).rejects.toThrow();
});

describe('certificates', () => {
  test('are taken up when they are replaced, and the old ones stay while the new cannot be used', async () => {
    const { ask, clock, logged } = await serve(byCertificate());
    const next = await createTestAuthority('next clients');
    const nextClient = await clientOf(next, 'gcp-controller-manager');
    expect(await ask({ login: nextClient })).toMatchObject({ status: 401 });
    writeFileSync(file('ca.crt'), next.certificatePem);
    const renewed = await authority.issue({ subject: [{ CN: ['w'] }], extensions: loopbackServerExtensions() });
    writeFileSync(file('tls.crt'), renewed.certificatePem); // the key comes later
    await clock.advance(20_000);
    expect(logged.filter((line) => line.startsWith('error'))).toHaveLength(1);
    expect(await ask({ login: client })).toMatchObject({ status: 200 });
    writeFileSync(file('tls.key'), renewed.keyPem);
    await clock.advance(10_000);
    expect(await ask({ login: client })).toMatchObject({ status: 401 });
    expect(await ask({ login: nextClient })).toMatchObject({ status: 200 });
    expect(logged.at(-1)).not.toContain('PRIVATE');
  });

  test.each<[string, () => void, RegExp]>([
    ['no certificate', () => renameSync(file('tls.crt'), file('gone')), /--webhook-cert .*ENOENT/],
    ['another key', () => writeFileSync(file('tls.key'), client.keyPem), /--webhook-cert, --webhook-key: .*mismatch/],
    ['no key', () => writeFileSync(file('tls.key'), 'x'), /--webhook-cert, --webhook-key/],
    ['an empty CA', () => writeFileSync(file('ca.crt'), ''), /--webhook-client-ca/],
    ['an invalid CA', () => writeFileSync(file('ca.crt'), 'x'), /--webhook-client-ca/],
  ])('with %s there is no server', async (_, spoil, message) => {
    spoil();
    await expect(serve(byCertificate())).rejects.toThrow(message);
  });
});

test('finding 20: 300 connections that say nothing shut no caller out, and end none of theirs', async () => {
  const { ask, calls, hold, release, server } = await serve(byToken(), 4);
  hold();
  const known = ask({ headers: bearer(token) });
  await expect.poll(() => calls.length).toBe(1);
  let [opened, closed] = [0, 0];
  for (let number = 0; number < 300; number += 1) {
    const socket = connectTcp(server.address.port, '127.0.0.1', () => (opened += 1));
    socket.on('error', () => {});
    socket.resume().on('close', () => (closed += 1));
  }
  // Each takes a turn of the loop, on client and server: beside other work more than vitest's second.
  const patience = { timeout: 20_000 };
  await expect.poll(() => opened, patience).toBe(300);
  const next = ask({ headers: bearer(token) });
  await expect.poll(() => calls.length, patience).toBe(2);
  // Of one address no more than 64, besides what is known.
  await expect.poll(() => opened - closed, patience).toBeLessThanOrEqual(64);
  release();
  expect(await known).toMatchObject({ status: 200 });
  expect(await next).toMatchObject({ status: 200 });
  // None gets as far as a handshake.
  await expect.poll(() => opened - closed, patience).toBe(0);
}, 60_000);

test('finding 21: strangers fill no log', async () => {
  const { ask, logged, outcomes } = await serve(byToken());
  for (let number = 0; number < 30; number += 1) expect(await ask()).toMatchObject({ status: 401 });
  expect(outcomes).toHaveLength(30);
  expect(logged).toHaveLength(10);
});

test('stopping finishes what is under way and takes nothing more', async () => {
  const { ask, calls, hold, release, server } = await serve(byToken());
  hold();
  const last = ask({ headers: bearer(token) });
  await expect.poll(() => calls.length).toBe(1);
  const closed = server.close(60_000);
  await expect(ask({ headers: bearer(token) })).rejects.toThrow('ECONNREFUSED');
  release();
  expect(await last).toMatchObject({ status: 200, headers: { connection: 'close' } });
  await closed;
});
