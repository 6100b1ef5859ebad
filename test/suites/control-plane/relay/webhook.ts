import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { onFreePort } from '../../../harness/processes/processes.ts';
import { startRelay, type Relay } from '../../../harness/stack/stack.ts';
import {
  approve,
  certificatePemOf,
  createClientRequests,
  createRequest,
  csrPath,
  eventually,
  readRequest,
  type CsrObject,
} from '../../../harness/stack/requests.ts';
import {
  clientExtensions,
  createTestAuthority,
  loopbackServerExtensions,
} from '../../../harness/x509/test-certificates.ts';
import type { KeyAndCertificate } from '../../../harness/x509/test-certificates.ts';
import { postAsWebhookClient, type WebhookLogin } from './webhook-client.ts';
import { refusalMessage, startTestEndpoint, type TestEndpoint } from './endpoint.ts';
import type { InstalledRelay } from './installed-relay.ts';

const token = '0123456789abcdef0123456789abcdef';

/** The relay's process as webhook proxy, with a real API server behind it and an endpoint that tells what it got. */
export function webhookProxy(installed: () => InstalledRelay): void {
  let plane: InstalledRelay['plane'];
  let endpoint: TestEndpoint;
  let recorder: Server;
  let relay: Relay;
  let port: number;
  let caPem: string;
  let client: KeyAndCertificate;
  /** What reached the endpoint. */
  const forwarded: CsrObject[] = [];
  let made = 0;

  beforeAll(async () => {
    const { identity } = installed();
    ({ plane } = installed());
    endpoint = await startTestEndpoint();
    recorder = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks);
        forwarded.push(JSON.parse(body.toString('utf8')) as CsrObject);
        fetch(`${endpoint.url}${request.url}`, { method: 'POST', body })
          .then(async (answer) => {
            const outcome = answer.headers.get('x-countersign-outcome') ?? '';
            response.writeHead(answer.status, { 'x-countersign-outcome': outcome }).end(await answer.text());
          })
          .catch(() => response.destroy());
      });
    });
    await new Promise<void>((resolve) => recorder.listen(0, '127.0.0.1', resolve));
    const servers = await createTestAuthority('webhook servers');
    const clients = await createTestAuthority('webhook clients');
    const serving = await servers.issue({ subject: [{ CN: ['w'] }], extensions: loopbackServerExtensions() });
    client = await clients.issue({ subject: [{ CN: ['gcp-controller-manager'] }], extensions: clientExtensions() });
    caPem = servers.certificatePem;
    const files = {
      'webhook-cert': serving.certificatePem,
      'webhook-key': serving.keyPem,
      'webhook-token-file': token,
      'webhook-client-ca': clients.certificatePem,
    };
    const args = Object.entries(files).flatMap(([flag, content]) => {
      const path = join(plane.dir, flag);
      writeFileSync(path, content);
      return [`--${flag}`, path];
    });
    relay = await onFreePort((webhookPort) => {
      port = webhookPort;
      return startRelay({
        kubeconfig: identity.kubeconfig(),
        endpoint: `http://127.0.0.1:${(recorder.address() as AddressInfo).port}`,
        args: [
          ...args,
          `--webhook-proxy=127.0.0.1:${port}`,
          '--webhook-client-subject=CN=gcp-controller-manager',
          // The relay itself has nothing to do with the requests of these tests: a client of the webhook writes them.
          '--signer-name=example.com/none',
          '--concurrency=2',
        ],
      });
    });
  });
  beforeEach(() => {
    forwarded.length = 0;
    endpoint.behave('issues');
  });
  afterAll(async () => {
    await relay?.stop();
    endpoint?.close();
    recorder?.closeAllConnections();
    recorder?.close();
  });

  /** An approved request, as a client that watches has it. */
  async function request({ approved = true } = {}): Promise<CsrObject> {
    const [{ name } = { name: '' }] = await createClientRequests(plane, `h${++made}`, 1);
    if (approved) await approve(plane, name);
    return readRequest(plane, name);
  }

  const post = (object: unknown, login: WebhookLogin = { token, certificate: client }) =>
    postAsWebhookClient({ port, caPem, login }, object);

  test('has the stored request signed, whatever else the posted one says', async () => {
    const stored = await request();
    const posted = {
      ...stored,
      metadata: { ...stored.metadata, resourceVersion: '1', labels: { posted: 'yes' } },
      status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Forged', message: 'by the caller' }] },
    };
    const { status, outcome, body } = await post(posted);
    expect([status, outcome]).toEqual([200, 'issued']);
    expect(forwarded).toEqual([stored]);
    const { certificate, ...rest } = body.status;
    expect({ ...body, status: rest }).toEqual(posted);
    expect(new X509Certificate(certificatePemOf(body)).subject).toContain(stored.metadata.name);

    // What the client does with it.
    const url = `${csrPath}/${stored.metadata.name}/status`;
    await plane.admin.expectOk(url, { method: 'PUT', body: { ...stored, status: { ...stored.status, certificate } } });
    expect(await post(posted)).toMatchObject({ status: 409, outcome: 'ignored' });
    expect(forwarded).toHaveLength(1);
  });

  test('has nothing signed that is not in the cluster as it was posted, and approved there', async () => {
    const stored = await request();
    const pending = await request({ approved: false });
    const denied = await request({ approved: false });
    await plane.kubectl(['certificate', 'deny', denied.metadata.name]);
    const other = await createRequest(plane.admin, {
      name: 'other',
      signer: 'kube-apiserver-client',
      request: { subject: { O: 'admins', CN: 'somebody-else' } },
    });
    const { spec: otherSpec } = await readRequest(plane, other.name);
    const approvedStatus = { status: stored.status };
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      [{ ...stored, spec: { ...stored.spec, request: otherSpec.request } }, /spec differs/],
      [{ ...stored, spec: { ...stored.spec, username: 'system:node:n1' } }, /spec differs/],
      [{ ...stored, spec: { ...stored.spec, signerName: 'kubernetes.io/kubelet-serving' } }, /spec differs/],
      [{ ...stored, spec: { ...stored.spec, expirationSeconds: 31_536_000 } }, /spec differs/],
      [{ ...stored, metadata: { ...stored.metadata, uid: pending.metadata.uid } }, /metadata\.uid differs/],
      [{ ...stored, metadata: { ...stored.metadata, name: pending.metadata.name } }, /differs/],
      [{ ...stored, metadata: { ...stored.metadata, name: 'nobody' } }, /no request of that name/],
      [{ ...pending, ...approvedStatus }, /not approved/],
      [{ ...denied, ...approvedStatus }, /denied/],
    ];
    for (const [posted, message] of wrong)
      expect(await post(posted)).toMatchObject({
        status: 409,
        outcome: 'ignored',
        body: { kind: 'Status', message: expect.stringMatching(message) as unknown },
      });
    expect(forwarded).toEqual([]);

    // A name that passed to a later request.
    await plane.kubectl(['delete', 'csr', stored.metadata.name]);
    await createRequest(plane.admin, {
      name: stored.metadata.name,
      signer: 'kube-apiserver-client',
      request: { subject: { CN: 'later' } },
    });
    await approve(plane, stored.metadata.name);
    const differs = expect.stringMatching(/metadata\.uid differs/) as unknown;
    expect(await post(stored)).toMatchObject({ status: 409, body: { message: differs } });
    expect(forwarded).toEqual([]);
    expect(await post(await readRequest(plane, stored.metadata.name))).toMatchObject({ status: 200 });
  });

  test('refuses every other caller', async () => {
    const stored = await request();
    const strangers = await createTestAuthority('webhook clients');
    const stranger = await strangers.issue({
      subject: [{ CN: ['gcp-controller-manager'] }],
      extensions: clientExtensions(),
    });
    const podToken = (
      await plane.kubectl(['create', 'token', 'countersign-watch-relay', '-n', 'countersign-system'])
    ).trim();
    for (const login of [
      {},
      { token },
      { certificate: client },
      { token: 'f'.repeat(32), certificate: client },
      { token: podToken, certificate: client },
      { token, certificate: stranger },
    ])
      expect(await post(stored, login)).toMatchObject({ status: 401, body: { kind: 'Status', code: 401 } });
    expect(forwarded).toEqual([]);
    await expect.poll(() => relay.metric('webhook_requests_total', 'outcome="unauthenticated"')).toBe(6);
  });

  test('passes a refusal on as one, and a busy endpoint as busy', async () => {
    const stored = await request();
    endpoint.behave('refuses');
    expect(await post(stored)).toMatchObject({ status: 422, outcome: 'refused', body: { message: refusalMessage } });
    endpoint.behave('is busy');
    expect(await post(stored)).toMatchObject({ status: 503, outcome: 'busy' });
    endpoint.behave('is a broken proxy');
    expect(await post(stored)).toMatchObject({ status: 503, outcome: 'busy' });
    // The proxy ends nothing itself: that is the client's to do.
    expect((await readRequest(plane, stored.metadata.name)).status).toEqual(stored.status);
  });

  test('does no more at once than it was told, and neither holds up nor loses the rest', async () => {
    const stored = await Promise.all(Array.from({ length: 4 }, () => request()));
    endpoint.behave('holds');
    const first = stored.slice(0, 2).map((object) => post(object));
    await eventually(() => endpoint.held() === 2, 'two are under way');
    for (const object of stored.slice(2)) expect(await post(object)).toMatchObject({ status: 503, outcome: 'busy' });
    expect(forwarded).toHaveLength(2);
    endpoint.release();
    for (const answer of await Promise.all(first)) expect(answer.status).toBe(200);
    for (const object of stored.slice(2)) expect(await post(object)).toMatchObject({ status: 200 });
  });

  test('says to come back while the API server is away', async () => {
    const stored = await request();
    await plane.killApiServer();
    expect(await post(stored)).toMatchObject({ status: 503, outcome: 'busy' });
    expect(forwarded).toEqual([]);
    await plane.restartApiServer();
    await eventually(async () => (await post(stored)).status === 200, 'it serves again');
  });
}
