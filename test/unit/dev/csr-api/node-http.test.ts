import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { request } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import type { HttpEvent, HttpHandler } from '../../../../adapters/lambda/http.ts';
import { serveHttp } from '../../../../dev/csr-api/node-http.ts';
import type { HttpService } from '../../../../dev/csr-api/node-http.ts';
import { statusOf, strangeTargets } from '../../../harness/processes/raw-requests.ts';

const services: HttpService[] = [];
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
});

const events: HttpEvent[] = [];
const errors: unknown[] = [];
const echo: HttpHandler = async (event) => {
  events.push(event);
  return { statusCode: 200, headers: { 'x-path': event.rawPath }, body: event.body ?? '' };
};

async function start(handler: HttpHandler = echo, maxBodyBytes = 1_000): Promise<HttpService> {
  events.length = 0;
  errors.length = 0;
  const service = await serveHttp(handler, {
    port: 0,
    maxBodyBytes,
    tooLarge: { statusCode: 413, headers: {}, body: 'too large' },
    onError: (error) => errors.push(error),
  });
  services.push(service);
  return service;
}

describe('a request becomes an event of payload 2.0', () => {
  test('with its path, query, method, headers and exact bytes', async () => {
    const { url } = await start();
    const answer = await fetch(`${url}/v1/a%2fb?timeout=30s&x=1`, {
      method: 'POST',
      headers: { 'X-Test': 'one' },
      body: new Uint8Array([0, 255, 128]),
    });
    expect(answer.headers.get('x-path')).toBe('/v1/a%2fb');
    expect(events[0]).toMatchObject({
      version: '2.0',
      rawPath: '/v1/a%2fb',
      rawQueryString: 'timeout=30s&x=1',
      requestContext: { http: { method: 'POST', path: '/v1/a%2fb' } },
      isBase64Encoded: true,
    });
    expect(events[0]?.headers['x-test']).toBe('one');
    expect(Buffer.from(await answer.text(), 'base64')).toEqual(Buffer.from([0, 255, 128]));
  });
});

describe('limits before anything is buffered', () => {
  test('a body with a declared length over the limit is answered at once, before it is sent', async () => {
    const { port } = await start();
    const status = await new Promise((resolve, reject) => {
      const outgoing = request({
        port,
        host: '127.0.0.1',
        method: 'POST',
        headers: { 'content-length': 5_000_000_000 },
      });
      outgoing.on('response', (incoming) => {
        resolve(incoming.statusCode);
        outgoing.destroy();
      });
      outgoing.on('error', reject);
      outgoing.flushHeaders();
    });
    expect(status).toBe(413);
    expect(events).toEqual([]);
  });

  test('a body without a length is cut off, and the client still reads why', async () => {
    const { url } = await start();
    const chunk = new Uint8Array(64 * 1024);
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (sent++ === 32) controller.close();
        else controller.enqueue(chunk);
      },
    });
    const answer = await fetch(url, { method: 'POST', body, duplex: 'half' });
    expect([answer.status, await answer.text()]).toEqual([413, 'too large']);
    expect(events).toEqual([]);
  });

  test('exactly the limit passes, one byte more does not', async () => {
    const { url } = await start();
    expect((await fetch(url, { method: 'POST', body: 'x'.repeat(1_000) })).status).toBe(200);
    expect((await fetch(url, { method: 'POST', body: 'x'.repeat(1_001) })).status).toBe(413);
    expect(events).toHaveLength(1);
  });

  test('a client that goes away in the middle is no event and no error', async () => {
    const { port, url } = await start();
    const socket: Socket = connect(port, '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf');
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    expect((await fetch(url)).status).toBe(200);
    expect(events).toHaveLength(1);
    expect(errors).toEqual([]);
  });
});

describe('callers who do not mean this server', () => {
  test.each(['evil.example', 'evil.example:80', '127.0.0.1.evil.example', '10.0.0.1', 'localhost@evil.example'])(
    'Host %j is refused',
    async (host) => {
      const { port } = await start();
      const status = await statusFor(port, host);
      expect(status).toBe(421);
      expect(events).toEqual([]);
    },
  );
  test.each(['127.0.0.1', 'localhost:80', 'LOCALHOST', '[::1]:9'])('Host %j is answered', async (host) => {
    const { port } = await start();
    expect(await statusFor(port, host)).toBe(200);
  });

  function statusFor(port: number, host: string): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const outgoing = request({ port, host: '127.0.0.1', headers: { host } }, (incoming) => {
        incoming.resume();
        resolve(incoming.statusCode);
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  }
});

test('a handler that throws is a 500 for the caller and an error for the operator', async () => {
  const { url } = await start(async () => {
    throw new Error('a secret in a message');
  });
  const answer = await fetch(url);
  expect(answer.status).toBe(500);
  expect(await answer.text()).toBe('{"message":"Internal Server Error"}');
  expect(errors).toHaveLength(1);
});

test('no request line ends it, and each reaches the handler as it is, if at all', async () => {
  const { port, url } = await start();
  for (const target of strangeTargets)
    expect([200, 400, 'closed']).toContain(await statusOf(() => connect(port, '127.0.0.1'), target));
  expect((await fetch(url)).status).toBe(200);
  expect(errors).toEqual([]);
});

test('closing lets an answer under way out', async () => {
  let finish: () => void = () => {};
  const waiting = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let entered: () => void = () => {};
  const inside = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const service = await start(async () => {
    entered();
    await waiting;
    return { statusCode: 200, headers: {}, body: 'done' };
  });
  const answer = fetch(service.url);
  await inside;
  const closed = service.close();
  finish();
  expect(await (await answer).text()).toBe('done');
  await closed;
  await expect(fetch(service.url)).rejects.toThrow();
});

test('only loopback listens', async () => {
  const { url } = await start();
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
});
