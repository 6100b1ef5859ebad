/**
 * docs/ca/migration.md from its first command to its last: a control plane that the real kubeadm made, and MiniStack for AWS, which checks
 * each permission. At each step: what was valid before is valid, and the way back leads back.
 */
import { X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DeleteImportedKeyMaterialCommand, DescribeKeyCommand, KMSClient, ListKeysCommand } from '@aws-sdk/client-kms';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  assumeRole,
  createRole,
  deployOnMiniStack,
  synthesiseClusters,
  type ClusterSettings,
  type MiniStackDeployment,
} from '../../harness/aws/ministack-deployment.ts';
import {
  noKubeadmPlane,
  loginOf,
  startKubeadmPlane,
  type KubeadmPlane,
} from '../../harness/kubernetes/kubeadm-plane.ts';
import { claimAddress } from '../../harness/kubernetes/kubelet.ts';
import { compileCache, temporaryFolder } from '../../harness/processes/processes.ts';
import {
  approve,
  certificatePemOf,
  createRequest,
  readRequest,
  settled,
  type CsrObject,
  type SignerKind,
} from '../../harness/stack/requests.ts';
import { installRelay, startRelay, type Relay } from '../../harness/stack/stack.ts';
import { httpClient } from '../../conformance/http-client.ts';
import { signAws } from '../../conformance/sigv4.ts';
import type { KeyAndCertificate } from '../../harness/x509/test-certificates.ts';
import { requireTools } from '../../tools/tools.ts';
import { createOperator, editing, readPage, readPageAloud, stepText, type Operator, type Reader } from './commands.ts';

const { skip } = await requireTools(
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kubeadm',
  'kubectl',
  'helm',
  'aws-cli',
  'ministack',
);

/** What this suite does not execute, and why. */
const cannot = {
  deploy:
    'MiniStack’s CloudFormation enables a key that awaits its material; the suite makes the same stacks through the SDK and takes the material away',
};

const path = 'docs/ca/migration.md';
const account = '000000000000';

const kinds = {
  'RSA-2048': { spec: 'RSA-2048', shown: '2048 bit' },
  'RSA-3072': { spec: 'RSA-3072', shown: '3072 bit' },
  'ECDSA-P384': { spec: 'P-384', shown: '384 bit' },
} as const;

describe.skipIf(skip || noKubeadmPlane).each(Object.keys(kinds) as (keyof typeof kinds)[])(
  `${path}, a CA with a key %s`,
  (kind) => {
    const folder = temporaryFolder('migration-page');
    const operatorFolder = join(folder.path, 'operator');
    let plane: KubeadmPlane;
    let aws: MiniStackDeployment;
    let relay: Relay | undefined;
    let operator: Operator;
    let page: Reader;
    const inEtc = (name: string): string => readFileSync(join(plane.etc, name), 'utf8');
    const logins = new Map<string, KeyAndCertificate>();

    /** The certificate for a new approved request, by whichever signer is on. */
    async function issue(name: string, signer: SignerKind = 'kube-apiserver-client-kubelet'): Promise<X509Certificate> {
      const subject =
        signer === 'kube-apiserver-client'
          ? { CN: `${name}@example.com` }
          : { O: 'system:nodes', CN: `system:node:${name}` };
      const node = plane.client(loginOf(inEtc('super-admin.conf')));
      try {
        const { made } = await createRequest(node, { name, signer, request: { subject } });
        // kube-controller-manager approves kubelets' requests.
        if (signer === 'kube-apiserver-client') await approve(plane, name);
        const certificatePem = certificatePemOf((await settled(plane, [name])).get(name)!);
        logins.set(name, { certificatePem, keyPem: made.keyPem });
        return new X509Certificate(certificatePem);
      } finally {
        node.close();
      }
    }

    /** The status of each login that was ever made, by its name. */
    async function statuses(): Promise<Readonly<Record<string, number>>> {
      const all = [
        ...['admin', 'super-admin', 'controller-manager', 'kubelet'].map(
          (name) => [name, loginOf(inEtc(`${name}.conf`))] as const,
        ),
        ...logins,
      ];
      const found = all.map(async ([name, login]) => {
        const client = plane.client(login);
        try {
          return [name, (await client.request('/api')).status] as const;
        } finally {
          client.close();
        }
      });
      return Object.fromEntries(await Promise.all(found));
    }
    const allValid = async () => Object.fromEntries(Object.keys(await statuses()).map((name) => [name, 200]));

    const isOfTheCa = (certificate: X509Certificate): boolean => {
      const ca = new X509Certificate(inEtc('pki/ca.crt'));
      return certificate.checkIssued(ca) && certificate.verify(ca.publicKey);
    };

    /** By the command's exit code and message. */
    async function refused(command: string): Promise<string> {
      return operator.execute(`${command} 2>&1 && exit 0 || echo "exit code $?"`);
    }

    /** The answer of the sign function, called as the relay does, to a request of which it does not know that it was answered. */
    async function signDirectly(name: string): Promise<{ status: number; text: string }> {
      const { client, port } = aws.emulator;
      const caller = httpClient({
        connect: { host: '127.0.0.1', port },
        authorize: signAws({ region: client.region, credentials: await aws.caller('prod') }),
      });
      try {
        const object = await readRequest(plane, name);
        const { certificate: _, ...status } = object.status;
        const answer = await caller.fetch(`${aws.outputs['prod']!['SignUrl']}/sign`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: Buffer.from(
            JSON.stringify({
              ...object,
              status,
              apiVersion: 'certificates.k8s.io/v1',
              kind: 'CertificateSigningRequest',
            }),
          ),
          signal: AbortSignal.timeout(60_000),
          redirect: 'manual',
        });
        return { status: answer.status, text: Buffer.from(await answer.arrayBuffer()).toString() };
      } finally {
        caller.close();
      }
    }

    const flagOf = (component: string, name: string): string | undefined =>
      new RegExp(`- --${name}=(.*)$`, 'm').exec(inEtc(`manifests/${component}.yaml`))?.[1];

    beforeAll(async () => {
      mkdirSync(operatorFolder);
      // kubeadm takes no address of 127.0.0.0/8.
      const address = await claimAddress();
      const [, yaml = ''] = /```yaml\n(version: 1\n[\s\S]*?)```/.exec(readPage(path)) ?? [];
      const written = yaml
        .replace('cp-1: [10.0.0.11]', `cp1: [${address}]`)
        .replaceAll('999900001111', account)
        .replace('keySpec: RSA-2048', `keySpec: ${kinds[kind].spec}`)
        .replace('arn:aws:iam::444455556666:role/prod-watch-relay', `arn:aws:iam::${account}:role/relay-prod`);
      const { clusters } = parse(written) as { clusters: Readonly<Record<string, ClusterSettings>> };
      [plane, aws] = await Promise.all([
        startKubeadmPlane(kind, address),
        deployOnMiniStack(synthesiseClusters(clusters)),
      ]);
      await awaitMaterial(aws);
      const custodian = await assumeRole(
        aws.emulator.client,
        await createRole(aws.emulator, 'ca-custodian', 'lambda:InvokeFunction'),
      );
      operator = await createOperator({
        folder: operatorFolder,
        environment: {
          ...aws.emulator.environment,
          ...compileCache(),
          AWS_REGION: aws.emulator.client.region,
          AWS_ACCESS_KEY_ID: custodian.accessKeyId,
          AWS_SECRET_ACCESS_KEY: custodian.secretAccessKey,
          AWS_SESSION_TOKEN: custodian.sessionToken,
          KUBECONFIG: '/etc/kubernetes/admin.conf',
        },
        wrap: (script) => plane.wrap(script),
      });
      page = readPageAloud(path, operator, cannot);
      // What `kubeadm init` does once the API server runs.
      await plane.kubeadm('init', 'phase', 'upload-config', 'kubeadm');
      await plane.restart('kube-controller-manager');
    }, 180_000);
    afterAll(async () => {
      await relay?.stop();
      await plane?.stop();
      await aws?.stop();
      folder.remove();
    });

    test('1. before: kube-controller-manager signs with ca.key', async () => {
      expect(isOfTheCa(await issue('old-node'))).toBe(true);
      expect(isOfTheCa(await issue('old-user', 'kube-apiserver-client'))).toBe(true);
      expect(await statuses()).toEqual(await allValid());
      const shown = await page.run('look');
      expect(shown).toMatch(/^subject=CN *= *kubernetes$/m);
      expect(shown).toContain(`Private-Key: (${kinds[kind].shown}`);
    });

    test('3. the wrong order and the wrong keys change nothing, and say what to do', async () => {
      expect(await signDirectly('old-node')).toMatchObject({ status: 503 });
      const ca = '--cluster prod --name kubernetes --cert /etc/kubernetes/pki/ca.crt';
      const early = await refused(`countersign ca import ${ca}`);
      expect(early).toMatch(/countersign ca import-key[\s\S]*exit code 3$/m);
      for (const wrong of ['sa.key', 'front-proxy-ca.key', 'etcd/ca.key'])
        expect(await refused(`countersign ca import-key ${ca} --key /etc/kubernetes/pki/${wrong}`)).toMatch(
          /WrongKey: the private key does not belong to the certificate\n.*nothing was changed\nexit code 1$/m,
        );
      const other = ca.replace('pki/ca.crt', 'pki/front-proxy-ca.crt');
      expect(await refused(`countersign ca import-key ${other} --key /etc/kubernetes/pki/front-proxy-ca.key`)).toMatch(
        /SubjectMismatch[\s\S]*exit code 1$/m,
      );
      expect(await refused('countersign ca show --cluster prod --name kubernetes')).toMatch(
        /awaits its key and its certificate[\s\S]*exit code 4$/m,
      );
    });

    test('3. the key moves; the cluster signs as before, and so does KMS', async () => {
      expect(await page.run('import-key')).toContain('the same certificate is in force');
      expect(isOfTheCa(await issue('still-in-tree'))).toBe(true);
      // The request that waited for the import is answered.
      const { status, text } = await signDirectly('old-node');
      expect(status).toBe(200);
      expect(isOfTheCa(new X509Certificate(certificatePemOf(JSON.parse(text) as CsrObject)))).toBe(true);
      expect(await statuses()).toEqual(await allValid());
    });

    test('4. the in-tree signer is off, and Countersign signs', async () => {
      const typed = editing(folder.path, stepText(path, 'cluster-configuration'));
      await page.run('edit', {}, typed);
      page.text('cluster-configuration');
      await page.run('controller-manager');
      expect(flagOf('kube-controller-manager', 'controllers')).toBe('*,bootstrapsigner,tokencleaner,-csrsigning');
      await plane.restart('kube-controller-manager');
      const { SignUrl: signUrl = '', CallerRoleArn: callerRole = '' } = aws.outputs['prod'] ?? {};
      const base = await aws.relay('prod');
      relay = await startRelay({
        kubeconfig: (await installRelay(plane)).kubeconfig(),
        endpoint: new URL(signUrl).origin,
        cluster: 'prod',
        args: ['--concurrency', '4'],
        env: {
          COUNTERSIGN_CALLER_ROLE: callerRole,
          AWS_ENDPOINT_URL_STS: aws.emulator.url,
          AWS_REGION: aws.emulator.client.region,
          AWS_ACCESS_KEY_ID: base.accessKeyId,
          AWS_SECRET_ACCESS_KEY: base.secretAccessKey,
          AWS_SESSION_TOKEN: base.sessionToken,
        },
      });
      expect(isOfTheCa(await issue('by-countersign'))).toBe(true);
      expect(isOfTheCa(await issue('user-by-countersign', 'kube-apiserver-client'))).toBe(true);
      expect(await relay.metric('requests_total', 'outcome="issued"')).toBe(2);
      expect(await statuses()).toEqual(await allValid());
    });

    test('5. ca.key is gone: kubeadm calls the CA externally managed, and its own checks pass', async () => {
      expect(managed(await page.run('remove'))).toEqual({
        ca: 'yes',
        'admin.conf': 'yes',
        apiserver: 'yes',
        'etcd-ca': 'no',
      });
      expect(() => inEtc('pki/ca.key')).toThrow('ENOENT');
      expect(flagOf('kube-controller-manager', 'cluster-signing-key-file')).toBe('');
      await plane.restart('kube-controller-manager');
      // What an upgrade runs: kubeadm verifies each certificate against ca.crt, and makes none.
      const before = ['apiserver', 'apiserver-kubelet-client'].map((name) => inEtc(`pki/${name}.crt`));
      expect(await plane.kubeadm('init', 'phase', 'certs', 'all')).toContain(
        'Using existing ca keyless certificate authority',
      );
      await plane.kubeadm('init', 'phase', 'kubeconfig', 'all');
      await plane.kubeadm('init', 'phase', 'control-plane', 'all');
      expect(['apiserver', 'apiserver-kubelet-client'].map((name) => inEtc(`pki/${name}.crt`))).toEqual(before);
      await plane.restart('kube-apiserver');
      expect(isOfTheCa(await issue('without-ca-key'))).toBe(true);
      expect(await statuses()).toEqual(await allValid());
    });

    test('a controller manager with the old manifest ends where ca.key is missing', async () => {
      const manifest = join(plane.etc, 'manifests/kube-controller-manager.yaml');
      const now = inEtc('manifests/kube-controller-manager.yaml');
      writeFileSync(
        manifest,
        now
          .replace(',-csrsigning', '')
          .replace('--cluster-signing-key-file=', '--cluster-signing-key-file=/etc/kubernetes/pki/ca.key')
          .replace('--cluster-signing-cert-file=', '--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt'),
      );
      await expect(plane.restart('kube-controller-manager')).rejects.toThrow(/ended[\s\S]*ca\.key/);
      writeFileSync(manifest, now);
      await plane.restart('kube-controller-manager');
    });

    test('6. the certificates of the control plane are renewed without ca.key, and so is the API server’s', async () => {
      const ofCa = ['apiserver.crt', 'apiserver-kubelet-client.crt'];
      const before = ofCa.map((name) => inEtc(`pki/${name}`));
      const old = loginOf(inEtc('admin.conf'));
      const renewed = await page.run('renew', { 'kubeadm.yaml': plane.kubeadmConfiguration });
      expect(renewed).toContain('kube-apiserver');
      for (const [index, name] of ofCa.entries()) {
        expect(inEtc(`pki/${name}`)).not.toBe(before[index]);
        expect(isOfTheCa(new X509Certificate(inEtc(`pki/${name}`)))).toBe(true);
      }
      expect(loginOf(inEtc('admin.conf')).certificatePem).not.toBe(old.certificatePem);
      logins.set('admin.conf before its renewal', old);
      await plane.restart('kube-apiserver');
      await plane.restart('kube-controller-manager');
      expect(await plane.kubeadm('init', 'phase', 'certs', 'all')).toContain('Using existing apiserver certificate');
      expect(managed(await plane.kubeadm('certs', 'check-expiration'))).toMatchObject({ ca: 'yes', apiserver: 'yes' });
      expect(isOfTheCa(await issue('after-renewal'))).toBe(true);
      expect(await statuses()).toEqual(await allValid());
    });

    test('the way back: the file is put back, and kube-controller-manager signs again', async () => {
      await relay?.stop();
      relay = undefined;
      expect(managed(await page.run('put-back'))).toMatchObject({ ca: 'no', 'admin.conf': 'no', apiserver: 'no' });
      const again = {
        controllerManager: { extraArgs: [{ name: 'controllers', value: '*,bootstrapsigner,tokencleaner' }] },
      };
      await operator.execute(
        'kubectl -n kube-system edit configmap kubeadm-config',
        editing(folder.path, JSON.stringify(again)),
      );
      await operator.execute(
        `kubectl -n kube-system get configmap kubeadm-config -o jsonpath='{.data.ClusterConfiguration}' > cluster.yaml
       kubeadm init phase control-plane controller-manager --config cluster.yaml`,
      );
      expect(flagOf('kube-controller-manager', 'cluster-signing-key-file')).toBe('/etc/kubernetes/pki/ca.key');
      await plane.restart('kube-controller-manager');
      expect(isOfTheCa(await issue('in-tree-again'))).toBe(true);
      expect(await statuses()).toEqual(await allValid());
      rmSync(join(operatorFolder, 'offline'), { recursive: true });
      expect(page.left()).toEqual([]);
    });
  },
);

/** MiniStack's CloudFormation enables a key of origin EXTERNAL although it has no material. AWS leaves it as this call does. */
async function awaitMaterial({ emulator }: MiniStackDeployment): Promise<void> {
  const kms = new KMSClient(emulator.client);
  try {
    for (const { KeyId } of (await kms.send(new ListKeysCommand({}))).Keys ?? []) {
      const { KeyMetadata: about } = await kms.send(new DescribeKeyCommand({ KeyId }));
      if (about?.Origin === 'EXTERNAL') await kms.send(new DeleteImportedKeyMaterialCommand({ KeyId }));
    }
  } finally {
    kms.destroy();
  }
}

/** The last column of `kubeadm certs check-expiration`, for four of its rows. */
function managed(table: string): Readonly<Record<string, string | undefined>> {
  const last = (name: string): string | undefined => new RegExp(`^${name} .* (yes|no) *$`, 'm').exec(table)?.[1];
  return Object.fromEntries(['ca', 'admin.conf', 'apiserver', 'etcd-ca'].map((name) => [name, last(name)]));
}
