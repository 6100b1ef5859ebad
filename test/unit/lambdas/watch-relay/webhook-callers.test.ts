import { renameSync, writeFileSync } from 'node:fs';
import { connect } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';
import {
  authority,
  bearer,
  byCertificate,
  byToken,
  client,
  clientOf,
  clients,
  file,
  path,
  serve,
  token,
  useWebhookFiles,
} from './webhook-front.ts';

useWebhookFiles();

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
  ])('that shows %s gets 401, and nothing is forwarded', async (_, headers) => {
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

  test.each(['', 'short'])('is refused while the file holds %j', async (content) => {
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
