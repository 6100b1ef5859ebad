import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { patientStopMs } from '../../../harness/processes/processes.ts';
import {
  installRelay,
  leasePath,
  shortenLease,
  startRelay,
  type Relay,
  type RelayIdentity,
} from '../../../harness/stack/stack.ts';
import {
  approve,
  conditionOf,
  createClientRequests,
  createRequest,
  csrPath,
  eventually,
  readRequest,
  settled,
  type CsrObject,
} from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { refusalMessage, startTestEndpoint, type TestEndpoint } from './endpoint.ts';
import { twoSigners } from './two-signers.ts';
import { waysIn } from './ways-in.ts';
import { webhookProxy } from './webhook.ts';

const deployment = join(import.meta.dirname, '../../../../deploy/manifests/watch-relay-deployment.yaml');
const { skip } = await requireTools('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl');

/** The relay's own process against a real API server, whatever happens to either. */
describe.skipIf(skip)('the relay on a real API server', () => {
  let plane: ControlPlane;
  let identity: RelayIdentity;
  let endpoint: TestEndpoint;
  const relays: Relay[] = [];
  let batch = 0;

  beforeAll(async () => {
    endpoint = await startTestEndpoint();
    plane = await startControlPlane();
    identity = await installRelay(plane);
  });
  afterEach(async () => {
    endpoint.release();
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
  });
  afterAll(async () => {
    await plane?.stop();
    endpoint?.close();
  });

  const start = (...args: readonly string[]): Promise<Relay> => startWith({}, ...args);

  async function startWith(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Relay> {
    const relay = await startRelay({ kubeconfig: identity.kubeconfig(), endpoint: endpoint.url, args, env });
    relays.push(relay);
    return relay;
  }

  /** Names of new requests, approved unless told otherwise. */
  async function requests(count: number, { approved = true } = {}): Promise<string[]> {
    const made = await createClientRequests(plane, `b${++batch}`, count);
    const names = made.map(({ name }) => name);
    if (approved) await approve(plane, ...names);
    return names;
  }

  const certificates = (objects: Iterable<CsrObject>): number =>
    [...objects].filter(({ status }) => status.certificate !== undefined).length;

  async function change(name: string, how: (object: CsrObject) => object, subresource = ''): Promise<void> {
    await plane.admin.expectOk(`${csrPath}/${name}${subresource}`, {
      method: 'PUT',
      body: how(await readRequest(plane, name)),
    });
  }

  test('issues what was approved before and after its start, and touches nothing else', async () => {
    const before = await requests(3);
    const pending = await requests(2, { approved: false });
    const [refusedByHand] = await requests(1, { approved: false });
    await plane.kubectl(['certificate', 'deny', refusedByHand!]);
    const foreign = await createRequest(plane.admin, {
      name: 'foreign',
      signer: 'example.com/foreign',
      request: { subject: { CN: 'x' } },
    });
    await approve(plane, foreign.name);
    const alone = [...pending, refusedByHand!, foreign.name];
    const versions = await Promise.all(
      alone.map(async (name) => (await readRequest(plane, name)).metadata.resourceVersion),
    );

    const relay = await start();
    const after = await requests(3);
    const done = await settled(plane, [...before, ...after]);
    expect(certificates(done.values())).toBe(6);
    await expect.poll(() => relay.metric('requests_total', 'outcome="issued"')).toBe(6);
    expect(await relay.metric('lists_total')).toBe(3);
    expect(await relay.metric('malformed_objects_total')).toBe(0);
    expect(endpoint.asked.filter((name) => alone.includes(name))).toEqual([]);
    const now = await Promise.all(alone.map(async (name) => (await readRequest(plane, name)).metadata.resourceVersion));
    expect(now).toEqual(versions);

    await approve(plane, ...pending); // what was left alone was left able
    await settled(plane, pending);
  });

  test('its example Deployment is one that the API server takes, in the namespace and for the account of the rights', async () => {
    const text = await plane.kubectl(['apply', '--dry-run=server', '-o', 'json', '-f', deployment]);
    expect(JSON.parse(text)).toMatchObject({
      metadata: { namespace: identity.namespace },
      spec: { template: { spec: { serviceAccountName: identity.name } } },
    });
  });

  /** More than one page: the relay lists 100 at a time. */
  const pages = 110;

  test('pages through many and issues them all, each with one call and one write', async () => {
    const names = await requests(pages);
    const asked = endpoint.asked.length;
    const relay = await start();
    const done = await settled(plane, names);
    expect(certificates(done.values())).toBe(pages);
    expect(endpoint.asked).toHaveLength(asked + pages);
    expect(await relay.metric('api_errors_total')).toBe(0);
    const mine = new Set(names);
    const own = () => plane.auditEvents({ user: identity.user });
    const touched = (verb: string) =>
      own().filter((event) => event.verb === verb && mine.has(event.objectRef?.name ?? '')).length;
    await expect.poll(() => touched('update')).toBe(pages);
    expect(touched('get')).toBe(0);
    const lists = own().filter(
      ({ verb, requestURI }) => verb === 'list' && requestURI.includes('kube-apiserver-client&'),
    );
    expect(lists.filter(({ requestURI }) => requestURI.includes('continue=')).length).toBeGreaterThan(0);
    expect(lists.every(({ requestURI }) => requestURI.includes('limit=100'))).toBe(true);
  });

  test('writes all reasons into Failed and tells them in an Event that kubectl describe shows', async () => {
    const [name] = await requests(1, { approved: false });
    await start();
    endpoint.behave('refuses');
    await approve(plane, name!);
    const [object] = [...(await settled(plane, [name!])).values()];
    expect(conditionOf(object!, 'Approved')).toBeDefined();
    expect(conditionOf(object!, 'Failed')).toMatchObject({
      status: 'True',
      reason: 'SignerValidationFailure',
      message: refusalMessage,
      lastUpdateTime: expect.stringMatching(/Z$/) as unknown,
      lastTransitionTime: expect.stringMatching(/Z$/) as unknown,
    });
    await eventually(async () => {
      const text = await plane.kubectl(['describe', 'csr', name!]);
      return /Warning\s+SignerValidationFailure .*KeyNotPermitted: RSA 1024 is too short/.test(text);
    }, 'the Event shows');
  });

  test('says who it waits for when it waits long, and goes on when that is mended', async () => {
    const relay = await start();
    endpoint.behave('is a broken proxy');
    const [name] = await requests(1);
    await eventually(async () => (await relay.metric('retries_total', 'EndpointUnexpected')) >= 3, 'three tries');
    expect((await readRequest(plane, name!)).status.conditions).toHaveLength(1);
    await expect.poll(() => relay.logged('request tried again: needs attention').length).toBeGreaterThanOrEqual(3);
    endpoint.release();
    await settled(plane, [name!]);
  });

  test('judges anew after a conflict: a label stays, a stranger’s certificate stays, a deleted one is gone', async () => {
    const relay = await start();
    endpoint.behave('holds');
    const [labelled, taken, deleted] = (await requests(3)) as [string, string, string];
    await eventually(() => endpoint.held() === 3, 'all three are with the endpoint');
    await change(labelled, (old) => ({ ...old, metadata: { ...old.metadata, labels: { kept: 'yes' } } }));
    const [other] = await requests(1, { approved: false });
    const issued = await readRequest(plane, (await firstIssued()).metadata.name);
    await change(
      taken,
      (old) => ({ ...old, status: { ...old.status, certificate: issued.status.certificate } }),
      '/status',
    );
    await plane.kubectl(['delete', 'csr', deleted, other!]);
    const asked = endpoint.asked.length;
    endpoint.release();
    await settled(plane, [labelled, taken]);
    for (const outcome of ['settled', 'gone'])
      await expect.poll(() => relay.metric('requests_total', `outcome="${outcome}"`)).toBe(1);
    await eventually(async () => (await relay.metric('in_flight')) === 0, 'nothing is under way');

    const first = await readRequest(plane, labelled);
    expect(first.metadata).toMatchObject({ labels: { kept: 'yes' } });
    expect(first.status.certificate).toBeDefined();
    expect((await readRequest(plane, taken)).status.certificate).toBe(issued.status.certificate);
    expect((await plane.admin.request(`${csrPath}/${deleted}`)).status).toBe(404);
    expect(endpoint.asked).toHaveLength(asked); // no request was sent twice
  });

  async function firstIssued(): Promise<CsrObject> {
    const list = await plane.admin.expectOk<{ items: CsrObject[] }>(csrPath);
    return list.items.find(({ status }) => status.certificate !== undefined)!;
  }

  test('survives the API server being killed and coming back, and lists again when its place in history is gone', async () => {
    const relay = await start();
    await settled(plane, await requests(1));
    const lists = await relay.metric('lists_total');
    endpoint.behave('holds');
    const during = await requests(5);
    await eventually(() => endpoint.held() === 5, 'five are with the endpoint');
    await plane.killApiServer();
    endpoint.release(); // the relay has answers and no API server to write them to
    await eventually(async () => (await relay.metric('retries_total', 'ApiUnreachable')) > 0, 'a write failed');
    // A new API server over a compacted etcd knows none of the revisions before.
    await plane.compactEtcd();
    await plane.restartApiServer();
    const after = await requests(5);
    const done = await settled(plane, [...during, ...after]);
    expect(certificates(done.values())).toBe(10);
    await eventually(async () => (await relay.ready()).status === 200, 'ready again');
    expect(relay.process.ended()).toBeUndefined();
    await eventually(
      async () => (await relay.metric('watch_restarts_total', 'reason="expired"')) >= 1,
      'a watch expired',
    );
    expect(await relay.metric('lists_total')).toBeGreaterThan(lists);
  });

  test('finishes what is under way when asked to stop, exits 0, and the next one does the rest', async () => {
    const relay = await start('--concurrency', '4');
    endpoint.behave('holds');
    const names = await requests(10);
    await eventually(() => endpoint.held() === 4, 'four are with the endpoint');
    const asked = endpoint.asked.length;
    const stopped = relay.process.stop('SIGTERM', patientStopMs);
    await eventually(async () => (await relay.ready()).status === 503, 'draining');
    endpoint.release();
    await stopped;
    expect(relay.process.ended()).toBe('exit code 0');
    expect(endpoint.asked).toHaveLength(asked);
    const objects = await Promise.all(names.map((name) => readRequest(plane, name)));
    expect(certificates(objects)).toBe(4);
    await start();
    expect(certificates((await settled(plane, names)).values())).toBe(10);
  });

  test('of two one works; when it stops, or dies, the other one does', async () => {
    const elect = ['--leader-elect', '--lease-namespace', identity.namespace];
    // On one host, as two pods with the network of one node.
    const first = await startWith({ POD_NAME: 'relay-a' }, ...elect);
    const second = await startWith({ POD_NAME: 'relay-b' }, ...elect);
    const holder = async (): Promise<string> => {
      const { spec } = await plane.admin.expectOk<{ spec: { holderIdentity: string } }>(leasePath(identity));
      return spec.holderIdentity;
    };
    const leads = async (relay: Relay): Promise<boolean> => (await relay.metric('leader')) === 1;
    await eventually(() => leads(first), 'the first one leads');
    expect(await leads(second)).toBe(false);
    expect(await holder()).toMatch(/^relay-a_/);
    expect((await second.ready()).status).toBe(200);
    await settled(plane, await requests(2));
    expect(await second.metric('requests_total')).toBe(0);
    expect(await second.metric('lists_total')).toBe(0);

    await first.process.stop('SIGTERM', patientStopMs);
    expect(first.process.ended()).toBe('exit code 0');
    await eventually(() => leads(second), 'the second one took over');
    expect(await holder()).toMatch(/^relay-b_/);
    await settled(plane, await requests(2));

    await second.kill();
    const third = await start(...elect);
    expect(await leads(third)).toBe(false); // the lease of the one that was killed still runs
    await shortenLease(plane, identity);
    const waiting = await requests(2);
    await settled(plane, waiting);
    expect(await leads(third)).toBe(true);
    await expect.poll(() => third.metric('requests_total', 'outcome="issued"')).toBe(2);
  });

  test('carries requests that are too large to sign to the endpoint, which refuses them', async () => {
    const relay = await start();
    const [posted] = await createClientRequests(plane, 'padded', 1);
    const name = 'large';
    const request = Buffer.from(`${'padding\n'.repeat(20_000)}${posted!.made.pem}`).toString('base64');
    await plane.admin.expectOk(csrPath, {
      method: 'POST',
      body: {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name },
        spec: { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'], request },
      },
    });
    endpoint.behave('refuses');
    await approve(plane, name);
    expect(conditionOf([...(await settled(plane, [name])).values()][0]!, 'Failed')).toBeDefined();
    expect(await relay.metric('malformed_objects_total')).toBe(0);
  });

  describe('at a front door', () => {
    waysIn(() => ({ plane, identity }));
  });
  describe('with a second signer on the cluster', () => {
    twoSigners(() => ({ plane, identity }));
  });
  // Last: it leaves approved requests without a certificate, which the relays of the others would issue.
  describe('as webhook proxy', () => {
    webhookProxy(() => ({ plane, identity }));
  });
});
