import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hour, judged, newFolder, recordOf, used, verdictOf } from '../register.ts';
import { now, run } from '../run.ts';

const serving = 'kubernetes.io/kubelet-serving';
const missing = [['AttestationMissing', 'no evidence']] as const;

test('of each node and signer the latest request, those that would be denied first', async () => {
  const folder = await newFolder();
  await judged(
    folder,
    verdictOf('good', missing, { decidedAt: now - 3 * hour }),
    verdictOf('good', [], { decidedAt: now - hour }),
    verdictOf('bad', [], { decidedAt: now - 3 * hour }),
    verdictOf('bad', [...missing, ['NameNotOwned', '10.0.0.9 is not its own']], { decidedAt: now - 2 * hour }),
    verdictOf('half', [], { decidedAt: now - hour }),
    verdictOf('half', missing, { decidedAt: now - hour, signerName: serving }),
    // The refusal was already answered to the requester.
    verdictOf('enforced', missing, { mode: 'enforce' }),
    // More than 25 hours ago.
    verdictOf('late', missing, { decidedAt: now - 26 * hour, expiresAt: now - hour }),
  );
  const ran = await run(['report', '--data', folder.path]);
  expect([ran.code, ran.err]).toEqual([1, '']);
  const client = 'kubernetes.io/kube-apiserver-client-kubelet';
  expect(ran.out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['NODE', 'SIGNER', 'WOULD BE', 'WHY', 'SEEN'],
    [
      'bad',
      client,
      'denied',
      'no evidence [AttestationMissing]; 10.0.0.9 is not its own [NameNotOwned]',
      '2026-06-01T10:00:00Z',
    ],
    ['half', serving, 'denied', 'no evidence [AttestationMissing]', '2026-06-01T11:00:00Z'],
    ['good', client, 'approved', '-', '2026-06-01T11:00:00Z'],
    ['half', client, 'approved', '-', '2026-06-01T11:00:00Z'],
    [''],
    ['3 nodes: 2 would fail, 1 pass'],
    [''],
  ]);
  const json = JSON.parse((await run(['report', '--data', folder.path, '-o', 'json'])).out) as object;
  expect(json).toMatchObject({
    nodes: 3,
    failing: 2,
    passing: 1,
    rows: [{ node: 'bad', reason: 'AttestationMissing' }, {}, {}, {}],
  });
});

test('finding 7: how many nodes still send an older version of evidence, and which', async () => {
  const folder = await newFolder();
  const proved = (node: string, version: string, more: object = {}) =>
    verdictOf(node, [], { annotations: { 'countersign.dev/evidence': version }, mode: 'enforce', ...more });
  await judged(
    folder,
    proved('new-1', 'aws/v2'),
    proved('new-2', 'aws/v2'),
    proved('new-2', 'aws/v2', { signerName: serving }),
    proved('old', 'aws/v1'),
    // More than 25 hours ago.
    proved('gone', 'aws/v1', { decidedAt: now - 26 * hour, expiresAt: now - hour }),
    // A stock kubelet's serving request has no evidence.
    verdictOf('stock', [], { mode: 'enforce' }),
  );
  const ran = await run(['report', '--data', folder.path]);
  expect([ran.code, ran.out]).toEqual([
    0,
    expect.stringMatching(/\naws\/v1 by 1\naws\/v2 by 2\n0 nodes: 0 would fail, 0 pass\n$/),
  ]);
  const json = JSON.parse((await run(['report', '--data', folder.path, '-o', 'json'])).out) as object;
  expect(json).toMatchObject({ evidence: { 'aws/v1': ['old'], 'aws/v2': ['new-1', 'new-2'] } });
});

test('no node would be denied: exit code 0', async () => {
  const folder = await newFolder();
  await judged(folder, verdictOf('good'));
  const ran = await run(['report', '--data', folder.path]);
  expect([ran.code, ran.out]).toEqual([0, expect.stringMatching(/\n1 nodes: 0 would fail, 1 pass\n$/)]);
});

test('nodes of the cluster without a request or a record', async () => {
  const folder = await newFolder();
  await judged(folder, verdictOf('good'));
  await used(folder, recordOf('recorded', 'a'));
  const report = async (...pages: readonly (readonly string[])[]) => {
    const api = await startNodes(pages);
    const kubeconfig = join(folder.path, 'kubeconfig');
    writeFileSync(kubeconfig, api.kubeconfig);
    const ran = await run(['report', '--data', folder.path, '--kubeconfig', kubeconfig]);
    api.close();
    return { ...ran, urls: api.urls };
  };
  const ran = await report(['good', 'silent'], ['recorded']);
  expect(ran.code).toBe(1);
  expect(ran.out).toMatch(
    /\nsilent +- +unknown +it sent no request in 25 h, and no machine is on record under its name: adopt it, or list its TPM +-\n/,
  );
  expect(ran.out).toMatch(/\n2 nodes: 1 would fail, 1 pass\n$/);
  expect(ran.urls).toEqual(['/api/v1/nodes?limit=250', '/api/v1/nodes?continue=page+1&limit=250']);
  expect((await report(['good', 'recorded'])).code).toBe(0);
  // A page that is refused does not make a shorter list.
  for (const forbidden of [await report(), await report(['good'], [])])
    expect([forbidden.code, forbidden.out, forbidden.err]).toEqual([
      3,
      '',
      expect.stringMatching(/HTTP 403: no\n.*list on nodes/),
    ]);
});

/** An API server with these pages of nodes; it refuses a page without nodes. */
async function startNodes(pages: readonly (readonly string[])[]) {
  const urls: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    const index = urls.push(url) - 1;
    const items = (pages[index] ?? []).map((name) => ({ metadata: { name } }));
    const metadata = index + 1 < pages.length ? { continue: `page ${index + 1}` } : {};
    response.statusCode = items.length === 0 ? 403 : 200;
    response.end(JSON.stringify(items.length === 0 ? { kind: 'Status', message: 'no' } : { items, metadata }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const kubeconfig = JSON.stringify({
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
  return { urls, kubeconfig, close: () => void server.close() };
}

test.each([
  ['a kubeconfig that is not there', ['--kubeconfig', '/nonexistent'], 4],
  ['a context without a kubeconfig', ['--context', 'x'], 2],
])('%s', async (_, argv, code) => {
  const folder = await newFolder();
  expect((await run(['report', '--data', folder.path, ...argv])).code).toBe(code);
});
