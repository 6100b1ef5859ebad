import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storeCopies } from '../../../../bench/requests/stored-requests.ts';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import {
  clientSigner,
  postNodeRequest,
  startApprovalStack,
  stateOf,
  type ApprovalStack,
} from '../../../harness/stack/approval.ts';
import { makeRequest, newKey } from '../../../harness/x509/requests.ts';
import { startRelay, type Relay } from '../../../harness/stack/stack.ts';
import { conditionOf, csrPath, eventually, readRequest, type CsrObject } from '../../../harness/stack/requests.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

const configuration = `version: 1
clusters:
  demo:
    cas: { ca: { subject: { commonName: padded demo CA } } }
    profiles:
      kubernetes.io/kube-apiserver-client: {}
      ${clientSigner}: { maxTtl: 30d }
      kubernetes.io/kubelet-serving: { maxTtl: 30d, attestation: { providers: [aws] } }
    approval: { ${clientSigner}: approve }
    attestation:
      audience: demo
      aws: { accounts: { '111122223333': {} }, regions: [eu-central-1], tags: { a: b }, nodeName: [instanceId] }
`;

/**
 * Each is more than a megabyte in etcd, and the relay lists and watches all of them. A dozen is more than one requester may
 * have in hand; how the cost grows with their number is the deep tier's.
 */
const padded = byTier({ default: 12, deep: 240 });
const honest = byTier({ default: 5, deep: 30 });
/** The relay tries one such request a second. */
const tried = byTier({ default: 3, deep: 5 });
/** With its default flags the relay only signs. Then the write that does not fit is the one after signing. */
const modes = byTier<readonly ('approve' | 'default flags')[]>({
  default: ['approve'],
  deep: ['approve', 'default flags'],
});
/** One GET and one PUT. Whether the PUT fits into etcd, the relay learns from its answer. */
const callsForOne = 2;
const steps = ['sign', 'attest', 'approve'] as const;

/**
 * One holder of a bootstrap token pads requests so that no condition of ours fits into etcd beside them. Nothing here
 * waits for a time: what is counted is what the relay does, and the times are printed.
 */
describe.skipIf(skip).each(modes)('padded requests, %s', (mode) => {
  let stack: ApprovalStack;
  let relay: Relay;
  let stranger: ApiClient;
  let joining: ApiClient;

  beforeAll(async () => {
    stack = await startApprovalStack(configuration);
    await stack.bind('system:certificates.k8s.io:certificatesigningrequests:nodeclient', 'system:bootstrappers');
    relay =
      mode === 'approve'
        ? await stack.relay()
        : await startRelay({ kubeconfig: stack.identity.kubeconfig(), endpoint: stack.endpoint });
    stranger = await stack.bootstrap('abcdef');
    joining = await stack.bootstrap('ghijkl');
  });
  afterAll(async () => {
    if (mode !== 'approve') await relay?.stop();
    await stack?.stop();
  });

  async function approveByHand(name: string): Promise<number> {
    if (mode === 'approve') return 200;
    const object = await readRequest(stack.plane, name);
    const conditions = [{ type: 'Approved', status: 'True', reason: 'T', message: '' }];
    const body = { ...object, status: { ...object.status, conditions } };
    const answer = await stack.plane.admin.request(`${csrPath}/${name}/approval`, { method: 'PUT', body });
    return answer.status;
  }

  /** Nodes that join one after the other: milliseconds from the request to the certificate. */
  async function join(client: ApiClient, prefix: string, sample: () => Promise<void>): Promise<number[]> {
    const times: number[] = [];
    for (let number = 0; number < honest; number += 1) {
      const name = `${prefix}-${number}`;
      const begun = performance.now();
      await postNodeRequest(client, name, name);
      await approveByHand(name);
      while (!(await stateOf(stack.plane, name)).endsWith('issued')) await new Promise((done) => setTimeout(done, 5));
      times.push(performance.now() - begun);
      await sample();
    }
    return times;
  }

  /** As large as etcd takes it, so large that its decision or its end does not fit any more. */
  async function createPadded(): Promise<CsrObject> {
    const { pem } = makeRequest({ key: newKey('P-256'), subject: { O: 'system:nodes', CN: 'system:node:padded' } });
    const request = Buffer.from(pem).toString('base64');
    const spec = { signerName: clientSigner, request, usages: ['digital signature', 'client auth'] };
    const name = 'fitting-00'; // as long as the names of the copies
    let [fits, tooLarge] = [1_000_000, 1_600_000];
    while (tooLarge - fits > 64) {
      const bytes = Math.floor((fits + tooLarge) / 2);
      const object = {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name, labels: labelsOf(bytes) },
        spec,
      };
      const posted = await stranger.request(csrPath, { method: 'POST', body: object });
      const taken = posted.status === 201 && (await approveByHand(name)) === 200;
      if (taken) fits = bytes;
      else tooLarge = bytes;
      await stack.plane.admin.request(`${csrPath}/${name}`, { method: 'DELETE' });
    }
    const metadata = { name: 'padded-000', labels: labelsOf(fits) };
    const body = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata, spec };
    await stranger.expectOk(csrPath, { method: 'POST', body });
    await approveByHand(metadata.name);
    return readRequest(stack.plane, metadata.name);
  }

  /** What the relay asked the API server about requests of such a name, by name. */
  function calls(prefix: string): Map<string, string[]> {
    const found = new Map<string, string[]>();
    for (const { objectRef, verb, responseStatus } of stack.plane.auditEvents({ user: stack.identity.user }))
      if (objectRef?.resource === 'certificatesigningrequests' && objectRef.name?.startsWith(prefix) === true)
        found.set(objectRef.name, [...(found.get(objectRef.name) ?? []), `${verb} ${responseStatus?.code}`]);
    return found;
  }

  test(`finding 15: ${padded} of them cost the requests of others nothing: no alarm, no fall of a limit, two calls each`, async () => {
    const alone = await join(joining, 'alone', async () => {});
    const original = await createPadded();
    const copies = Array.from({ length: padded - 1 }, (_, index) => `padded-${String(index + 1).padStart(3, '0')}`);
    const limits: number[][] = [];
    const sample = async (): Promise<void> =>
      void limits.push(await Promise.all(steps.map((step) => relay.metric('concurrency_limit', `step="${step}"`))));
    await storeCopies(stack.plane, original, copies, 1);
    await eventually(async () => (await relay.metric('oversized_objects_total')) >= padded, 'all of them were seen');
    const beside = await join(joining, 'beside', sample);
    // The holder of the same token who joins in good faith pays nothing either.
    const same = await join(stranger, 'same', sample);
    await eventually(async () => (await relay.metric('retries_total', 'ObjectTooLarge')) >= tried, 'some were tried');

    const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0;
    const [base, ...others] = [alone, beside, same].map(median);
    const ratios = others.map((time) => (time / (base ?? 1)).toFixed(2)).join(', ');
    process.stdout.write(
      `${mode}: a join takes ${base?.toFixed(0)} ms alone, ${others.map((time) => time.toFixed(0)).join(' and ')} ms beside ` +
        `${padded} padded requests of another and of the same token: ratios ${ratios}\n`,
    );

    for (const [index, step] of steps.entries()) {
      const values = limits.map((sampled) => sampled[index] ?? 0);
      expect([step, values]).toEqual([step, values.toSorted((a, b) => a - b)]);
    }
    expect(await relay.metric('alarms_total')).toBe(0);
    expect(relay.logged('request tried again: needs attention')).toEqual([]);
    const retries = await relay.metric('retries_total');
    expect(retries).toBe(await relay.metric('retries_total', 'ObjectTooLarge'));
    for (const [name, made] of calls('padded-'))
      expect([name, made.length]).toEqual([name, Math.min(made.length, callsForOne)]);
    expect(stack.calls.filter((call) => call.includes(' padded-'))).toEqual([]);
    for (const prefix of ['beside-', 'same-'])
      for (const [name, made] of calls(prefix))
        expect([name, made]).toEqual([name, mode === 'approve' ? ['update 200', 'update 200'] : ['update 200']]);
    expect((await relay.ready()).status).toBe(200);
  });

  test('finding 15: one that is too large for us and not for etcd is refused once, with the reason', async () => {
    const { object } = await postNodeRequest(joining, 'template', 'n1');
    const { signerName, request } = object.spec;
    const name = 'generous';
    // Of another requester than the padded ones, so that it is next.
    await joining.expectOk(csrPath, {
      method: 'POST',
      body: {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name, labels: labelsOf(400_000) },
        spec: { signerName, request, usages: ['digital signature', 'client auth'] },
      },
    });
    await approveByHand(name);
    const type = mode === 'approve' ? 'Denied' : 'Failed';
    await eventually(
      async () => conditionOf(await readRequest(stack.plane, name), type) !== undefined,
      'it is refused',
    );
    expect(conditionOf(await readRequest(stack.plane, name), type)).toMatchObject({ reason: 'RequestTooLarge' });
    expect(stack.calls.filter((call) => call.endsWith(` ${name}`))).toEqual([]);
  });

  test('finding 18: managedFields that are nested too deep for JSON libraries hinder nothing, and stay as they are', async () => {
    const { object } = await postNodeRequest(joining, 'shallow', 'n2');
    const { signerName, request } = object.spec;
    const fieldsV1 = `{"f:metadata":${'{"f:a":'.repeat(6_000)}{}${'}'.repeat(6_001)}`;
    const body = `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest",
      "metadata":{"name":"deep","managedFields":[{"manager":"m","operation":"Update","apiVersion":"certificates.k8s.io/v1",
        "time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":${fieldsV1}}]},
      "spec":{"signerName":"${signerName}","request":"${request}","usages":["digital signature","client auth"]}}`;
    await joining.expectOk(csrPath, { method: 'POST', body });
    if (mode === 'default flags') await stack.plane.kubectl(['certificate', 'approve', 'deep']);
    const isIssued = async (): Promise<boolean> => (await stateOf(stack.plane, 'deep')).endsWith('issued');
    await eventually(isIssued, 'it is issued');
    const { text } = await stack.plane.admin.request(`${csrPath}/deep`);
    expect(text.match(/"f:a"/g)).toHaveLength(6_000);
    expect(text).toContain('"manager":"countersign"');
    expect(await relay.metric('alarms_total')).toBe(0);
  });

  test('finding 21: a long name is refused once, and one that no URL can carry is counted and logged in a short line', async () => {
    const { object } = await postNodeRequest(joining, 'short', 'n3');
    const { signerName, request } = object.spec;
    const [long, endless] = ['n'.repeat(2_000), '\u0001'.repeat(450_000)];
    const seen = await relay.metric('oversized_objects_total');
    for (const name of [long, endless]) {
      const spec = { signerName, request, usages: ['digital signature', 'client auth'] };
      const [apiVersion, kind] = ['certificates.k8s.io/v1', 'CertificateSigningRequest'];
      await joining.expectOk(csrPath, { method: 'POST', body: { apiVersion, kind, metadata: { name }, spec } });
    }
    await approveByHand(long);
    const type = mode === 'approve' ? 'Denied' : 'Failed';
    await eventually(
      async () => conditionOf(await readRequest(stack.plane, long), type) !== undefined,
      'it is refused',
    );
    expect(conditionOf(await readRequest(stack.plane, long), type)).toMatchObject({ reason: 'RequestTooLarge' });
    // Where it decides about pending requests it has looked at both.
    if (mode === 'approve') expect(await relay.metric('oversized_objects_total')).toBeGreaterThanOrEqual(seen + 2);
    const lines = readFileSync(relay.process.logPath, 'utf8').split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(3_000);
    expect(await relay.metric('alarms_total')).toBe(0);
  });
});

/** About so many bytes in etcd. */
function labelsOf(bytes: number): Record<string, string> {
  const whole = Math.floor(bytes / 80);
  const labels = Object.fromEntries(
    Array.from({ length: whole }, (_, index) => [`l${String(index).padStart(10, '0')}`, 'x'.repeat(62)]),
  );
  return { ...labels, rest: 'x'.repeat(bytes % 80 === 0 ? 1 : Math.min(63, bytes % 80)) };
}
