/** `countersign ca rotate` with the ca function's own handler, a ledger and an API server with objects. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import { ledgerFileIn } from '../../../../adapters/embedded/data.ts';
import { openEmbeddedRevocations } from '../../../../adapters/embedded/revocations.ts';
import type { ShownRotation } from '../../../../cli/rotation/report.ts';
import type { Io } from '../../../../cli/runtime/io.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import type { IssuingRecord } from '../../../../core/ports/certificate-ledger.ts';
import type { ExpiryRange } from '../../../../core/ports/certificate-reads.ts';
import { KeyStateError } from '../../../../core/ports/errors.ts';
import { createSite } from '../../lambdas/ca/site.ts';
import type { CaSite } from '../../lambdas/ca/site.ts';
import { ledgerFolder } from '../inventory/ledger.ts';
import { now, run } from '../run.ts';
import type { Ran } from '../run.ts';
import { paths, startFakeApi } from './api.ts';

const serving = 'kubernetes.io/kubelet-serving';
const two = '{a: {subject: {commonName: A}}, b: {replaces: a, subject: {commonName: B}}}';

interface Place {
  readonly site: CaSite;
  readonly folder?: string;
  /** Instead of the signers of the records. */
  readonly signedFor?: string;
}

/** The command against a deployed cluster. Its stores are those of the folder. */
async function rotate({ site, folder, signedFor }: Place, ...flags: readonly string[]): Promise<Ran> {
  const openRevocations: Io['openRevocations'] = async () => {
    const { reads, close } = openEmbeddedLedger(folder === undefined ? ':memory:' : ledgerFileIn(folder));
    const { revocations } = openEmbeddedRevocations(':memory:');
    async function* listByExpiry(range: ExpiryRange): AsyncGenerator<IssuingRecord> {
      for await (const record of reads.listByExpiry(range))
        yield signedFor === undefined ? record : { ...record, request: { signerName: signedFor } };
    }
    return {
      reads: { ...reads, listByExpiry },
      revocations,
      register: undefined as never,
      caKeys: undefined as never,
      issueCrls: async () => [],
      close,
    };
  };
  const world = { callFunction: async ({ request }: { request: object }) => site.handler(request), openRevocations };
  return run(['ca', 'rotate', '--cluster', 'prod', '--name', 'a', ...flags], { world });
}

async function shown(place: Place, ...flags: readonly string[]): Promise<ShownRotation> {
  const { out, err } = await rotate(place, '-o', 'json', ...flags);
  if (out === '') throw new Error(err);
  return JSON.parse(out) as ShownRotation;
}

const offline = '--skip-kubernetes';
const pemOf = ({ records }: CaSite, ...names: string[]) =>
  names.map((name) => toPem('CERTIFICATE', records.get(name)!.certificate)).join('');

test('without a successor it prints the block for countersign.yaml, which the configuration accepts', async () => {
  const a = 'a: {subject: {commonName: A, organization: Example}, keySpec: RSA-3072, validity: 400d, pathLen: 1}';
  const site = await createSite(`{${a}}`, 'a');
  await site.handler({ action: 'init' });
  const { phase, next } = await shown({ site }, offline);
  expect(phase).toBe('noSuccessor');
  const { cas } = parse(next[1]!) as { cas: object };
  const after = await createSite(`{${a}, ${JSON.stringify(cas).slice(1, -1)}}`, 'a');
  const { name: _, replaces, ...successor } = after.cluster.cas.get('a-2')!;
  const { name: __, ...old } = site.cluster.cas.get('a')!;
  expect(replaces).toBe('a');
  expect(successor).toEqual({ ...old, subject: { commonName: 'A 2', organization: 'Example' } });
});

test.each([
  [
    '{a: {kind: imported, keyMaterial: imported, keySpec: RSA-2048, subject: {commonName: kubernetes}}}',
    'kubernetes 2',
    /^(?!.*kind:)/s,
  ],
  ['{a: {kind: imported, subject: {commonName: A 9}}}', 'A 10', /kind: imported/],
  [
    '{r: {subject: {commonName: R}, pathLen: 1}, a: {kind: issued, issuedBy: r, subject: {commonName: A}}}',
    'A 2',
    /kind: issued\n +issuedBy: r/,
  ],
])('the successor of %s', async (cas, commonName, expected) => {
  const { next } = await shown({ site: await createSite(cas, 'a') }, offline);
  expect(next[1]).toContain(`commonName: ${commonName}`);
  expect(next[1]).toMatch(expected);
});

test('reads what the cluster trusts, shows what it cannot see, and changes nothing', async () => {
  const site = await createSite(two, 'a');
  await site.handler({ action: 'init' });
  const api = await startFakeApi();
  const map = (data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', data });
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const kubeconfig = (pem: string) =>
    JSON.stringify({
      clusters: [{ name: '', cluster: { server: 'https://x', 'certificate-authority-data': base64(pem) } }],
    });
  const pod = (
    component: string,
    nodeName: string,
    mirror = true,
    flag = '--kubelet-certificate-authority=/pki/ca.crt',
  ) => ({
    metadata: { labels: { component }, annotations: mirror ? { 'kubernetes.io/config.mirror': 'x' } : {} },
    spec: { nodeName, containers: [{ name: 'c', command: [component, flag] }] },
  });
  const list = (...items: object[]) => ({ items, metadata: {} });
  api.objects.set(
    paths.authentication,
    map({ 'client-ca-file': pemOf(site, 'a'), 'requestheader-client-ca-file': '' }),
  );
  api.objects.set(paths.root, map({ 'ca.crt': pemOf(site, 'a', 'b') }));
  api.objects.set(paths.info, map({ kubeconfig: kubeconfig(pemOf(site, 'a')) }));
  api.objects.set(
    paths.pods,
    list(pod('kube-apiserver', 'cp-2'), pod('kube-apiserver', 'cp-1'), pod('kube-apiserver', 'cp-3', false)),
  );
  api.objects.set(
    paths.bundles,
    list({ metadata: { name: 'x' }, spec: { signerName: serving, trustBundle: pemOf(site, 'a', 'b') } }),
  );
  const args = [`--trust-config-map=${serving}=web/serving-ca`, '--trust-config-map=k8s.example.com/x=web/other'];
  api.objects.set(paths.deployments, list({ spec: { template: { spec: { containers: [{ name: 'c', args }] } } } }));
  api.objects.set(paths.kept, map({ 'ca.crt': pemOf(site, 'a') }));
  const webhook = { clientConfig: { caBundle: base64(pemOf(site, 'a')) } };
  api.objects.set(paths.validating, list({ metadata: { name: 'hook' }, webhooks: [{ clientConfig: {} }, webhook] }));
  api.objects.set(paths.mutating, list({ metadata: { name: 'other' }, webhooks: [{ clientConfig: {} }] }));
  api.objects.set(paths.services, list({ metadata: { name: 'v1.x' }, spec: { caBundle: base64(pemOf(site, 'b')) } }));
  api.objects.set(paths.definitions, list({ metadata: { name: 'crd' }, spec: { conversion: { webhook } } }));
  const flags = ['--kubeconfig', api.kubeconfig];
  const { phase, consumers, findings } = await shown({ site }, ...flags);
  expect(phase).toBe('trust');
  expect(findings).toEqual([]);
  expect(Object.fromEntries(consumers.map(({ place, state }) => [place, state]))).toEqual({
    'ConfigMap kube-system/extension-apiserver-authentication, client-ca-file': 'oldOnly',
    'ConfigMap kube-system/kube-root-ca.crt': 'both',
    'ConfigMap kube-public/cluster-info': 'oldOnly',
    'ClusterTrustBundle x': 'both',
    'ConfigMap web/serving-ca': 'oldOnly',
    'ValidatingWebhookConfiguration hook': 'oldOnly',
    'APIService v1.x': 'newOnly',
    'CustomResourceDefinition crd': 'oldOnly',
    'file /pki/ca.crt on cp-1, cp-2': 'hidden',
    'file on each node (kubeadm: /etc/kubernetes/pki/ca.crt)': 'hidden',
    'files of the control plane, of kubelets and of users': 'hidden',
  });
  const text = await rotate({ site }, ...flags);
  expect(text).toMatchObject({ code: 0, out: expect.stringContaining('trusts the old CA only') as string });
  expect(text.out).toContain('/pki/ca.crt on cp-1, cp-2');
  expect(text.err).toContain(`server ${api.kubeconfig === '' ? '' : 'http://127.0.0.1'}`);
  const writes = api.asked.filter((call) => !call.startsWith('GET '));
  expect(new Set(writes)).toEqual(new Set(['POST /apis/authentication.k8s.io/v1/selfsubjectreviews']));

  // Without the rights for some of it: the rest is shown, and the exit code says so.
  api.forbidden.push(/webhookconfigurations$/);
  const limited = await rotate({ site }, ...flags);
  expect(limited).toMatchObject({ code: 5, out: expect.stringContaining('NOT READ') as string });
});

test('signing before trust: exit code 1 and the reason', async () => {
  const site = await createSite(two, 'b');
  await site.handler({ action: 'init' });
  const api = await startFakeApi();
  const bundle = { metadata: { name: 'x' }, spec: { signerName: serving, trustBundle: pemOf(site, 'a') } };
  api.objects.set(paths.bundles, { items: [bundle], metadata: {} });
  const ran = await rotate({ site }, '--kubeconfig', api.kubeconfig);
  expect(ran.code).toBe(1);
  expect(ran.out).toContain('WRONG: SwitchedBeforeTrusted: ClusterTrustBundle does not trust b');
  // Kubernetes keeps this ConfigMap. That it is not there is not taken for trust.
  api.objects.delete(paths.bundles);
  expect((await shown({ site }, '--kubeconfig', api.kubeconfig)).phase).toBe('retire');
});

test('certificates of the old CA, by signer and holder', async () => {
  const site = await createSite(two, 'b');
  await site.handler({ action: 'init' });
  const { keyId } = site.records.get('a')!;
  const ledger = await ledgerFolder(keyId);
  const record = await ledger.issued(now - 86_400_000, {
    request: { subject: { O: 'system:nodes', CN: 'system:node:n1' } },
  });
  const place = { site, folder: ledger.folder };
  const { phase, certificates } = await shown(place, offline);
  expect(phase).toBe('drain');
  expect(certificates).toMatchObject({
    count: 1,
    last: new Date(record.notAfter).toISOString().replace('.000Z', 'Z'),
    signers: [{ signerName: 'kubernetes.io/kube-apiserver-client-kubelet', count: 1 }],
    holders: [{ holder: 'n1', node: true, renewed: false, serial: record.serial }],
  });
  const table = await rotate(place, offline);
  expect(table).toMatchObject({
    code: 0,
    out: expect.stringMatching(/n1 +kubernetes\.io\/kube-apiserver-client-kubelet/) as string,
  });
  expect(table.out).not.toContain('kubeadm renew');
  expect((await rotate({ ...place, signedFor: 'countersign.dev/kubeadm' }, offline)).out).toContain(
    'countersign kubeadm renew',
  );
  // Twice the same: nothing is stored.
  expect(await rotate(place, offline)).toEqual(table);
  // What ends later than asked for is not read, and the report says until when it looked.
  expect((await shown(place, offline, '--days', '1')).certificates).toMatchObject({
    count: 0,
    until: '2026-06-02T12:00:00Z',
  });
});

test('a CA that is configured no more is found by its record; one that never was is not', async () => {
  const before = await createSite(two, 'b');
  await before.handler({ action: 'init' });
  const after = await createSite('{b: {subject: {commonName: B}}}', 'b');
  for (const [name, record] of before.records) after.records.set(name, record);
  after.keys.set('b', before.keys.get('b')!);
  const { old, phase } = await shown({ site: after }, offline);
  expect([phase, old]).toMatchObject(['retire', { name: 'a', configured: false, inForce: true }]);

  // Done, as far as the cluster shows it; the rest is for the operator.
  const api = await startFakeApi();
  const last = await shown({ site: after }, '--kubeconfig', api.kubeconfig);
  expect(last.phase).toBe('done');
  expect(last.next).toEqual([
    'Check by hand, since no object of the cluster shows it:',
    expect.stringMatching(/^- kube-apiserver --kubelet-certificate-authority/),
    expect.stringMatching(/^Deploy countersign-prod-state .* This is final/),
    expect.stringMatching(/aws kms schedule-key-deletion .*--key-id embedded:/),
  ]);
  after.records.delete('a');
  expect(await rotate({ site: after }, offline)).toMatchObject({
    code: 4,
    err: expect.stringContaining('has no CA a') as string,
  });
});

test('a new CA whose key is disabled is not in force, and the reason is shown', async () => {
  const site = await createSite(two, 'b');
  await site.handler({ action: 'init' });
  const key = site.keys.get('b')!;
  site.keys.set('b', { ...key, publicKey: () => Promise.reject(new KeyStateError('the key is disabled')) });
  const ran = await rotate({ site }, offline, '-o', 'json');
  expect(ran.code).toBe(1);
  expect(JSON.parse(ran.out)).toMatchObject({
    phase: 'notInForce',
    new: { fault: 'the key is disabled' },
    findings: [{ code: 'SwitchedBeforeInForce' }],
  });
});

test('flags', async () => {
  const site = await createSite(two, 'a');
  expect((await rotate({ site }, '--days', '0')).code).toBe(2);
  expect((await rotate({ site }, offline, '--kubeconfig', 'x')).code).toBe(2);
  expect(await run(['ca', 'rotate', '--name', 'a'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('which CA?') as string,
  });
  expect((await run(['ca', 'rotate', '--data', join('/', 'nowhere')])).err).toContain('--data needs --config');
});
