import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createHealth } from '../../../../../lambdas/watch-relay/observe/health.ts';
import { createRelayMetrics } from '../../../../../lambdas/watch-relay/observe/metrics.ts';
import { serveProbes } from '../../../../../lambdas/watch-relay/observe/probe-server.ts';
import { statusOf, strangeTargets } from '../../../../harness/processes/raw-requests.ts';

const closes: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0)) await close();
});

async function serve(monotonic = () => 0) {
  const health = createHealth(['a', 'b'], monotonic);
  const metrics = createRelayMetrics();
  const relay = { health, metrics, run: () => Promise.resolve() };
  const server = await serveProbes(relay, { host: '127.0.0.1', port: 0 });
  closes.push(() => server.close());
  const get = async (path: string, init?: RequestInit) => {
    const answer = await fetch(`http://127.0.0.1:${server.address.port}${path}`, init);
    return { status: answer.status, text: await answer.text(), type: answer.headers.get('content-type') };
  };
  return { health, metrics, get, port: server.address.port };
}

test('ready when every signer is listed and every call authorized, in any order', async () => {
  const { health, get } = await serve();
  expect(await get('/readyz')).toMatchObject({ status: 503, text: 'starting\n' });
  health.role('working');
  health.synced('b');
  expect(await get('/readyz')).toMatchObject({ status: 503, text: 'not yet listed: a\n' });
  health.synced('a');
  expect(await get('/readyz')).toMatchObject({ status: 200, text: 'ok\n' });
  health.unauthorized('sign endpoint');
  expect(await get('/readyz?verbose')).toMatchObject({ status: 503, text: 'not authorized: sign endpoint\n' });
  health.authorized('list a');
  expect((await get('/readyz')).status).toBe(503);
  health.authorized('sign endpoint');
  expect((await get('/readyz')).status).toBe(200);
  health.role('standby');
  expect((await get('/readyz')).status).toBe(200);
  health.role('working'); // a new term begins with a new list
  expect((await get('/readyz')).status).toBe(503);
  health.role('draining');
  expect((await get('/readyz')).status).toBe(503);
  expect((await get('/healthz')).status).toBe(200);
});

test('what was forbidden for a moment, and is not asked for again, does not keep it from being ready', async () => {
  let now = 0;
  const { health, get } = await serve(() => now);
  health.role('standby');
  health.unauthorized('get certificatesigningrequests');
  now = 60_000;
  health.unauthorized('list a');
  expect((await get('/readyz')).status).toBe(503);
  now = 80_000;
  expect(await get('/readyz')).toMatchObject({ status: 503, text: 'not authorized: list a\n' });
  now = 140_000;
  expect((await get('/readyz')).status).toBe(200);
});

test('metrics in the text format, each with a prefix and a help text', async () => {
  const { metrics, get } = await serve();
  metrics.watchGauges(() => ({
    waiting: { renewal: { ready: 3, delayed: 2 }, other: { ready: 1, delayed: 0 } },
    oldestSeconds: { renewal: 0, other: 0 },
    longestQueue: 2,
    inFlight: 1,
    concurrencyLimit: { sign: 16, attest: 2, approve: 1 },
    heldBytes: 10,
  }));
  metrics.finished('a', 'issued');
  metrics.retried('EndpointBusy');
  const { status, text, type } = await get('/metrics');
  expect({ status, type }).toEqual({ status: 200, type: 'text/plain; version=0.0.4; charset=utf-8' });
  expect(text).toContain('countersign_relay_requests_total{signer="a",outcome="issued"} 1');
  expect(text).toContain('countersign_relay_queue_depth{priority="renewal",state="ready"} 3');
  expect(text).toContain('countersign_relay_retries_total{cause="EndpointBusy"} 1');
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(samples.filter((line) => !line.startsWith('countersign_relay_'))).toEqual([]);
});

test('nothing else', async () => {
  const { get } = await serve();
  expect((await get('/')).status).toBe(404);
  expect((await get('/metrics', { method: 'POST' })).status).toBe(405);
});

test.each(strangeTargets)('%j in the request line ends nothing', async (target) => {
  const { get, port } = await serve();
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'CONNECT']) {
    const status = await statusOf(() => connect(port, '127.0.0.1'), target, { method });
    expect([400, 404, 405, 'closed']).toContain(status);
  }
  expect(await get('/healthz')).toMatchObject({ status: 200, text: 'ok\n' });
});

test('nor does a fault of ours', async () => {
  const relay = {
    health: { ...createHealth([], () => 0), problems: () => [undefined as never].map((x: string) => x.trim()) },
    metrics: { ...createRelayMetrics(), exposition: () => Promise.reject(new Error('none')) },
  };
  const server = await serveProbes(relay, { host: '127.0.0.1', port: 0 });
  closes.push(() => server.close());
  const open = () => connect(server.address.port, '127.0.0.1');
  expect(await statusOf(open, '/readyz')).toBe('closed');
  expect(await statusOf(open, '/metrics')).toBe(500);
  expect(await statusOf(open, '/healthz')).toBe(200);
});

test('finding 24: half-sent requests hold few connections, for seconds, and keep no probe out', async () => {
  const { get, port } = await serve();
  let [opened, closed] = [0, 0];
  for (let number = 0; number < 400; number += 1) {
    const socket = connect(port, '127.0.0.1', () => {
      opened += 1;
      socket.write('GET /healthz HTTP/1.1\r\nx: ');
    });
    socket.on('error', () => {});
    socket.resume().on('close', () => (closed += 1));
    if (number % 100 === 99) expect(await get('/healthz')).toMatchObject({ status: 200 });
  }
  await expect.poll(() => opened).toBe(400);
  // Of one address no more than 16 are open, the probe's own among them.
  await expect.poll(() => opened - closed).toBeLessThanOrEqual(16);
  await expect.poll(() => opened - closed, { timeout: 20_000 }).toBe(0);
  expect(await get('/healthz')).toMatchObject({ status: 200 });
}, 30_000);

test('a port that is taken is an error', async () => {
  const { get } = await serve();
  await get('/healthz');
  const relay = { health: createHealth([], () => 0), metrics: createRelayMetrics(), run: () => Promise.resolve() };
  const server = await serveProbes(relay, { host: '127.0.0.1', port: 0 });
  closes.push(() => server.close());
  await expect(serveProbes(relay, { host: '127.0.0.1', port: server.address.port })).rejects.toThrow('EADDRINUSE');
});
