import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import {
  KUBE_CONTROLLER_MANAGER_USER,
  startKubeControllerManager,
} from '../../../harness/kubernetes/controller-manager.ts';
import type { RunningProcess } from '../../../harness/processes/processes.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { eventually } from '../../../harness/stack/requests.ts';
import {
  createTestAuthority,
  type KeyAndCertificate,
  type TestAuthority,
} from '../../../harness/x509/test-certificates.ts';
import { requireTools } from '../../../tools/tools.ts';

const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

interface CertificateSigningRequest {
  metadata: { name: string; resourceVersion: string };
  status: { certificate?: string };
}

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl');

describe.skipIf(skip)('a real control plane', () => {
  let plane: ControlPlane;
  let ca: TestAuthority;
  let signer: RunningProcess;

  beforeAll(async () => {
    ca = await createTestAuthority('the CA under test');
    plane = await startControlPlane({ clientCaPem: ca.certificatePem, watchCache: false });
    signer = await startKubeControllerManager({
      controlPlane: plane,
      controllers: ['csrsigning'],
      signingCertPem: ca.certificatePem,
      signingKeyPem: ca.keyPem,
      duration: '2h',
    });
  });

  afterAll(async () => {
    await signer?.stop();
    await plane?.stop();
  });

  test('is Kubernetes 1.36', async () => {
    expect(await plane.admin.expectOk('/version')).toMatchObject({ major: '1', minor: '36' });
    expect(await plane.kubectl(['version', '-o', 'json'])).toContain('"minor": "36"');
  });

  test('the reference signs what kubectl approves, and its certificate logs in', async () => {
    const { pem, key } = makeRequest({ subject: { O: 'testers', CN: 'alice' } });
    await createCsr(plane, 'alice', pem);
    await plane.kubectl(['certificate', 'approve', 'alice']);

    const certificatePem = await issuedCertificate(plane, 'alice');
    const certificate = new X509Certificate(certificatePem);
    expect(certificate.verify(new X509Certificate(ca.certificatePem).publicKey)).toBe(true);
    expect(certificate.validToDate.getTime() - Date.now()).toBeLessThanOrEqual(2 * 3_600_000);

    const review = await selfSubjectReview(plane, { certificatePem, keyPem: key.keyPem });
    expect(review).toEqual({ username: 'alice', groups: ['testers', 'system:authenticated'] });
  });

  test('a certificate of a CA that is not trusted is 401, and a user without rights 403', async () => {
    const stranger = await createTestAuthority('the CA under test'); // the same name, another key
    const forged = await plane.client(await stranger.issue({ subject: [{ CN: ['alice'] }] }));
    expect((await forged.request(CSRS)).status).toBe(401);
    const bob = await plane.client({ user: 'bob' });
    expect((await bob.request(CSRS)).status).toBe(403);
    forged.close();
    bob.close();
  });

  test('the audit log tells who did what', async () => {
    const bob = await plane.client({ user: 'audited-bob', groups: ['testers'] });
    await bob.request(`${CSRS}/some-name`);
    bob.close();
    const [event, ...others] = plane.auditEvents({ user: 'audited-bob' });
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      verb: 'get',
      stage: 'ResponseComplete',
      objectRef: { resource: 'certificatesigningrequests', name: 'some-name', apiGroup: 'certificates.k8s.io' },
      responseStatus: { code: 403 },
    });

    // The log has the refusal of the untrusted certificate above, without a user name.
    expect(plane.auditEvents().map(({ responseStatus }) => responseStatus?.code)).toContain(401);

    const bySigner = plane.auditEvents({ user: KUBE_CONTROLLER_MANAGER_USER }).map((each) => each.verb);
    expect(new Set(bySigner)).toEqual(new Set(['get', 'watch', 'update']));
  });

  test('data, kubeconfigs and the trusted CA survive a restart and a crash', async () => {
    const kubeconfig = await plane.kubeconfigFor({ user: 'root-of-tests', groups: ['system:masters'] });
    await createCsr(plane, 'kept', makeRequest({ subject: { CN: 'kept' } }).pem);
    const seeKept = () => plane.kubectl(['get', 'csr', 'kept', '-o', 'name'], { kubeconfig });
    const first = plane.apiServer.pid;
    await plane.restartApiServer();
    expect(plane.apiServer.pid).not.toBe(first);
    expect(await seeKept()).toContain('kept');

    await plane.killApiServer();
    await expect(plane.admin.request('/readyz')).rejects.toThrow('ECONNREFUSED');
    await plane.restartApiServer();
    expect(await seeKept()).toContain('kept');
  });

  test('after a compaction, old revisions are gone', async () => {
    const { metadata } = await plane.admin.expectOk<CertificateSigningRequest>(CSRS);
    await plane.compactEtcd();
    const watch = await plane.admin.request(
      `${CSRS}?watch=true&timeoutSeconds=5&resourceVersion=${metadata.resourceVersion}`,
    );
    expect(watch.text).toContain('"code":410');
  });
});

describe.skipIf(skip)('the servers of a test run', () => {
  test('are ended when it is killed', async () => {
    const harness = join(import.meta.dirname, '../../../harness/kubernetes/control-plane.ts');
    const script = `
      const { startControlPlane } = await import(${JSON.stringify(harness)});
      const plane = await startControlPlane();
      console.log(JSON.stringify({ pid: plane.apiServer.pid, dir: plane.dir }));
      setInterval(() => {}, 1_000);
    `;
    const run = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(run.stdout, 'data')) as [Buffer];
    const { pid, dir } = JSON.parse(line.toString()) as { pid: number; dir: string };
    expect(isAlive(pid)).toBe(true);
    expect(existsSync(dir)).toBe(true);

    run.kill('SIGKILL');
    await eventually(() => !isAlive(pid) && !existsSync(dir), 'nothing of it is left');
  });

  test('that cannot start show their log', async () => {
    await expect(startControlPlane({ apiServerArgs: ['--no-such-flag'] })).rejects.toThrow(
      /kube-apiserver.*no-such-flag/s,
    );
  });
});

async function createCsr(plane: ControlPlane, name: string, requestPem: string): Promise<void> {
  await plane.admin.expectOk(CSRS, {
    method: 'POST',
    body: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name },
      spec: {
        signerName: 'kubernetes.io/kube-apiserver-client',
        request: Buffer.from(requestPem).toString('base64'),
        usages: ['digital signature', 'client auth'],
      },
    },
  });
}

async function issuedCertificate(plane: ControlPlane, name: string): Promise<string> {
  let certificate: string | undefined;
  await eventually(async () => {
    const csr = await plane.admin.expectOk<CertificateSigningRequest>(`${CSRS}/${name}`);
    certificate = csr.status.certificate;
    return certificate !== undefined;
  }, `${name} is issued`);
  return Buffer.from(certificate ?? '', 'base64').toString();
}

async function selfSubjectReview(plane: ControlPlane, login: KeyAndCertificate) {
  const client = await plane.client(login);
  try {
    const kind = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const { status } = await client.expectOk<{ status: { userInfo: { username: string; groups: string[] } } }>(path, {
      method: 'POST',
      body: kind,
    });
    return { username: status.userInfo.username, groups: status.userInfo.groups };
  } finally {
    client.close();
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
