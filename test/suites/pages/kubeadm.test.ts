/**
 * docs/kubeadm.md from its first step to the last of "Roll back": the real kubeadm writes to an /etc/kubernetes of the suite's own, over a real
 * API server, etcd and controller manager. No kubelet watches the manifests: the suite restarts both servers with the flags that
 * kubeadm wrote, and starts the relay with the rights of the pod that no node starts.
 */
import { X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startControlPlane, type ControlPlane } from '../../harness/kubernetes/control-plane.ts';
import { noKubeadmPlane, withEtcKubernetes } from '../../harness/kubernetes/kubeadm-plane.ts';
import { startKubeControllerManager } from '../../harness/kubernetes/controller-manager.ts';
import { temporaryFolder, type RunningProcess } from '../../harness/processes/processes.ts';
import { startDevServer, startRelay, type DevServer, type Relay } from '../../harness/stack/stack.ts';
import { kubernetesVersion } from '../../tools/pins.ts';
import { requireTools } from '../../tools/tools.ts';
import { createOperator, editing, readPageAloud, stepText } from './commands.ts';
import type { Operator, Reader } from './commands.ts';
import { deployConfiguration, noNode, relayKubeconfig, relayValues, rollout } from './deploy-page.ts';

const { skip } = await requireTools(
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kubeadm',
  'kubectl',
  'helm',
  'aws-cli',
);

/** What this suite does not execute, and why. */
const cannot = {
  token: 'needs a profile with attestation: test/suites/control-plane/join/token.test.ts',
  harden: 'needs a relay that approves: test/suites/control-plane/join/harden.test.ts',
};

describe.skipIf(skip || noKubeadmPlane)('docs/kubeadm.md', () => {
  const folder = temporaryFolder('kubeadm-page');
  const [operatorFolder, etc] = ['operator', 'kubernetes'].map((name) => join(folder.path, name)) as [string, string];
  const inEtc = (path: string): string => readFileSync(join(etc, path), 'utf8');
  let plane: ControlPlane;
  let signer: DevServer;
  let controllers: RunningProcess | undefined;
  let relay: Relay | undefined;
  let operator: Operator;
  let page: Reader;

  /** `--name=value` in the manifest of a static pod. */
  function flagOf(component: string, name: string): string | undefined {
    const pod = parse(inEtc(`manifests/${component}.yaml`)) as { spec: { containers: { command: string[] }[] } };
    const flag = pod.spec.containers[0]!.command.find((each) => each.startsWith(`--${name}=`));
    return flag?.slice(name.length + 3);
  }

  /** As the kubelet does after kubeadm has rewritten the manifest. */
  async function restartApiServer(): Promise<void> {
    const file = flagOf('kube-apiserver', 'client-ca-file') ?? '';
    await plane.restartApiServer({ clientCaPem: inEtc(file.replace('/etc/kubernetes/', '')) });
  }

  /** Likewise: those of the controllers that matter here, if the flag in the manifest turns them on. */
  async function restartControllerManager(): Promise<readonly string[]> {
    await controllers?.stop();
    const listed = (flagOf('kube-controller-manager', 'controllers') ?? '').split(',');
    const byDefault = ['csrsigning', 'csrapproving'] as const;
    const on = (name: string): boolean =>
      !listed.includes(`-${name}`) && (listed.includes(name) || listed.includes('*'));
    const enabled = [
      ...byDefault.filter(on),
      ...(['bootstrapsigner', 'tokencleaner'] as const).filter((name) => listed.includes(name)),
    ];
    controllers = await startKubeControllerManager({
      controlPlane: plane,
      controllers: enabled,
      signingCertPem: inEtc('pki/ca.crt'),
      signingKeyPem: inEtc('pki/ca.key'),
    });
    return enabled;
  }

  /** Certificate of a new approved request, as an operator makes one by hand (docs/deploy.md, Verify). */
  async function probe(): Promise<X509Certificate> {
    await operator.execute('rm -f probe.*; kubectl delete csr countersign-probe --ignore-not-found');
    expect(await operator.execute(stepText('docs/deploy.md', 'probe'))).toContain('issuer=');
    const pem = await plane.kubectl(['get', 'csr', 'countersign-probe', '-o', 'jsonpath={.status.certificate}']);
    return new X509Certificate(Buffer.from(pem, 'base64'));
  }

  async function login(): Promise<string> {
    const asProbe = 'kubectl --client-certificate=probe.crt --client-key=probe.key auth whoami';
    return operator.execute(asProbe).catch((error: unknown) => String(error));
  }

  beforeAll(async () => {
    mkdirSync(operatorFolder);
    mkdirSync(etc);
    const kubeconfig = join(folder.path, 'admin.conf');
    operator = await createOperator({
      folder: operatorFolder,
      environment: { KUBECONFIG: kubeconfig },
      wrap: withEtcKubernetes(etc, join(folder.path, 'etc')),
    });
    page = readPageAloud('docs/kubeadm.md', operator, cannot);
    // What `kubeadm init` leaves.
    const configuration = `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v${kubernetesVersion}\n`;
    writeFileSync(join(operatorFolder, 'init.yaml'), configuration);
    await operator.execute(`kubeadm init phase certs ca --config init.yaml
      kubeadm init phase control-plane all --config init.yaml`);
    [plane, signer] = await Promise.all([startControlPlane({ clientCaPem: inEtc('pki/ca.crt') }), startDevServer()]);
    writeFileSync(kubeconfig, readFileSync(plane.adminKubeconfig));
    await operator.execute(`kubeadm init phase upload-config kubeadm --config init.yaml --kubeconfig ${kubeconfig}
      kubeadm init phase bootstrap-token --config init.yaml --kubeconfig ${kubeconfig} --skip-token-print`);
    await restartControllerManager();
    writeFileSync(join(operatorFolder, 'countersign-ca.pem'), await signer.caPem());
  }, 120_000);
  afterAll(async () => {
    await relay?.stop();
    await controllers?.stop();
    await signer?.stop();
    await plane?.stop();
    folder.remove();
  });

  test('before the first step the in-tree signer signs', async () => {
    expect((await probe()).issuer).toBe('CN=kubernetes');
  });

  test('1. trust first: the API server accepts both CAs', async () => {
    expect((await page.run('bundle')).match(/Subject:/g)).toHaveLength(2);
    const count = Number(await operator.execute(stepText('docs/kubeadm.md', 'published')));
    const typed = editing(folder.path, stepText('docs/kubeadm.md', 'cluster-configuration'));
    expect(await page.run('edit', {}, typed)).toContain('configmap/kubeadm-config edited');
    page.text('cluster-configuration');
    expect(await page.run('api-server')).toContain('readyz check passed');
    expect(flagOf('kube-apiserver', 'client-ca-file')).toBe('/etc/kubernetes/pki/client-ca-bundle.crt');
    await restartApiServer();
    expect(Number(await page.run('published'))).toBe(count + 1);
  });

  test('3. the relay, by the chart of docs/deploy.md', async () => {
    writeFileSync(join(operatorFolder, 'relay-values.yaml'), relayValues());
    const first = stepText('docs/deploy.md', 'relay').replace(rollout, noNode);
    expect(await operator.execute(first)).toContain('STATUS: deployed');
    expect(await page.run('relay', { [rollout]: noNode })).toContain('REVISION: 2');
    relay = await startRelay({ kubeconfig: await relayKubeconfig(plane), endpoint: signer.url });
  });

  test('4. the in-tree signer is off; tokens and approvals go on', async () => {
    expect(await page.run('controller-manager')).toContain('--controllers=*,bootstrapsigner,tokencleaner,-csrsigning');
    expect(await restartControllerManager()).toEqual(['csrapproving', 'bootstrapsigner', 'tokencleaner']);
  });

  test('5. verify: the certificate is of the new CA, and logs in', async () => {
    const certificate = await probe();
    expect(certificate.checkIssued(new X509Certificate(await signer.caPem()))).toBe(true);
    await operator.execute(
      `kubectl get csr countersign-probe -o jsonpath='{.status.certificate}' | base64 -d > probe.crt`,
    );
    expect(await login()).toMatch(/Username +countersign-probe@example\.com/);
    // The signer of this suite has no profile of its own; that of docs/deploy.md permits the same request.
    writeFileSync(join(operatorFolder, 'countersign.yaml'), deployConfiguration());
    await operator.execute(
      'countersign csr explain probe.csr --signer-name kubernetes.io/kube-apiserver-client \\\n' +
        "  --usages 'digital signature,client auth' --config countersign.yaml --cluster prod",
    );
    const joined = await page.run('join', {
      'openssl x509 -in /var/lib/kubelet/pki/kubelet-client-current.pem -noout -issuer':
        ': # there is no second machine',
    });
    expect(joined).toMatch(/kubeadm join \S+ --token \S+ --discovery-token-ca-cert-hash sha256:/);
  });

  test('roll back: the in-tree signer signs again, and certificates of the new CA work until its trust ends', async () => {
    const controllersBefore = [{ name: 'controllers', value: '*,bootstrapsigner,tokencleaner' }];
    const again = { controllerManager: { extraArgs: controllersBefore } };
    await operator.execute(
      'kubectl -n kube-system edit configmap kubeadm-config',
      editing(folder.path, JSON.stringify(again)),
    );
    await page.run('controller-manager-again');
    expect(await restartControllerManager()).toContain('csrsigning');
    expect(await page.run('stop-relay')).toContain('scaled');
    await relay?.stop();
    relay = undefined;
    expect(await login()).toMatch(/Username +countersign-probe@example\.com/);

    await operator.execute('cp probe.crt kept.crt; cp probe.key kept.key');
    expect((await probe()).issuer).toBe('CN=kubernetes');
    await operator.execute('cp kept.crt probe.crt; cp kept.key probe.key');

    const without = { apiServer: { extraArgs: null } };
    await operator.execute(
      'kubectl -n kube-system edit configmap kubeadm-config',
      editing(folder.path, JSON.stringify(without)),
    );
    await page.run('api-server-again');
    expect(flagOf('kube-apiserver', 'client-ca-file')).toBe('/etc/kubernetes/pki/ca.crt');
    await restartApiServer();
    expect(await login()).toContain('Unauthorized');
    expect(page.left()).toEqual([]);
  });
});
