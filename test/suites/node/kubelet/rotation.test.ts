import { spawn } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { ShownRotation } from '../../../../cli/rotation/report.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { openSignService, type SignService } from '../../../../dev/serve/sign-service.ts';
import { createApiClient, type ApiClient } from '../../../harness/kubernetes/api-client.ts';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { requireKubelet, startMachine, type Kubelet, type Machine } from '../../../harness/kubernetes/kubelet.ts';
import { startApprovalStack, type ApprovalStack } from '../../../harness/stack/approval.ts';
import { eventually } from '../../../harness/stack/requests.ts';
import { issueLogin } from '../../../harness/kubernetes/kubeconfig.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { run } from '../../../unit/cli/run.ts';
import type { Ran } from '../../../unit/cli/run.ts';
import { failures, isReady, logins, presentedCertificate, proxiedHealth } from './node.ts';

const { skip } = await requireKubelet();

const client = 'kubernetes.io/kube-apiserver-client-kubelet';
const serving = 'kubernetes.io/kubelet-serving';
const nodeName = 'rotating';
const nodeUser = `system:node:${nodeName}`;
const authentication = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';

const a = 'a: { subject: { commonName: rotating A }, validity: 30d }';
const b = (replaces: string) => `b: { ${replaces}subject: { commonName: rotating B }, validity: 60d }`;
/** A kubelet renews a certificate of 150 seconds 15 to 105 seconds after it got one (stock.test.ts). */
const configuration = (cas: string, ca: string): string => `version: 1
clusters:
  demo:
    cas: { ${cas} }
    profiles:
      ${client}: { ca: ${ca}, maxTtl: 150s }
      ${serving}: { ca: ${ca}, maxTtl: 150s }
    approval: { ${client}: approve, ${serving}: approve }
    approveServingWithoutProof: true
`;
const steps = {
  before: configuration(a, 'a'),
  both: configuration(`${a}, ${b('replaces: a, ')}`, 'a'),
  switched: configuration(`${a}, ${b('replaces: a, ')}`, 'b'),
  after: configuration(b(''), 'b'),
};

interface Login {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** A real API server and a real kubelet, the handlers over stores on disk, and the command as an operator runs it. */
describe.skipIf(skip)('a CA is replaced under a running node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-rotation-'));
  const dataFolder = join(folder, 'data');
  const data = join(dataFolder, 'demo');
  const file = join(folder, 'countersign.yaml');
  let service: SignService;
  let stack: ApprovalStack;
  let machine: Machine;
  let kubelet: Kubelet;
  let probe: Probe;

  /** What `cdk deploy` does: from now on these are the rules. */
  async function deploy(text: string): Promise<void> {
    const parsed = parseConfiguration(text, file);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
    const next = await openSignService({
      clusters: [parsed.value.configuration.clusters.get('demo')!],
      dataFolder,
      log: () => {},
    });
    writeFileSync(file, text);
    service?.close();
    service = next;
  }

  beforeAll(async () => {
    await deploy(steps.before);
    stack = await startApprovalStack(
      steps.before,
      undefined,
      { apiServerArgs: ['--enable-admission-plugins=NodeRestriction'] },
      async () => ({ handler: (event) => service.handler(event), close: () => service.close() }),
    );
    const leave = 'system:certificates.k8s.io:certificatesigningrequests';
    await stack.bind(`${leave}:nodeclient`, 'system:bootstrappers');
    await stack.bind(`${leave}:selfnodeclient`, 'system:nodes');
    const role = 'approve-node-server-renewal-csr';
    const resource = '--resource=certificatesigningrequests.certificates.k8s.io/selfnodeserver';
    await stack.plane.kubectl(['create', 'clusterrole', role, '--verb=create', resource]);
    await stack.bind(role, 'system:nodes');
    await stack.bootstrap('abcdef');
    await stack.relay();
    machine = await startMachine();
    kubelet = await machine.startKubelet({
      plane: stack.plane,
      nodeName,
      bootstrapToken: 'abcdef.0123456789abcdef',
      configuration: { rotateCertificates: true, serverTLSBootstrap: true },
    });
    await eventually(() => isReady(stack.plane, kubelet, nodeName), 'the node is Ready');
    await eventually(async () => (await proxiedHealth(stack.plane, nodeName)) === 'ok', 'the API server reaches it');
    probe = startProbe(() => currentLogin(kubelet), stack);
  }, 120_000);
  afterAll(async () => {
    await probe?.stop();
    await machine?.stop();
    await stack?.stop();
    rmSync(folder, { recursive: true });
  });

  const rotate = (...flags: string[]): Promise<Ran> =>
    run(
      [
        'ca',
        'rotate',
        '--data',
        data,
        '--config',
        file,
        '--name',
        'a',
        '--kubeconfig',
        stack.plane.adminKubeconfig,
        ...flags,
      ],
      { world: { now: Date.now } },
    );

  /** The state, and the exit code. It is asked twice, since nothing of the first answer is kept. */
  async function state(...flags: string[]): Promise<ShownRotation & { readonly code: number }> {
    const first = await rotate('-o', 'json', ...flags);
    expect(first.out, first.err).not.toBe('');
    const shown = JSON.parse(first.out) as ShownRotation;
    const again = JSON.parse((await rotate('-o', 'json', ...flags)).out) as ShownRotation;
    expect(again.phase).toBe(shown.phase);
    return { ...shown, code: first.code };
  }
  const consumer = ({ consumers }: ShownRotation, name: string) =>
    consumers.find((each) => each.name.includes(name))?.state;

  /** Replaces a file of trusted certificates by a rename, as an operator does. No server is restarted. */
  function trustIn(path: string, ...pems: readonly string[]): void {
    const target = join(stack.plane.dir, path);
    writeFileSync(`${target}.new`, pems.join('\n'));
    renameSync(`${target}.new`, target);
  }
  const pem = (name: string): string => readFileSync(join(data, name, 'certificate.pem'), 'utf8');
  const published = async (): Promise<string> =>
    (await stack.plane.admin.expectOk<{ data: Record<string, string> }>(authentication)).data['client-ca-file'] ?? '';
  const has = (bundle: string, name: string): boolean => bundle.includes(pem(name).split('\n')[1]!);
  const timed = async (work: Promise<unknown>): Promise<number> => {
    const started = performance.now();
    await work;
    return Math.round(performance.now() - started);
  };
  const measured: Record<string, number> = {};

  test(
    'from A to B: the node is authenticated at every moment, and afterwards nothing trusts A',
    { timeout: 700_000 },
    async () => {
      const { plane } = stack;
      const own = plane.servingCaPem;

      const alone = await state();
      expect(alone).toMatchObject({ phase: 'noSuccessor', code: 0, findings: [], old: { name: 'a', inForce: true } });
      expect(consumer(alone, '--client-ca-file')).toBe('oldOnly');
      expect(alone.certificates.holders.map(({ holder, signerName }) => [holder, signerName])).toEqual(
        expect.arrayContaining([
          [nodeName, client],
          [nodeName, serving],
        ]),
      );

      // The new CA is in force, and signs nothing.
      await deploy(steps.both);
      const untrusted = await state();
      expect(untrusted).toMatchObject({ phase: 'trust', code: 0, new: { name: 'b', inForce: true } });
      expect(consumer(untrusted, '--client-ca-file')).toBe('oldOnly');
      expect(consumer(untrusted, '--kubelet-certificate-authority')).toBe('hidden');
      // An operator who wants to switch now is warned.
      const early = join(folder, 'early.yaml');
      writeFileSync(early, steps.switched);
      const wrong = await state('--config', early);
      expect(wrong).toMatchObject({ phase: 'trust', code: 1, findings: [{ code: 'SwitchedBeforeTrusted' }] });

      trustIn('client-ca.crt', own, pem('a'), pem('b'));
      trustIn('kubelet-ca.crt', pem('a'), pem('b'));
      measured['published'] = await timed(
        eventually(async () => has(await published(), 'b'), 'the new CA is published', 90),
      );
      const trusted = await state();
      expect(trusted).toMatchObject({ phase: 'switch', code: 0, findings: [] });
      expect(consumer(trusted, '--client-ca-file')).toBe('both');

      await deploy(steps.switched);
      const oldLogin = currentLogin(kubelet)!;
      expect(issuerOf(oldLogin.certificatePem)).toBe('CN=rotating A');
      const draining = await state();
      expect(draining).toMatchObject({ phase: 'drain', code: 0, findings: [] });
      expect(draining.certificates.holders.every(({ renewed }) => !renewed)).toBe(true);

      // A command that is killed while it reads leaves nothing behind.
      const before = contentOf(data);
      await killWhileReading(data, file);
      expect(contentOf(data)).toEqual(before);
      expect(await state()).toMatchObject({ phase: 'drain', code: 0 });

      await eventually(() => issuerOf(currentLogin(kubelet)?.certificatePem) === 'CN=rotating B', 'it renewed', 150);
      const { fingerprint256 } = new X509Certificate(currentLogin(kubelet)!.certificatePem);
      await eventually(() => logins(plane, nodeUser).has(fingerprint256), 'it logs in with a certificate of B');
      await eventually(
        async () => (await presentedCertificate(machine.address, kubelet.port)).issuer === 'CN=rotating B',
        'it serves with a certificate of B',
        150,
      );
      const renewed = await state();
      expect(renewed.phase).toBe('drain');
      expect(renewed.certificates.holders.map((holder) => holder.renewed)).not.toContain(false);

      // The test does not wait for the end of the old certificates.
      for (const { serial } of renewed.certificates.holders) {
        const revoked = await run(
          ['cert', 'revoke', '--data', data, '--serial', serial, '--reason', 'superseded', '--note', 'rotation'],
          { world: { now: Date.now } },
        );
        expect(revoked.code, revoked.err).toBe(0);
      }
      await eventually(async () => (await state()).phase === 'retire', 'nothing needs the old CA', 160);

      // Removed from the file, and still trusted: not done.
      await deploy(steps.after);
      expect(await state()).toMatchObject({ phase: 'retire', code: 0, old: { configured: false }, findings: [] });
      const keptAlive = clientOf(oldLogin, stack);
      expect((await keptAlive.request(`/api/v1/nodes/${nodeName}`)).status).toBe(200);
      trustIn('client-ca.crt', own, pem('b'));
      trustIn('kubelet-ca.crt', pem('b'));
      measured['distrusted'] = await timed(
        eventually(async () => (await fresh(oldLogin, stack)) === 401, 'a certificate of A is not accepted', 90),
      );
      // Also on a connection that was open before.
      expect((await keptAlive.request(`/api/v1/nodes/${nodeName}`)).status).toBe(401);
      keptAlive.close();

      // The API server adds to its ConfigMap, and takes nothing away.
      await sleep(3_000);
      expect([has(await published(), 'a'), has(await published(), 'b')]).toEqual([true, true]);
      const kept = await state();
      expect([kept.phase, consumer(kept, '--client-ca-file')]).toEqual(['retire', 'oldOnly']);
      await plane.admin.expectOk(authentication, { method: 'DELETE' });
      measured['written anew'] = await timed(
        eventually(async () => (await plane.admin.request(authentication)).status === 200, 'it is written anew', 90),
      );
      const done = await state();
      expect(done).toMatchObject({ phase: 'done', code: 0, findings: [] });
      expect(done.consumers.filter(({ keepsOld }) => keepsOld)).toEqual([]);

      // The API server reads --kubelet-certificate-authority again at a call, five minutes after its start. Until then an open connection
      // may still serve calls, so the metric tells.
      measured['kubelet authority'] = await timed(
        eventually(
          async () => (await proxiedHealth(plane, nodeName)) === 'ok' && (await hasReloadedCa(plane)),
          'the API server takes the new CA of kubelets',
          330,
        ),
      );
      await probe.stop();
      expect(probe.wrong).toEqual([]);
      expect(probe.answers).toBeGreaterThan(100);
      expect(kubelet.process.ended()).toBeUndefined();
      expect(await isReady(plane, kubelet, nodeName)).toBe(true);
      // All that was refused is what this test tried with the old certificate.
      const refused = failures(plane, nodeUser).filter((line) => !line.startsWith(`401 get /api/v1/nodes/${nodeName}`));
      expect(refused).toEqual([]);
      console.info('milliseconds', measured);
    },
  );

  test('the kubelet reads clientCAFile again without a restart', { timeout: 150_000 }, async () => {
    const path = join(machine.dir, 'kubelet-1', 'client-ca.crt');
    const another = await createTestAuthority('another CA of the API server');
    const login = await issueLogin(another, { user: 'kube-apiserver', groups: [] });
    const status = async (): Promise<number> => {
      const url = `https://${machine.address}:${kubelet.port}`;
      const api = createApiClient({ url, caPem: pem('b'), login });
      try {
        return (await api.request('/healthz')).status;
      } finally {
        api.close();
      }
    };
    expect(await status()).toBe(401);
    writeFileSync(`${path}.new`, `${stack.plane.servingCaPem}\n${another.certificatePem}`);
    renameSync(`${path}.new`, path);
    // It knows the user now, who has no rights.
    measured['kubelet'] = await timed(eventually(async () => (await status()) === 403, 'it takes the new CA', 120));
    console.info('milliseconds', measured);
  });
});

/** Whether it has taken a changed file of CAs for its calls of others. */
async function hasReloadedCa(plane: ControlPlane): Promise<boolean> {
  const { text } = await plane.admin.request('/metrics');
  return /^rest_client_transport_ca_reload_total\{reason="updated",result="success"\} [1-9]/m.test(text);
}

function issuerOf(certificatePem: string | undefined): string | undefined {
  return certificatePem === undefined ? undefined : new X509Certificate(certificatePem).issuer;
}

/** What the kubelet logs in with now. */
function currentLogin(kubelet: Kubelet): Login | undefined {
  // While it replaces its link there may be no file for a moment.
  const both = kubelet.clientCertificate();
  const [certificatePem] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(both ?? '') ?? [];
  const [keyPem] = /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END [A-Z ]*PRIVATE KEY-----/.exec(both ?? '') ?? [];
  return certificatePem === undefined || keyPem === undefined ? undefined : { certificatePem, keyPem };
}

function clientOf(login: Login, { plane }: ApprovalStack): ApiClient {
  return createApiClient({ url: plane.url, caPem: plane.servingCaPem, login });
}

/** The status over a new connection. */
async function fresh(login: Login, stack: ApprovalStack): Promise<number> {
  const api = clientOf(login, stack);
  try {
    return (await api.request(`/api/v1/nodes/${nodeName}`)).status;
  } finally {
    api.close();
  }
}

interface Probe {
  readonly answers: number;
  readonly wrong: readonly string[];
  stop(): Promise<void>;
}

/** Logs in with the kubelet's certificate of the moment, each time over a new connection. */
function startProbe(login: () => Login | undefined, stack: ApprovalStack): Probe {
  const seen = { answers: 0, wrong: [] as string[] };
  const ended = new AbortController();
  const running = (async () => {
    while (!ended.signal.aborted) {
      const now = login();
      if (now !== undefined) {
        const status = await fresh(now, stack).catch((error: unknown) => String(error));
        seen.answers += 1;
        if (status !== 200) seen.wrong.push(`${new Date().toISOString()} ${issuerOf(now.certificatePem)} ${status}`);
      }
      await sleep(100);
    }
  })();
  return {
    get answers() {
      return seen.answers;
    },
    wrong: seen.wrong,
    async stop() {
      ended.abort();
      await running;
    },
  };
}

/** Each file of a folder with the digest of its content. */
function contentOf(path: string): Record<string, string> {
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files
      .map(({ parentPath, name }) => join(parentPath, name))
      // SQLite keeps these two while a database is open, and reading changes them.
      .filter((name) => !/-(shm|wal)$/.test(name))
      .map((name) => [name, createHash('sha256').update(readFileSync(name)).digest('hex')]),
  );
}

/** Runs the command against an API server that never answers, and kills it there. */
async function killWhileReading(data: string, config: string): Promise<void> {
  const server = createServer(() => reached());
  let reached = (): void => {};
  const asked = new Promise<void>((done) => {
    reached = done;
  });
  await new Promise<void>((done) => {
    server.listen(0, '127.0.0.1', done);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const kubeconfig = join(data, '..', 'hanging.kubeconfig');
  const cluster = { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  const context = { cluster: 'c', user: 'u' };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: {} }],
      contexts: [{ name: 'x', context }],
      'current-context': 'x',
    }),
  );
  const main = resolve(import.meta.dirname, '../../../../cli/countersign.ts');
  const args = ['ca', 'rotate', '--data', data, '--config', config, '--name', 'a', '--kubeconfig', kubeconfig];
  const command = spawn(process.execPath, [main, ...args], { stdio: 'ignore' });
  const ended = new Promise<NodeJS.Signals | null>((done) => command.once('exit', (_, signal) => done(signal)));
  expect(await Promise.race([asked.then(() => 'asked'), ended])).toBe('asked');
  command.kill('SIGKILL');
  expect(await ended).toBe('SIGKILL');
}
