import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { probeRelays } from '../../../../../lambdas/watch-relay/observe/probe-client.ts';

const closes: (() => void)[] = [];
afterEach(() => {
  for (const close of closes.splice(0)) close();
});

/** Answers each path with these answers in turn; the last one stays. */
async function serve(host: string, port: number, paths: Record<string, readonly [number, string][]>): Promise<number> {
  const server = createServer((incoming, outgoing) => {
    const answers = paths[incoming.url ?? ''] ?? [[404, 'no such path']];
    const [status, text] = (answers.length > 1 ? (answers as [number, string][]).shift() : answers[0])!;
    outgoing.writeHead(status).end(text);
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  closes.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function probe(port: number, addresses: readonly string[] | Error) {
  const lines: string[] = [];
  let now = 0;
  const ready = await probeRelays({
    target: { host: 'relay-test.pki.svc', port },
    patienceMilliseconds: 5_000,
    lookup: (host) => {
      expect(host).toBe('relay-test.pki.svc');
      return addresses instanceof Error ? Promise.reject(addresses) : Promise.resolve(addresses);
    },
    clock: {
      now: () => now,
      monotonic: () => now,
      after(milliseconds, run) {
        now += milliseconds;
        setImmediate(run);
        return () => undefined;
      },
    },
    print: (line) => lines.push(line),
  });
  return { ready, lines, waited: now };
}

const ok: readonly [number, string][] = [[200, 'ok\n']];

test('every replica that the name leads to must be healthy and ready', async () => {
  const port = await serve('127.0.0.1', 0, { '/healthz': ok, '/readyz': ok });
  await serve('127.0.0.2', port, {
    '/healthz': ok,
    '/readyz': [[503, 'kubernetes.io/kubelet-serving: not listed\nnot authorized: sign endpoint\n']],
  });
  expect(await probe(port, ['127.0.0.1'])).toEqual({
    ready: true,
    lines: [`127.0.0.1:${port}: healthy and ready`],
    waited: 0,
  });
  expect(await probe(port, ['127.0.0.1', '127.0.0.2'])).toEqual({
    ready: false,
    lines: [
      `127.0.0.1:${port}: healthy and ready`,
      `127.0.0.2:${port}: /readyz is 503: kubernetes.io/kubelet-serving: not listed; not authorized: sign endpoint`,
      `not every relay at relay-test.pki.svc:${port} became ready in 5 s`,
    ],
    waited: 5_000,
  });
});

test('a relay that becomes ready in time is ready', async () => {
  const port = await serve('127.0.0.1', 0, { '/healthz': [[500, 'x'], ...ok], '/readyz': [[503, 'listing'], ...ok] });
  expect(await probe(port, ['127.0.0.1'])).toMatchObject({ ready: true, waited: 2_000 });
});

test('where no relay answers, the reason is printed, and nothing that a terminal would obey', async () => {
  const port = await serve('127.0.0.1', 0, { '/healthz': ok, '/readyz': [[503, 'a\u001b[2Jb']] });
  expect((await probe(port, ['127.0.0.1'])).lines[0]).toBe(`127.0.0.1:${port}: /readyz is 503: a\\u{1b}[2Jb`);
  for (const close of closes.splice(0)) close();
  expect((await probe(port, ['127.0.0.1', '::1'])).lines).toEqual([
    expect.stringMatching(/^127\.0\.0\.1:\d+: \/healthz: .*ECONNREFUSED/),
    expect.stringMatching(/^\[::1\]:\d+: \/healthz: /),
    expect.any(String),
  ]);
  expect((await probe(port, new Error('getaddrinfo ENOTFOUND relay-test.pki.svc'))).lines[0]).toBe(
    'relay-test.pki.svc: the name has no address: getaddrinfo ENOTFOUND relay-test.pki.svc',
  );
});
