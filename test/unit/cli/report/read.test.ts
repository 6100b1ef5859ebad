/** The command over real stores: what each output has, what a missing part does, and the exit codes. */
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { openEmbeddedAttestations } from '../../../../adapters/embedded/attestations.ts';
import { attestationsFileIn, ledgerFileIn } from '../../../../adapters/embedded/data.ts';
import { CommandFailure, exitCodes } from '../../../../cli/runtime/exit.ts';
import type { Report } from '../../../../cli/report/model/shape.ts';
import { processIo } from '../../../../cli/world.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { ledgerFolder } from '../inventory/ledger.ts';
import { hour, judged, recordOf, used, verdictOf } from '../register.ts';
import { now, run } from '../run.ts';

/** A folder of the dev server: one node with a certificate, a record and a lock. */
async function devFolder(): Promise<string> {
  const ledger = await ledgerFolder();
  const { folder } = ledger;
  const attestations = openEmbeddedAttestations(attestationsFileIn(folder));
  onTestFinished(() => attestations.close());
  await ledger.issued(now - 2 * hour);
  await ledger.issued(now - 2 * hour, {
    request: { subject: { CN: 'shop.example.com' } },
    spec: { signerName: 'kubernetes.io/kube-apiserver-client', username: 'alice', groups: ['system:authenticated'] },
  });
  await used(attestations, recordOf('n1', 'a'));
  return folder;
}

const jsonOf = ({ out }: { readonly out: string }): Report => JSON.parse(out) as Report;

test('a page, JSON and YAML about a folder of the dev server', async () => {
  const folder = await devFolder();
  const page = await run(['report', '--data', folder, '-o', 'html']);
  expect([page.code, page.err]).toEqual([0, '']);
  expect(page.out).toMatch(/^\s*<!doctype html>/);
  expect(page.out).toContain('<th scope="row">n1</th>');
  const json = await run(['report', '--data', folder, '-o', 'json']);
  const report = jsonOf(json);
  expect(json.code).toBe(0);
  expect(report).toMatchObject({
    formatVersion: 1,
    at: '2026-06-01T12:00:00Z',
    fleet: [
      { node: 'n1', standing: 'valid', machine: recordOf('n1', 'a').identity, certificates: [{ state: 'valid' }] },
    ],
    otherCertificates: [{ holder: 'shop.example.com' }],
    cas: [{ name: 'ca', holders: 2 }],
    failing: 0,
  });
  expect(report.cas[0]?.signerNames).toEqual([
    'kubernetes.io/kube-apiserver-client',
    'kubernetes.io/kube-apiserver-client-kubelet',
  ]);
  expect(parse((await run(['report', '--data', folder, '-o', 'yaml'])).out)).toEqual(report);
});

test('a node that enforcing would refuse: exit code 1, for each output', async () => {
  const folder = await devFolder();
  const opened = openEmbeddedAttestations(attestationsFileIn(folder));
  onTestFinished(() => opened.close());
  await judged(opened, verdictOf('bad', [['AttestationMissing', 'no evidence']]));
  for (const output of ['table', 'html', 'json', 'yaml'])
    expect((await run(['report', '--data', folder, '-o', output])).code, output).toBe(1);
});

test('a ledger that is missing takes nothing else away: exit code 5, and the page says why', async () => {
  const folder = await devFolder();
  rmSync(ledgerFileIn(folder));
  const ran = await run(['report', '--data', folder, '-o', 'html']);
  expect([ran.code, ran.err]).toEqual([5, '']);
  expect(ran.out).toContain('Not read: certificates of the ledger');
  expect(ran.out).toContain('ledger.sqlite');
  expect(ran.out).toContain('<th scope="row">n1</th>');
});

test('a folder without any of it is a wrong folder: an error, and no empty page', async () => {
  const folder = await devFolder();
  const ran = await run(['report', '--data', join(folder, 'none'), '-o', 'html']);
  expect([ran.code, ran.out]).toEqual([4, '']);
  expect(ran.err).toMatch(/there is no .*attestations\.sqlite/);
  expect((await run(['report', '-o', 'html'])).code).toBe(2);
});

test('the cluster is read where its login may: requests and nodes here, and what is refused is named', async () => {
  const folder = await devFolder();
  const { pem } = makeRequest({ subject: { O: 'system:nodes', CN: 'system:node:n9' } });
  const request = {
    metadata: { name: 'csr-9', uid: 'u9', creationTimestamp: '2026-06-01T11:00:00Z' },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['client auth'],
      username: 'system:bootstrap:abcdef',
      groups: [],
    },
  };
  const kubeconfig = await startApi(folder, {
    '/apis/certificates.k8s.io/v1/certificatesigningrequests': { items: [request], metadata: {} },
    '/api/v1/nodes': { items: [{ metadata: { name: 'n1' } }, { metadata: { name: 'n2' } }], metadata: {} },
  });
  const ran = await run(['report', '--data', folder, '--kubeconfig', kubeconfig, '-o', 'json']);
  const { parts, requests, fleet, trust, attention } = jsonOf(ran);
  // n2 has no record of a machine.
  expect(ran.code).toBe(1);
  expect(ran.err).toMatch(/^countersign: server http:.*, context x, user u\n$/);
  expect(requests).toMatchObject([{ name: 'csr-9', state: 'pending', requester: 'system:bootstrap:abcdef' }]);
  expect(fleet.map(({ node, inCluster, standing }) => [node, inCluster, standing])).toEqual([
    ['n2', true, 'none'],
    ['n1', true, 'valid'],
  ]);
  expect(attention.map(({ code }) => code)).toEqual(['RequestWaits', 'NodeWithoutCertificate', 'EnforcingWouldRefuse']);
  // One right is missing: each object that it hides says so.
  expect(parts.map(({ name, state }) => `${name} ${state}`)).toEqual([
    'records read',
    'certificates read',
    'cas read',
    'requests read',
    'nodes read',
    'trust read',
  ]);
  expect(trust.find(({ place }) => place.includes('extension-apiserver-authentication'))?.unread).toMatch(/403/);
});

test('an API server that does not answer: its three parts failed, and the records are shown', async () => {
  const folder = await devFolder();
  const kubeconfig = join(folder, 'dead');
  writeFileSync(kubeconfig, kubeconfigOf(1));
  const ran = await run(['report', '--data', folder, '--kubeconfig', kubeconfig, '-o', 'json']);
  expect(ran.code).toBe(5);
  expect(
    jsonOf(ran)
      .parts.filter(({ state }) => state === 'failed')
      .map(({ name }) => name),
  ).toEqual(['requests', 'nodes', 'trust']);
});

test('a deployed cluster: the ca function names the CAs; without the right to call it they are not read', async () => {
  const folder = await devFolder();
  const real = processIo();
  const calls: unknown[] = [];
  const world = {
    openRegister: () => real.openRegister({ kind: 'embedded', folder }),
    openTrace: () => real.openTrace({ kind: 'embedded', folder }),
    callFunction: async (call: unknown) => {
      calls.push(call);
      throw new CommandFailure(exitCodes.configuration, 'AccessDenied', 'it needs lambda:InvokeFunction');
    },
  };
  const ran = await run(['report', '--cluster', 'prod', '--region', 'eu-central-1', '-o', 'json'], { world });
  expect(calls).toEqual([
    { functionName: 'countersign-prod-ca', region: 'eu-central-1', request: { action: 'rotation', ca: 'ca' } },
  ]);
  expect(ran.code).toBe(5);
  const report = jsonOf(ran);
  expect(report).toMatchObject({ cluster: 'prod', cas: [], fleet: [{ node: 'n1', standing: 'valid' }] });
  expect(report.attention).toMatchObject([
    { code: 'NotRead', text: 'Not read: CAs and profiles', advice: 'AccessDenied; it needs lambda:InvokeFunction' },
  ]);
});

/** An API server with these answers. It has no other objects, and forbids ConfigMaps. */
async function startApi(folder: string, answers: Readonly<Record<string, object>>): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    const [path = ''] = url.split('?');
    const answer = answers[path];
    response.statusCode = answer === undefined ? (path.includes('/configmaps/') ? 403 : 404) : 200;
    response.end(JSON.stringify(answer ?? { kind: 'Status', message: 'no' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const file = join(folder, 'kubeconfig');
  writeFileSync(file, kubeconfigOf((server.address() as AddressInfo).port));
  return file;
}

function kubeconfigOf(port: number): string {
  return JSON.stringify({
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}
