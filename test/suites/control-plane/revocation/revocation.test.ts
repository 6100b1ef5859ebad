import { spawnSync } from 'node:child_process';
import { randomBytes, X509Certificate } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  authorizationConfiguration,
  fingerprintsEach,
} from '../../../../core/revocation/authorization-configuration.ts';
import { certificateFacts } from '../../../../core/x509/read-certificate.ts';
import { createApiClient, type ApiClient } from '../../../harness/kubernetes/api-client.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { onFreePort, temporaryFolder } from '../../../harness/processes/processes.ts';
import {
  approve,
  certificatePemOf,
  conditionOf,
  createRequest,
  eventually,
  settled,
  type CsrObject,
  type SignerKind,
} from '../../../harness/stack/requests.ts';
import { clusterPath, installRelay, startDevServer, startRelay } from '../../../harness/stack/stack.ts';
import type { DevServer, Relay } from '../../../harness/stack/stack.ts';
import { createTestAuthority, loopbackServerExtensions } from '../../../harness/x509/test-certificates.ts';
import { requireTools } from '../../../tools/tools.ts';
import { run } from '../../../unit/cli/run.ts';
import type { Ran } from '../../../unit/cli/run.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');
const token = randomBytes(32).toString('hex');
const pods = '/api/v1/namespaces/default/pods';

interface Login {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly fingerprint: string;
  readonly client: ApiClient;
}

/** Certificates of the real sign handler, the relay's process, and a real kube-apiserver that asks it. */
describe.skipIf(skip)('a real API server refuses revoked certificates', () => {
  const folder = temporaryFolder('revocation');
  const file = (name: string, content: string): string => {
    const path = join(folder.path, name);
    // Replaced as an operator should: by a rename, so that the server never reads half a file.
    writeFileSync(`${path}.new`, content, { mode: 0o600 });
    renameSync(`${path}.new`, path);
    return path;
  };
  const kubeConfigFile = join(folder.path, 'revoked.kubeconfig');
  const configure = (fingerprints: readonly string[]): string => {
    const configuration = authorizationConfiguration({ fingerprints, kubeConfigFile }, undefined);
    if (!configuration.ok) throw new Error(configuration.problem);
    return file('authorization.json', JSON.stringify(configuration.value));
  };

  let dev: DevServer;
  let plane: ControlPlane;
  let relay: Relay;
  let made = 0;

  beforeAll(async () => {
    dev = await startDevServer();
    plane = await startControlPlane({ clientCaPem: await dev.caPem(), authorizationConfig: configure([]) });
    const identity = await installRelay(plane);
    const servers = await createTestAuthority('webhook servers');
    const serving = await servers.issue({ subject: [{ CN: ['w'] }], extensions: loopbackServerExtensions() });
    const args = [
      ['--webhook-cert', file('tls.crt', serving.certificatePem)],
      ['--webhook-key', file('tls.key', serving.keyPem)],
      ['--webhook-token-file', file('token', token)],
    ].flat();
    let webhook = 0;
    relay = await onFreePort((port) => {
      webhook = port;
      const flags = [...args, `--webhook-proxy=127.0.0.1:${port}`];
      return startRelay({ kubeconfig: identity.kubeconfig(), endpoint: dev.url, args: flags });
    });
    const cluster = {
      server: `https://127.0.0.1:${webhook}${clusterPath}/revoked`,
      'certificate-authority-data': Buffer.from(servers.certificatePem).toString('base64'),
    };
    file(
      'revoked.kubeconfig',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'relay',
        contexts: [{ name: 'relay', context: { cluster: 'relay', user: 'api-server' } }],
        clusters: [{ name: 'relay', cluster }],
        users: [{ name: 'api-server', user: { token } }],
      }),
    );
    await plane.kubectl(['create', 'clusterrole', 'reader', '--verb=get,list,watch', '--resource=pods,configmaps']);
    await plane.kubectl(['create', 'clusterrolebinding', 'readers', '--clusterrole=reader', '--group=readers']);
  });
  afterAll(async () => {
    await relay?.stop();
    await plane?.stop();
    await dev?.stop();
    folder.remove();
  });

  /** A client certificate that the sign handler issued for a request on the API server. */
  async function login(user: string, group = 'readers', signer: SignerKind = 'kube-apiserver-client'): Promise<Login> {
    const name = `login-${++made}`;
    const { made: request } = await createRequest(plane.admin, {
      name,
      signer,
      request: { subject: { O: group, CN: user } },
    });
    await approve(plane, name);
    const certificatePem = certificatePemOf((await settled(plane, [name])).get(name)!);
    const { keyPem } = request.key;
    const client = createApiClient({ url: plane.url, caPem: plane.servingCaPem, login: { certificatePem, keyPem } });
    const { fingerprintSha256: fingerprint } = certificateFacts(new X509Certificate(certificatePem).raw);
    await eventually(async () => (await client.request(pods)).status === 200, `${user} may list pods`);
    return { certificatePem, keyPem, fingerprint, client };
  }

  const countersign = async (...args: readonly string[]): Promise<Ran> =>
    run(['cert', ...args, '--data', join(dev.dataDir, 'demo')], { world: { now: Date.now } });
  const why = ['--reason', 'keyCompromise', '--note', 'stolen, ticket 4711'];

  async function revoke({ certificatePem }: Login): Promise<void> {
    const { serial } = certificateFacts(new X509Certificate(certificatePem).raw);
    const done = await countersign('revoke', '--serial', serial, ...why);
    expect(done).toMatchObject({ code: 0, out: expect.stringContaining('revoked: 1 certificate now') as string });
  }

  const status = async ({ client }: Login, path = pods): Promise<number> => (await client.request(path)).status;
  const until = (login: Login, expected: number): Promise<void> =>
    eventually(async () => (await status(login)) === expected, `the answer is ${expected}`, 10);
  const check = (): Promise<Ran> => countersign('revoked', '--check', '--kubeconfig', plane.adminKubeconfig);
  const webhookCalls = () => relay.metric('webhook_requests_total');

  test('200 before; 403 with the reason within seconds, without a restart; another certificate of the same user: 200', async () => {
    const revoked = await login('alice');
    const other = await login('alice');
    await revoke(revoked);
    const before = await webhookCalls();
    expect([await status(revoked), await status(other)]).toEqual([200, 200]);
    // Nobody's certificate is in the file yet: the webhook is not even called.
    expect(await webhookCalls()).toBe(before);
    expect(await check()).toMatchObject({ code: 1, out: expect.stringMatching(/ACCEPTED +no opinion/) as string });
    const started = performance.now();
    // What an operator does: the command writes the file, a rename puts it in force.
    file('authorization.json', (await countersign('revoked', '--authorization', kubeConfigFile)).out);
    await until(revoked, 403);
    expect(performance.now() - started).toBeLessThan(10_000);
    const answer = await revoked.client.request(pods);
    expect((answer.json() as { message: string }).message).toMatch(
      /: the client certificate was revoked at 2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(keyCompromise\)$/,
    );
    expect(await status(other)).toBe(200);
    expect(await webhookCalls()).toBeGreaterThan(before);
    expect(await check()).toMatchObject({ code: 0, out: expect.stringContaining('refused') as string });
    expect((await plane.admin.request(pods)).status).toBe(200);
    // What every authenticated user may do otherwise is refused too.
    for (const path of ['/healthz', '/version', '/api', '/openid/v1/jwks'])
      expect([path, await status(revoked, path), await status(other, path)]).toEqual([path, 403, expect.any(Number)]);
  });

  test('nobody but revoked certificates ever causes a call', async () => {
    const [revoked, other] = [await login('carol'), await login('carol')];
    await revoke(revoked);
    configure([revoked.fingerprint]);
    await until(revoked, 403);
    const before = await webhookCalls();
    for (let i = 0; i < 20; i++) await status(other);
    await plane.admin.request('/api/v1/nodes');
    expect(await webhookCalls()).toBe(before);
  });

  test('a SubjectAccessReview shows an operator that the server obeys', async () => {
    const [revoked, other] = [await login('dora'), await login('dora')];
    await revoke(revoked);
    configure([revoked.fingerprint]);
    await until(revoked, 403);
    const ask = async ({ fingerprint }: Login, groups = ['readers']) => {
      const extra = { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] };
      const resourceAttributes = { verb: 'list', resource: 'pods', namespace: 'default' };
      const answer = await plane.admin.expectOk<{ status: object }>(
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          method: 'POST',
          body: {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SubjectAccessReview',
            spec: { user: 'dora', groups, extra, resourceAttributes },
          },
        },
      );
      return answer.status;
    };
    expect(await ask(revoked)).toMatchObject({ allowed: false, denied: true });
    expect(await ask(other)).toMatchObject({ allowed: true });
    // The API server authorizes this group before it asks any configured authorizer.
    expect(await ask(revoked, ['system:masters'])).toMatchObject({ allowed: true });
  });

  test('a certificate in the file that the service does not list is not refused: no opinion', async () => {
    const listed = await login('erin');
    configure([listed.fingerprint]);
    const before = await webhookCalls();
    await eventually(async () => {
      await status(listed);
      return (await webhookCalls()) > before;
    }, 'the webhook is called');
    expect(await status(listed)).toBe(200);
    // Its revocation is seen with the next call: the relay fetches the list for a certificate that it does not know.
    await revoke(listed);
    await until(listed, 403);
  });

  test('a thousand fingerprints an authorizer, and more authorizers for more', async () => {
    const [revoked, other] = [await login('faye'), await login('faye')];
    await revoke(revoked);
    const many = Array.from({ length: 2 * fingerprintsEach }, () => randomBytes(32).toString('hex'));
    configure([...many, revoked.fingerprint]);
    await until(revoked, 403);
    expect(await status(other)).toBe(200);
    expect(plane.apiServer.logTail(50)).not.toContain('exceeds limit');
  });

  test('a revoked node: all its certificates, and no new one of any kind', async () => {
    const ask = async (signer: SignerKind): Promise<CsrObject> => {
      const name = `node-${++made}`;
      const sans = signer === 'kubelet-serving' ? { sans: { dns: ['worker-9'] } } : {};
      const subject = { O: 'system:nodes', CN: 'system:node:worker-9' };
      const node = await plane.client({ user: 'system:node:worker-9', groups: ['system:nodes'] });
      await createRequest(node, { name, signer, request: { subject, ...sans } });
      await approve(plane, name);
      return (await settled(plane, [name])).get(name)!;
    };
    const kinds = ['kube-apiserver-client-kubelet', 'kubelet-serving'] as const;
    const issued = await Promise.all(kinds.map(ask));
    const done = await countersign('revoke', '--node', 'worker-9', ...why);
    expect(done.out).toContain('locked: node worker-9');
    expect(done.out).toContain('revoked: 2 certificates now, 0 before');
    const serials = issued.map((each) => certificateFacts(new X509Certificate(certificatePemOf(each)).raw).serial);
    for (const serial of serials) expect(done.out).toContain(serial);
    for (const kind of kinds) expect(conditionOf(await ask(kind), 'Failed')?.message).toContain('worker-9');
    // The command can be run again: nothing is done twice.
    const again = await countersign('revoke', '--node', 'worker-9', ...why);
    expect(again.out).toMatch(/locked: nothing that was not locked already\nrevoked: 0 certificates now, 2 before/);
    // The CRL at its URL, as a relying party gets it.
    const crl = await fetch(`${dev.url}${clusterPath}/crl/ca`);
    expect(crl.headers.get('content-type')).toBe('application/pkix-crl');
    const text = spawnSync('openssl', ['crl', '-inform', 'DER', '-noout', '-text'], {
      input: Buffer.from(await crl.arrayBuffer()),
      encoding: 'utf8',
    });
    for (const serial of serials) expect(text.stdout.toLowerCase()).toContain(serial);
  });

  test('a watch that is open sees new objects until it ends: a revocation does not close connections', async () => {
    configure([]);
    const revoked = await login('gail');
    const watch = await openWatch(revoked, 8);
    await revoke(revoked);
    configure([revoked.fingerprint]);
    await until(revoked, 403);
    await plane.kubectl(['create', 'configmap', 'after-revocation', '--from-literal=a=b']);
    await eventually(() => watch.text().includes('after-revocation'), 'the open watch sees the new object');
    // It ends when its timeout does, and cannot be opened again.
    await eventually(() => watch.ended(), 'the watch ends', 30);
    expect(await status(revoked, '/api/v1/configmaps?watch=1&timeoutSeconds=1')).toBe(403);
  });

  async function openWatch({ certificatePem, keyPem }: Login, seconds: number) {
    const url = new URL(`/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=${seconds}`, plane.url);
    const tls = { ca: plane.servingCaPem, cert: certificatePem, key: keyPem, agent: false as const };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      httpsRequest(url, tls, resolve).on('error', reject).end();
    });
    expect(answer.statusCode).toBe(200);
    let text = '';
    answer.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
    return { text: () => text, ended: () => answer.readableEnded };
  }

  /** The last test: it ends the relay. */
  test('with the relay gone the revoked certificate is still refused, and nobody else notices', async () => {
    const [revoked, other] = [await login('hugo'), await login('hugo')];
    await revoke(revoked);
    configure([revoked.fingerprint]);
    await until(revoked, 403);
    await relay.kill();
    await until(revoked, 500);
    expect(await status(other)).toBe(200);
    expect((await plane.admin.request(pods)).status).toBe(200);
    await relay.restart();
    await until(revoked, 403);
  });
});
