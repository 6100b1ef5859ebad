import { renameSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { jsonAnswer } from '../../../adapters/lambda-http.ts';
import type { HttpAnswer } from '../../../adapters/lambda-http.ts';
import type { WebhookCall } from '../../../lambdas/watch-relay/webhook-proxy.ts';
import { serveWebhook } from '../../../lambdas/watch-relay/webhook-server.ts';
import type { WebhookSettings } from '../../../lambdas/watch-relay/webhook-settings.ts';
import { temporaryFolder } from '../../harness/processes.ts';
import { clientExtensions, createTestAuthority, loopbackServerExtensions } from '../../harness/test-certificates.ts';
import type { KeyAndCertificate, TestAuthority } from '../../harness/test-certificates.ts';
import { createVirtualClock } from './virtual-clock.ts';

const folder = temporaryFolder('webhook-server');
const file = (name: string) => join(folder.path, name);
const token = '0123456789abcdef0123456789abcdef';
const subject = 'O=example,CN=gcp-controller-manager';
const path = '/v1/clusters/prod/sign';

let authority: TestAuthority;
let clients: TestAuthority;
let client: KeyAndCertificate;
let serving: KeyAndCertificate;
beforeAll(async () => {
  authority = await createTestAuthority('servers');
  clients = await createTestAuthority('clients');
  serving = await authority.issue({ subject: [{ CN: ['w'] }], extensions: loopbackServerExtensions() });
  client = await clientOf(clients, 'gcp-controller-manager');
});
beforeEach(() => {
  writeFileSync(file('tls.crt'), serving.certificatePem);
  writeFileSync(file('tls.key'), serving.keyPem);
  writeFileSync(file('token'), `${token}\n`);
  writeFileSync(file('ca.crt'), clients.certificatePem);
});
const closes: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0)) await close();
});
afterAll(() => folder.remove());

function clientOf(ca: TestAuthority, name: string, extensions = clientExtensions()): Promise<KeyAndCertificate> {
  return ca.issue({ subject: [{ O: ['example'] }, { CN: [name] }], extensions });
}

interface Ask {
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly login?: KeyAndCertificate;
  /** Do not wait for the answer before ending the body. */
  readonly method?: string;
}

async function serve(ways: Pick<WebhookSettings, 'tokenFile' | 'client'>, concurrency = 2) {
  const clock = createVirtualClock();
  const calls: WebhookCall[] = [];
  const signals: AbortSignal[] = [];
  const outcomes: string[] = [];
  const logged: string[] = [];
  const waiting: (() => void)[] = [];
  let held = false;
  const log = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const answer: HttpAnswer = jsonAnswer(200, { ok: true }, { 'x-countersign-outcome': 'issued' });
  const server = await serveWebhook(
    { address: { host: '127.0.0.1', port: 0 }, certFile: file('tls.crt'), keyFile: file('tls.key'), ...ways },
    async (call, signal) => {
      calls.push(call);
      signals.push(signal);
      if (held)
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          signal.addEventListener('abort', () => resolve());
        });
      return answer;
    },
    {
      concurrency,
      clock,
      log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
      answered: (outcome) => outcomes.push(outcome),
    },
  );
  closes.push(() => server.close(0).then(() => clock.advance(0)));

  function ask({ body = '{}', headers = {}, login, method = 'POST' }: Ask = {}) {
    return new Promise<{ status: number; outcome: unknown; headers: Record<string, unknown> }>((resolve, reject) => {
      const outgoing = httpsRequest({
        host: '127.0.0.1',
        port: server.address.port,
        path: `${path}?timeout=30s`,
        method,
        agent: false,
        ca: authority.certificatePem,
        headers: { 'content-type': 'application/json', ...headers },
        ...(login === undefined ? {} : { cert: login.certificatePem, key: login.keyPem }),
      });
      outgoing.on('error', reject);
      outgoing.on('response', (incoming) => {
        incoming.resume();
        const { statusCode: status = 0, headers: got } = incoming;
        incoming.on('end', () => resolve({ status, outcome: got['x-countersign-outcome'], headers: got }));
      });
      outgoing.end(body);
    });
  }
  return {
    server,
    clock,
    calls,
    signals,
    outcomes,
    logged,
    ask,
    hold: () => (held = true),
    release: () => {
      held = false;
      for (const go of waiting.splice(0)) go();
    },
  };
}

const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
const byToken = () => ({ tokenFile: file('token') });
const byCertificate = () => ({ client: { caFile: file('ca.crt'), subject } });

describe('a caller with a token', () => {
  test('is served', async () => {
    const { ask, calls, outcomes } = await serve(byToken());
    expect(await ask({ headers: bearer(token), body: '{"ü":1}' })).toMatchObject({ status: 200, outcome: 'issued' });
    expect(calls).toMatchObject([{ method: 'POST', path, contentType: 'application/json' }]);
    expect(Buffer.from(calls[0]!.body).toString()).toBe('{"ü":1}');
    expect(outcomes).toEqual(['issued']);
  });

  test.each<[string, Record<string, string>]>([
    ['none', {}],
    ['another', bearer('f'.repeat(32))],
    ['the beginning of it', bearer(token.slice(0, -1))],
    ['more than it', bearer(`${token}0`)],
    ['nothing after Bearer', { authorization: 'Bearer ' }],
    ['it as a password', { authorization: `Basic ${Buffer.from(`x:${token}`).toString('base64')}` }],
    ['it twice', { authorization: `Bearer ${token}, Bearer ${token}` }],
  ])('that shows %s gets 401, and nothing reaches anybody', async (_, headers) => {
    const { ask, calls, outcomes, logged } = await serve(byToken());
    const answer = await ask({ headers });
    expect(answer).toMatchObject({ status: 401, outcome: 'invalid', headers: { 'www-authenticate': 'Bearer' } });
    expect(calls).toEqual([]);
    expect(outcomes).toEqual(['unauthenticated']);
    expect(logged).toHaveLength(1);
    expect(logged[0]).not.toContain(token.slice(0, 20));
  });

  test('may be given another one at any time', async () => {
    const { ask } = await serve(byToken());
    const next = 'f'.repeat(32);
    writeFileSync(file('token.new'), next);
    renameSync(file('token.new'), file('token'));
    expect(await ask({ headers: bearer(token) })).toMatchObject({ status: 401 });
    expect(await ask({ headers: bearer(next) })).toMatchObject({ status: 200 });
  });

  test.each(['', 'short'])('is nobody while the file holds %j', async (content) => {
    const { ask } = await serve(byToken());
    writeFileSync(file('token'), content);
    expect(await ask({ headers: bearer(content) })).toMatchObject({ status: 401 });
    expect(await ask({ headers: bearer(token) })).toMatchObject({ status: 401 });
  });
});

describe('a caller with a certificate', () => {
  test('is served', async () => {
    const { ask } = await serve(byCertificate());
    expect(await ask({ login: client })).toMatchObject({ status: 200 });
  });

  test('without one, of another CA, subject or purpose gets 401', async () => {
    const { ask, calls, logged } = await serve(byCertificate());
    expect(await ask()).toMatchObject({ status: 401 });
    const forged = await createTestAuthority('clients'); // the name alone is nothing
    for (const ca of [authority, forged])
      expect(await ask({ login: await clientOf(ca, 'gcp-controller-manager') })).toMatchObject({ status: 401 });
    for (const name of ['gcp-controller-manager-2', 'GCP-controller-manager', 'x,CN=gcp-controller-manager'])
      expect(await ask({ login: await clientOf(clients, name) })).toMatchObject({ status: 401 });
    const forServers = await clientOf(clients, 'gcp-controller-manager', loopbackServerExtensions());
    expect(await ask({ login: forServers })).toMatchObject({ status: 401 });
    expect(calls).toEqual([]);
    expect(logged.filter((line) => line.includes('another subject'))).toHaveLength(3);
  });

  test('has to show a token too, where one is asked for', async () => {
    const { ask } = await serve({ ...byToken(), ...byCertificate() });
    expect(await ask({ login: client })).toMatchObject({ status: 401 });
    expect(await ask({ headers: bearer(token) })).toMatchObject({ status: 401 });
    expect(await ask({ login: client, headers: bearer(token) })).toMatchObject({ status: 200 });
  });

  test('cannot go on with an earlier session', async () => {
    const { clock, logged, server, ask } = await serve(byCertificate());
    const options: ConnectionOptions = {
      host: '127.0.0.1',
      port: server.address.port,
      ca: authority.certificatePem,
      cert: client.certificatePem,
      key: client.keyPem,
    };
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3', 'TLSv1.2', 'TLSv1.3'] as const) {
      const sessions: Buffer[] = [];
      const exchange = (session?: Buffer) =>
        new Promise<boolean>((resolve, reject) => {
          const socket = connect({ ...options, maxVersion, ...(session === undefined ? {} : { session }) });
          socket.on('session', (given) => sessions.push(given));
          socket.on('error', reject);
          socket.on('data', () => socket.end());
          let reused = false;
          socket.on('secureConnect', () => (reused = socket.isSessionReused()));
          socket.on('close', () => resolve(reused));
          socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
        });
      expect(await exchange()).toBe(false);
      for (const session of sessions.splice(0)) expect(await exchange(session)).toBe(false);
      writeFileSync(file('ca.crt'), `${clients.certificatePem}\n`); // nor after the files have changed
      await clock.advance(10_000);
    }
    expect(logged.filter((line) => line.includes('new certificate in use'))).toHaveLength(1);
    expect(await ask({ login: client })).toMatchObject({ status: 200 });
  });
});

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

test('work nobody waits for any more is called off, after 25 s or when the client is gone', async () => {
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
    ['a CA that is none', () => writeFileSync(file('ca.crt'), 'x'), /--webhook-client-ca/],
  ])('with %s there is no server', async (_, spoil, message) => {
    spoil();
    await expect(serve(byCertificate())).rejects.toThrow(message);
  });
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
