/**
 * docs/eks.md on a real API server, without AWS: the chart is installed, and the relay runs as a process with the account that the
 * chart made. No node starts the workload's pod: its sidecar's script runs as a process with the environment of the Deployment and
 * with a token of its service account.
 */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startControlPlane, type ControlPlane } from '../../harness/kubernetes/control-plane.ts';
import { isAllowed, untilGranted } from '../../harness/kubernetes/rights.ts';
import { freePort, temporaryFolder, waitUntilReady, type RunningProcess } from '../../harness/processes/processes.ts';
import { startRelay, writeTokenKubeconfig, type Relay } from '../../harness/stack/stack.ts';
import { makeRequest } from '../../harness/x509/requests.ts';
import { requireTools } from '../../tools/tools.ts';
import { createOperator, readPage, readPageAloud, root } from './commands.ts';
import type { Operator, Reader } from './commands.ts';
import { relayKubeconfig } from './deploy-page.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm');

/** What this suite does not execute, and why. */
const cannot = {
  'pod-identity-role': 'AWS; the suite gives the relay a login to the API server, and its endpoint checks no caller',
  association: 'AWS: no emulator has Pod Identity',
};

const signerName = 'k8s.example.com/web';

interface Container {
  readonly command: readonly string[];
  readonly env: readonly { name: string; value: string }[];
}
interface Pod {
  readonly metadata: object;
  readonly spec: { readonly initContainers: readonly [Container] };
}

describe.skipIf(skip)('docs/eks.md', () => {
  const folder = temporaryFolder('eks-page');
  const [operatorFolder, tls] = ['operator', 'tls'].map((name) => join(folder.path, name)) as [string, string];
  const file = join(tls, 'tls.pem');
  let plane: ControlPlane;
  let server: RunningProcess | undefined;
  let relay: Relay | undefined;
  let sidecar: RunningProcess | undefined;
  let endpoint: string;
  let operator: Operator;
  let page: Reader;
  let workloadKubeconfig: string;

  const json = async <T>(...args: readonly string[]): Promise<T> =>
    JSON.parse(await plane.kubectl([...args, '-o', 'json'])) as T;
  const certificate = (): X509Certificate => new X509Certificate(readFileSync(file));
  const asWorkload = (args: readonly string[], input?: string): Promise<string> =>
    plane.kubectl(args, { kubeconfig: workloadKubeconfig, ...(input === undefined ? {} : { input }) });

  async function connectRelay(): Promise<void> {
    relay = await startRelay({
      kubeconfig: await relayKubeconfig(plane),
      endpoint,
      cluster: 'shop',
      args: ['--config', join(operatorFolder, 'countersign.yaml')],
    });
  }

  /** The command of the sidecar, in the folder of this suite; `change`: of its environment. */
  async function startSidecar(change: Readonly<Record<string, string>> = {}): Promise<RunningProcess> {
    const { spec } = await json<{ spec: { template: Pod } }>('get', 'deployment', 'web', '-n', 'shop');
    const [{ command, env }] = spec.template.spec.initContainers;
    const { data } = await json<{ data: Record<string, string> }>('get', 'configmap', 'certificate', '-n', 'shop');
    expect(command).toEqual(['sh', '/scripts/certificate.sh']);
    const script = join(folder.path, 'certificate.sh');
    writeFileSync(script, data['certificate.sh'] ?? '');
    const given = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    expect(given['OUT']).toBe('/tls/tls.pem');
    const variables = Object.entries({ ...given, OUT: file, KUBECONFIG: workloadKubeconfig, ...change });
    const words = variables.map(([name, value]) => `${name}='${value}'`).join(' ');
    sidecar = operator.start('sidecar', `env ${words} sh ${script}`);
    return sidecar;
  }

  async function stopSidecar(): Promise<void> {
    await sidecar?.stop();
    sidecar = undefined;
  }

  beforeAll(async () => {
    mkdirSync(operatorFolder);
    mkdirSync(tls);
    plane = await startControlPlane();
    const kubeconfig = join(folder.path, 'kubeconfig');
    writeFileSync(kubeconfig, readFileSync(plane.adminKubeconfig));
    const environment = { KUBECONFIG: kubeconfig };
    operator = await createOperator({ folder: operatorFolder, environment, programs: ['kubectl', 'helm'] });
    page = readPageAloud('docs/eks.md', operator, cannot);
    const [, configuration = ''] = /```yaml\n(version: 1\n[\s\S]*?)```/.exec(readPage('docs/eks.md')) ?? [];
    writeFileSync(join(operatorFolder, 'countersign.yaml'), configuration);
    const port = await freePort();
    endpoint = `http://127.0.0.1:${port}`;
    const serve = join(root, 'dev/serve.ts');
    server = operator.start('dev-server', `${process.execPath} ${serve} --port ${port} --config countersign.yaml`);
    await waitUntilReady(server, async () => (await fetch(`${endpoint}/v1/clusters/shop/healthz`)).ok);
  }, 120_000);
  afterAll(async () => {
    await stopSidecar();
    await relay?.stop();
    await server?.stop();
    await plane?.stop();
    folder.remove();
  });

  test('the relay has the rights that countersign.yaml needs', async () => {
    expect(await page.run('relay')).toContain('STATUS: deployed');
    const relayUser = { user: 'system:serviceaccount:countersign-system:countersign-watch-relay' };
    const signers = { group: 'certificates.k8s.io', resource: 'signers' };
    for (const verb of ['approve', 'sign']) {
      await untilGranted(plane, relayUser, { ...signers, verb, name: signerName });
      expect(await isAllowed(plane, relayUser, { ...signers, verb, name: 'k8s.example.com/workload' })).toBe(false);
    }
    await connectRelay();
  });

  test('the workload: admitted, and limited to its signer', async () => {
    expect(await page.run('workload')).toContain('deployment.apps/web created');
    const { spec } = await json<{ spec: { template: Pod } }>('get', 'deployment', 'web', '-n', 'shop');
    const { metadata, spec: pod } = spec.template;
    const whole = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, name: 'web', namespace: 'shop' },
      spec: pod,
    };
    const tried = ['create', '--dry-run=server', '-f', '-'];
    expect(await plane.kubectl(tried, { input: JSON.stringify(whole) })).toContain('pod/web created');
    await expect(
      plane.kubectl(tried, { input: JSON.stringify({ ...whole, spec: { ...pod, hostNetwork: true } }) }),
    ).rejects.toThrow(/violates PodSecurity/);

    const token = await plane.kubectl(['create', 'token', 'web', '-n', 'shop', '--duration=1h']);
    workloadKubeconfig = writeTokenKubeconfig(plane, token.trim(), join(folder.path, 'workload.kubeconfig'));
    for (const [verb, object] of [
      ['list', 'csr'],
      ['delete', 'csr'],
      ['update', 'csr/approval'],
      ['get', 'secrets'],
    ] as const)
      await expect(asWorkload(['auth', 'can-i', verb, object])).rejects.toThrow();
    const request = (name: string) =>
      JSON.stringify({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name: 'another-signer' },
        spec: { signerName: name, usages: ['client auth'], request: makeRequest().bytes.toString('base64') },
      });
    await expect(asWorkload(['create', '-f', '-'], request('kubernetes.io/kube-apiserver-client'))).rejects.toThrow(
      /may request certificates of k8s\.example\.com\/web only/,
    );
  });

  test('the sidecar gets a certificate and renews it with a new key', async () => {
    // Each certificate is due for renewal at once.
    const running = await startSidecar({ RENEW_BEFORE_SECONDS: '999999', CHECK_EVERY_SECONDS: '1' });
    await waitUntilReady(running, () => existsSync(file));
    const first = certificate();
    expect(first.subjectAltName).toBe('DNS:web.shop.svc, DNS:web.shop.svc.cluster.local');
    expect(first.checkIssued(new X509Certificate(await caPem()))).toBe(true);
    await waitUntilReady(running, () => certificate().serialNumber !== first.serialNumber);
    const [text, second] = [readFileSync(file, 'utf8'), certificate()];
    expect(second.checkPrivateKey(createPrivateKey(text))).toBe(true);
    expect(second.publicKey.equals(first.publicKey)).toBe(false);
    await stopSidecar();
    expect(running.ended()).toBe('exit code 0');
    expect(await page.run('look')).toMatch(
      /shop-web-\S+ +\S+ +k8s\.example\.com\/web +\S+:shop:web +<none> +Approved,Issued/,
    );
  });

  test('a certificate that is not due stays; the next start asks for none', async () => {
    const before = readFileSync(file);
    const requests = await plane.kubectl(['get', 'csr', '-o', 'name']);
    const running = await startSidecar({ CHECK_EVERY_SECONDS: '3' });
    const log = join(tls, '.work/log');
    writeFileSync(log, '');
    await waitUntilReady(running, () => readFileSync(log, 'utf8').includes('will not expire'));
    await stopSidecar();
    expect(readFileSync(file).equals(before)).toBe(true);
    expect(await plane.kubectl(['get', 'csr', '-o', 'name'])).toBe(requests);
  });

  test('a refused renewal ends the sidecar with the reason, and keeps the certificate', async () => {
    const before = readFileSync(file);
    const running = await startSidecar({ NAMES: 'DNS:api.shop.svc', RENEW_BEFORE_SECONDS: '999999' });
    await expect(waitUntilReady(running, () => false)).rejects.toThrow(/ended \(exit code 1\)/);
    expect(running.logTail()).toMatch(/Denied: .*api\.shop\.svc/);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test('approval by hand', async () => {
    await relay?.stop();
    const before = certificate().serialNumber;
    const running = await startSidecar({ RENEW_BEFORE_SECONDS: '999999' });
    await waitUntilReady(running, async () => (await pending()) === 1);
    expect(await page.run('by-hand')).toMatch(/shop-web-/);
    expect(await pending()).toBe(0);
    await connectRelay();
    await waitUntilReady(running, () => certificate().serialNumber !== before);
    expect(page.left()).toEqual([]);
  });

  async function pending(): Promise<number> {
    const { items } = await json<{ items: { status: { conditions?: unknown } }[] }>('get', 'csr');
    return items.filter(({ status }) => status.conditions === undefined).length;
  }

  async function caPem(): Promise<string> {
    return (await fetch(`${endpoint}/v1/clusters/shop/trust-bundle/web`)).text();
  }
});
