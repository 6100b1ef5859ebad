/**
 * docs/kind.md on a real API server. As in a cluster of kind, the signers of kube-controller-manager are on: they leave requests for
 * another signer alone.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startControlPlane, type ControlPlane } from '../../harness/kubernetes/control-plane.ts';
import { startKubeControllerManager } from '../../harness/kubernetes/controller-manager.ts';
import { freePort, temporaryFolder, waitUntilReady, type RunningProcess } from '../../harness/processes/processes.ts';
import { createTestAuthority } from '../../harness/x509/test-certificates.ts';
import { requireTools } from '../../tools/tools.ts';
import { createOperator, readPageAloud, root } from './commands.ts';
import type { Operator, Reader } from './commands.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl');

/** What this suite does not execute, and why. */
const cannot = {
  create: 'kind needs a container engine; the suite has an API server of its own',
  delete: 'likewise',
};

describe.skipIf(skip)('docs/kind.md', () => {
  const folder = temporaryFolder('kind-page');
  const operatorFolder = join(folder.path, 'operator');
  let plane: ControlPlane;
  let controllers: RunningProcess | undefined;
  let server: RunningProcess | undefined;
  let operator: Operator;
  let page: Reader;
  let endpoint: string;

  beforeAll(async () => {
    mkdirSync(operatorFolder);
    const clusterCa = await createTestAuthority('cluster CA');
    plane = await startControlPlane();
    controllers = await startKubeControllerManager({
      controlPlane: plane,
      controllers: ['csrsigning', 'csrapproving'],
      signingCertPem: clusterCa.certificatePem,
      signingKeyPem: clusterCa.keyPem,
    });
    const kubeconfig = join(folder.path, 'kubeconfig');
    writeFileSync(kubeconfig, readFileSync(plane.adminKubeconfig));
    operator = await createOperator({
      folder: operatorFolder,
      environment: {
        KUBECONFIG: kubeconfig,
        npm_config_prefix: join(operatorFolder, 'global'),
        npm_config_offline: 'true',
      },
      programs: ['kubectl'],
    });
    page = readPageAloud('docs/kind.md', operator, cannot);
    endpoint = String(await freePort());
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
    await controllers?.stop();
    await plane?.stop();
    folder.remove();
  });

  test('1. the installed package is the one that runs', async () => {
    const printed = await page.run('install', { './dist': join(root, 'dist') });
    const installed = join(operatorFolder, 'global/bin/countersign');
    expect(existsSync(installed)).toBe(true);
    const onPath = join(operatorFolder, '.bin/countersign');
    rmSync(onPath);
    symlinkSync(installed, onPath);
    expect(await operator.execute('readlink -f "$(command -v countersign)"')).toContain(
      '/node_modules/countersign/bin/',
    );
    expect(printed).toContain((await operator.execute('countersign version')).split(',')[0]);
  });

  test('3. and 4. rules, signing side and relay', async () => {
    expect(await page.run('rules')).toMatch(/kind +k8s\.example\.com\/web +web +manual/);
    server = page.start('dev', { 8443: endpoint });
    await waitUntilReady(server, () => server?.logTail().includes('Stop with Ctrl-C') === true);
    expect(server.logTail(100)).toContain('user test-admin');
  });

  test('5. a certificate', async () => {
    expect(await page.run('request')).toMatch(/web +\S+ +k8s\.example\.com\/web +test-admin +<none> +Pending/);
    expect(await page.run('explain')).toContain('Not yet');
    await page.run('approve');
    const shown = await page.run('verify', { 8443: endpoint });
    expect(shown).toContain('web.crt: OK');
    expect(shown).toMatch(/issuer=CN ?= ?kind web CA/);
    expect(shown).toContain('DNS:web.shop.svc.cluster.local');
    expect(shown).toContain('TLS Web Server Authentication');
  });

  test('6. a refusal, with both reasons', async () => {
    expect(await page.run('bad-request')).toContain('condition met');
    const shown = await page.run('reasons');
    expect(shown).toContain('Approved,Failed');
    const both = /client auth.*api\.example\.com|api\.example\.com.*client auth/;
    const [condition, event] = shown.split('\n').filter((line) => both.test(line));
    expect(condition).toBeDefined();
    expect(event).toContain('Warning');
    await expect(page.run('explain-bad')).rejects.toThrow(/No: (UsageNotPermitted|SanNotPermitted)/);
  });

  test('7. clean up', async () => {
    await server?.stop();
    expect(existsSync(join(operatorFolder, 'countersign-data/kind/web/key.pem'))).toBe(true);
    await expect(fetch(`http://127.0.0.1:${endpoint}/healthz`)).rejects.toThrow();
    expect(await page.run('clean-up')).toContain('deleted');
    expect(await plane.kubectl(['get', 'csr', '-o', 'name'])).toBe('');
    expect(page.left()).toEqual([]);
  });
});
