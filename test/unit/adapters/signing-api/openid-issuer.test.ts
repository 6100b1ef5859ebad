import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { connectIssuer } from '../../../../adapters/signing-api/openid-issuer.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';
import type { KeyAndCertificate, TestAuthority } from '../../../harness/x509/test-certificates.ts';

let authority: TestAuthority;
let serving: KeyAndCertificate;
beforeAll(async () => {
  authority = await createTestAuthority('issuer');
  serving = await authority.issue({ subject: [{ CN: ['i'] }], extensions: loopbackServerExtensions() });
});
const closes: (() => void)[] = [];
afterEach(() => {
  for (const close of closes.splice(0)) close();
});

const keys = { keys: [{ kty: 'RSA', kid: 'a' }] };
type Page = (response: ServerResponse, origin: string) => void;

function json(value: (origin: string) => unknown, status = 200): Page {
  return (response, origin) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value(origin)));
}
const discovery = '/id/7/.well-known/openid-configuration';
const good: Record<string, Page> = {
  [discovery]: json((origin) => ({ issuer: `${origin}/id/7`, jwks_uri: `${origin}/keys` })),
  '/keys': json(() => keys),
};

async function serve(pages: Record<string, Page>, timeoutMilliseconds = 10_000) {
  const asked: string[] = [];
  const server = createServer({ key: serving.keyPem, cert: serving.certificatePem });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? '';
    asked.push(path);
    const page = pages[path];
    if (page === undefined) response.writeHead(404).end();
    else page(response, origin);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  closes.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const fetchKeys = connectIssuer({ caPem: authority.certificatePem, timeoutMilliseconds });
  return { asked, origin, fetchKeys };
}

test('finds the keys where the discovery document says, over and over', async () => {
  const { asked, origin, fetchKeys } = await serve(good);
  expect(await fetchKeys(`${origin}/id/7`)).toEqual(keys);
  expect(await fetchKeys(`${origin}/id/7`)).toEqual(keys);
  expect(asked).toEqual([discovery, '/keys', discovery, '/keys']);
});

test('an issuer that ends in a slash is looked up without it and compared with it', async () => {
  const slash = { ...good, [discovery]: json((origin) => ({ issuer: `${origin}/id/7/`, jwks_uri: `${origin}/keys` })) };
  const { origin, fetchKeys } = await serve(slash);
  expect(await fetchKeys(`${origin}/id/7/`)).toEqual(keys);
  await expect(fetchKeys(`${origin}/id/7`)).rejects.toThrow('another issuer');
});

test.each<[string, Record<string, Page>, RegExp]>([
  [
    'a document of another issuer',
    { [discovery]: json((o) => ({ issuer: `${o}/id/8`, jwks_uri: `${o}/keys` })) },
    /another/,
  ],
  ['a document without issuer', { [discovery]: json((o) => ({ jwks_uri: `${o}/keys` })) }, /another/],
  ['a document without keys', { [discovery]: json((o) => ({ issuer: `${o}/id/7` })) }, /names no key set/],
  ['null', { [discovery]: json(() => null) }, /another/],
  [
    'keys without TLS',
    { [discovery]: json((o) => ({ issuer: `${o}/id/7`, jwks_uri: 'http://127.0.0.1:1/keys' })) },
    /https/,
  ],
  ['keys in a file', { [discovery]: json((o) => ({ issuer: `${o}/id/7`, jwks_uri: 'file:///etc/passwd' })) }, /https/],
  ['keys nowhere', { [discovery]: json((o) => ({ issuer: `${o}/id/7`, jwks_uri: '/keys' })) }, /https/],
  ['no document', { [discovery]: json(() => ({}), 404) }, /HTTP 404/],
  ['a redirect', { [discovery]: (r) => void r.writeHead(302, { location: '/elsewhere' }).end() }, /HTTP 302/],
  ['no JSON', { '/keys': (r) => void r.end('<html>secret') }, /not JSON$/],
  ['a server error', { '/keys': json(() => ({}), 503) }, /HTTP 503/],
  ['too much', { '/keys': (r) => void r.end(`"${'x'.repeat(65_536)}"`) }, /too large/],
  [
    'half an answer',
    { '/keys': (r) => void r.writeHead(200, { 'content-length': 9 }).write('{', () => r.destroy()) },
    /aborted$/,
  ],
  ['no answer', { '/keys': () => {} }, /no answer in 0.5 s/],
  ['an answer without end', { '/keys': (r) => void r.writeHead(200).write('{') }, /no answer in 0.5 s/],
])('%s is no key set', async (_, pages, message) => {
  const { origin, fetchKeys } = await serve(
    { ...good, ...pages },
    message.test('no answer in 0.5 s') ? 500 : undefined,
  );
  await expect(fetchKeys(`${origin}/id/7`)).rejects.toThrow(message);
});

test('only over TLS, with a certificate for the host of the issuer', async () => {
  const { asked, origin, fetchKeys } = await serve(good);
  await expect(connectIssuer()(`${origin}/id/7`)).rejects.toThrow(/certificate/);
  await expect(fetchKeys(`${origin.replace('https', 'http')}/id/7`)).rejects.toThrow('https');
  expect(asked).toEqual([]);
});
