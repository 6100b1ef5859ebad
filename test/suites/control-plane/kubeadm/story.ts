/**
 * `countersign kubeadm` with the real kubeadm, kube-apiserver and etcd: a control plane is made, joined by a second machine, renewed and
 * upgraded without any CA key. No kubelet runs the static pods: the suite starts the servers, and stands in for their pods.
 */
import { X509Certificate } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toolPath } from '../../../tools/tools.ts';
import { createMachine, createSite, curl, filesOf, startServers, writeConfiguration } from './machines.ts';
import type { Machine, Servers, Site } from './machines.ts';

/** `kubeadm --rootfs` needs it. */
const noRoot = process.getuid?.() !== 0;
const day = 86_400_000;

interface Expiration {
  readonly certificates: readonly {
    readonly name: string;
    readonly expirationDate: string;
    readonly externallyManaged: boolean;
    readonly missing: boolean;
  }[];
}

async function expiration({ kubeadm }: Machine): Promise<Expiration['certificates']> {
  const text = await kubeadm('certs', 'check-expiration', '--config', '/kubeadm.yaml', '-o', 'json');
  return (JSON.parse(text) as Expiration).certificates.filter(({ missing }) => !missing);
}

/** `kills`: how many renewals are killed, spread over its steps. */
export function describeControlPlane(
  version: 'kubeadm' | 'kubeadm-1.37',
  { skip, kills }: { readonly skip: boolean; readonly kills: number },
): void {
  describe.skipIf(skip || noRoot)(`${version} without a CA key`, () => {
    let site: Site;
    let program: string;
    let [first, second]: Machine[] = [];
    let servers: Servers | undefined;
    const pki = (path: string): string => join(first!.dir, 'pki', path);
    const start = async () => startServers(first!, site.folder, join(site.folder, 'etcd-data'));

    beforeAll(async () => {
      program = await toolPath(version);
      site = await createSite('90d');
      first = createMachine(site, program, { name: 'cp-1', address: '10.0.0.11', keys: 'ECDSA-P256' });
      second = createMachine(site, program, { name: 'cp-2', address: '10.0.0.12', keys: 'RSA-2048' });
    }, 60_000);
    afterAll(async () => {
      await servers?.stop();
      site?.remove();
    });

    test('init: its phases take what Countersign signed, and make nothing themselves', async () => {
      await first!.kubeadm('certs', 'generate-csr', '--config', '/kubeadm.yaml');
      const dry = await site.countersign('kubeadm', 'sign', '--dir', first!.dir, '--dry-run', '-o', 'json');
      expect(JSON.parse(dry)).toMatchObject({ leftOut: [{ name: 'super-admin.conf' }] });
      await site.countersign('kubeadm', 'sign', '--dir', first!.dir, '--include', 'super-admin');
      // kubeadm makes no keys for service accounts where the CA is external.
      const script = `openssl genrsa -out "$1/sa.key" 2048 && openssl rsa -in "$1/sa.key" -pubout -out "$1/sa.pub"`;
      expect(spawnSync('sh', ['-c', script, 'sh', join(first!.dir, 'pki')]).status).toBe(0);
      const before = filesOf(first!);
      const certs = await first!.kubeadm('init', 'phase', 'certs', 'all', '--config', '/kubeadm.yaml');
      for (const ca of ['ca', 'front-proxy-ca', 'etcd/ca'])
        expect(certs).toContain(`Using existing ${ca} keyless certificate authority`);
      expect(certs.match(/Using existing \S+ certificate and key on disk/g)).toHaveLength(7);
      const kubeconfigs = await first!.kubeadm('init', 'phase', 'kubeconfig', 'all', '--config', '/kubeadm.yaml');
      expect(kubeconfigs.match(/External CA mode: Using user provided/g)).toHaveLength(5);
      expect(filesOf(first!)).toEqual(before);
    }, 60_000);

    test('the API server and etcd start from it, and each login is who it should be', async () => {
      servers = await start();
      const whoami = async (name: string) => {
        const text = await servers!.kubectl(name, 'auth', 'whoami', '-o', 'json');
        return (JSON.parse(text) as { status: { userInfo: object } }).status.userInfo;
      };
      const all = 'system:authenticated';
      expect(await whoami('admin.conf')).toMatchObject({
        username: 'kubernetes-admin',
        groups: ['kubeadm:cluster-admins', all],
      });
      expect(await whoami('super-admin.conf')).toMatchObject({ groups: ['system:masters', all] });
      expect(await whoami('controller-manager.conf')).toMatchObject({ username: 'system:kube-controller-manager' });
      expect(await whoami('scheduler.conf')).toMatchObject({ username: 'system:kube-scheduler', groups: [all] });
      expect(await whoami('kubelet.conf')).toMatchObject({
        username: 'system:node:cp-1',
        groups: ['system:nodes', all],
      });
      const review = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' });
      const asProxy = (pair: string) =>
        curl(
          `${servers!.url}/apis/authentication.k8s.io/v1/selfsubjectreviews`,
          pki('ca.crt'),
          pki(pair),
          '-H',
          'X-Remote-User: jane',
          '-H',
          'content-type: application/json',
          '-d',
          review,
        );
      expect(await asProxy('front-proxy-client')).toContain('"username": "jane"');
      // Of another CA, so it is not believed.
      expect(await asProxy('apiserver-kubelet-client')).toContain('"username": "kube-apiserver-kubelet-client"');
    }, 90_000);

    test('join --control-plane: its phases take what Countersign signed for the second machine', async () => {
      // What `kubeadm init` does with super-admin.conf, for all of kubeadm's own calls.
      const [as, local] = ['super-admin.conf', `--kubeconfig=/login.conf`];
      const login = readFileSync(join(first!.dir, as), 'utf8').replace(/server: .*/, `server: ${servers!.url}`);
      for (const { root } of [first!, second!]) writeFileSync(join(root, 'login.conf'), login);
      await first!.kubeadm('init', 'phase', 'upload-config', 'all', '--config', '/kubeadm.yaml', local);
      await first!.kubeadm(
        'init',
        'phase',
        'bootstrap-token',
        '--config',
        '/kubeadm.yaml',
        '--skip-token-print',
        local,
      );

      mkdirSync(join(second!.dir, 'pki/etcd'), { recursive: true });
      for (const file of ['ca.crt', 'front-proxy-ca.crt', 'etcd/ca.crt', 'sa.key', 'sa.pub'])
        copyFileSync(pki(file), join(second!.dir, 'pki', file));
      await second!.kubeadm('certs', 'generate-csr', '--config', '/kubeadm.yaml');
      await site.countersign('kubeadm', 'sign', '--dir', second!.dir);
      for (const name of ['super-admin.conf', 'kubelet.conf'])
        for (const file of [name, `${name}.csr`]) rmSync(join(second!.dir, file));
      writeFileSync(
        join(second!.root, 'join.yaml'),
        `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
controlPlane: {localAPIEndpoint: {advertiseAddress: 10.0.0.12}}
nodeRegistration: {name: cp-2, criSocket: unix:///none}
discovery: {file: {kubeConfigPath: /login.conf}}
`,
      );
      const before = filesOf(second!);
      const phase = (name: string) =>
        second!.kubeadm('join', 'phase', 'control-plane-prepare', name, '--config', '/join.yaml');
      expect(await phase('certs')).toContain('Valid certificates and keys now exist in "/etc/kubernetes/pki"');
      expect((await phase('kubeconfig')).match(/External CA mode: Using user provided/g)).toHaveLength(3);
      expect(await phase('control-plane')).toContain('Creating static Pod manifest for "kube-apiserver"');
      expect(filesOf(second!)).toEqual(before);
      // The certificate is of this machine alone.
      const names = new X509Certificate(readFileSync(join(second!.dir, 'pki/apiserver.crt'))).subjectAltName;
      expect(names).toContain('DNS:cp-2');
      expect(names).not.toContain('10.0.0.11');
    }, 90_000);

    test('renew: new dates, EXTERNALLY MANAGED, and the servers go on with the new files', async () => {
      const before = await expiration(first!);
      expect(before.map(({ externallyManaged }) => externallyManaged)).toEqual(before.map(() => true));
      expect(before).toHaveLength(11);
      const files = filesOf(first!);
      writeConfiguration(site, '300d');
      const args = ['--kubeadm', program, '--kubeadm-config', join(first!.root, 'kubeadm.yaml')];
      const report = JSON.parse(
        await site.countersign(
          'kubeadm',
          'renew',
          '--dir',
          first!.dir,
          '--include',
          'super-admin',
          '-o',
          'json',
          ...args,
        ),
      ) as { backup: string; restart: string[]; certificates: { name: string }[] };
      expect(report.certificates).toHaveLength(11);
      expect(report.restart).toEqual(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']);

      const after = await expiration(first!);
      expect(after.map(({ name }) => name)).toEqual(before.map(({ name }) => name));
      for (const [index, { name, expirationDate, externallyManaged }] of after.entries()) {
        const gained = Date.parse(expirationDate) - Date.parse(before[index]!.expirationDate);
        expect([name, externallyManaged, Math.round(gained / day)]).toEqual([name, true, 210]);
      }
      for (const name of ['pki/apiserver.key', 'admin.conf', 'pki/etcd/peer.crt'])
        expect(readFileSync(join(report.backup, 'before', name), 'utf8')).toBe(files.get(name));
      rmSync(report.backup, { recursive: true });

      await servers?.stop();
      servers = undefined;
      servers = await start();
      expect(await servers.kubectl('super-admin.conf', 'get', '--raw', '/readyz')).toBe('ok');
      for (const name of ['admin.conf', 'controller-manager.conf', 'scheduler.conf'])
        expect(await servers.kubectl(name, 'auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}')).not.toBe(
          '',
        );
    }, 120_000);

    test('kubeadm certs renew, and the upgrade of a control plane, leave these certificates as they are', async () => {
      const before = filesOf(first!);
      const renewed = await first!.kubeadm('certs', 'renew', 'all', '--config', '/kubeadm.yaml');
      expect(renewed.match(/Detected external \S+, .* can't be renewed/g)).toHaveLength(11);
      expect(filesOf(first!)).toEqual(before);

      // What kubelet and static pods would have in the API: the upgrade looks for it.
      const pods = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd'].map((component) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: `${component}-cp-1`,
          namespace: 'kube-system',
          labels: { component, tier: 'control-plane' },
          annotations: {
            'kubernetes.io/config.hash': 'a',
            'kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint': '10.0.0.11:6443',
            'kubeadm.kubernetes.io/etcd.advertise-client-urls': servers!.etcdUrl,
          },
        },
        spec: { nodeName: 'cp-1', containers: [{ name: component, image: 'none' }] },
      }));
      const annotations = { 'kubeadm.alpha.kubernetes.io/cri-socket': 'unix:///none' };
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'cp-1', annotations } };
      const list = join(site.folder, 'objects.json');
      writeFileSync(list, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [node, ...pods] }));
      await servers!.kubectl('super-admin.conf', 'apply', '-f', list);
      const ready = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}';
      await servers!.kubectl(
        'super-admin.conf',
        '-n',
        'kube-system',
        'patch',
        'pod',
        'etcd-cp-1',
        '--subresource=status',
        '-p',
        ready,
      );
      await first!.kubeadm('init', 'phase', 'control-plane', 'all', '--config', '/kubeadm.yaml');
      const login = readFileSync(join(first!.dir, 'super-admin.conf'), 'utf8').replace(
        /server: .*/,
        `server: ${servers!.url}`,
      );
      writeFileSync(join(first!.root, 'login.conf'), login);
      const upgrade = [
        'upgrade',
        'node',
        'phase',
        'control-plane',
        '--kubeconfig',
        '/login.conf',
        '--etcd-upgrade=false',
      ];
      const upgraded = await first!.kubeadm(...upgrade, '--certificate-renewal=true');
      expect(upgraded).toContain("External CA detected, admin.conf certificate can't be renewed");
      expect(upgraded).toContain('successfully upgraded');
      expect(filesOf(first!)).toEqual(before);
    }, 120_000);

    /** SIGKILL of the real process, with the real kubeadm before it or after it. */
    test('a renewal that is killed is completed by the same command', () => {
      const original = join(site.folder, 'original');
      cpSync(second!.dir, original, { recursive: true });
      const args = ['kubeadm', 'renew', '--dir', second!.dir, '--data', site.data, '--config', site.config];
      const config = ['--kubeadm', program, '--kubeadm-config', join(second!.root, 'kubeadm.yaml'), '-o', 'json'];
      const renew = (at: number) =>
        spawnSync(process.execPath, [join(import.meta.dirname, 'killed-renewal.ts'), String(at), ...args, ...config], {
          encoding: 'utf8',
        });
      const whole = renew(0);
      const steps = Number(/steps: (\d+)/.exec(whole.stderr)?.[1]);
      expect([whole.status, steps > 100]).toEqual([0, true]);
      for (let point = 0; point < kills; point += 1) {
        rmSync(second!.dir, { recursive: true });
        cpSync(original, second!.dir, { recursive: true });
        const at = 3 + Math.floor(((steps - 3) * point) / (kills - 1));
        expect([at, renew(at).signal]).toEqual([at, 'SIGKILL']);
        const done = readdirSync(second!.dir).some((name) => name.startsWith('countersign-backup'));
        if (!done) expect([at, renew(0).status]).toEqual([at, 0]);
        const [backup, ...others] = readdirSync(second!.dir).filter((name) => name.startsWith('countersign'));
        expect([at, others]).toEqual([at, []]);
        for (const name of ['apiserver', 'etcd/server', 'front-proxy-client']) {
          const read = (folder: string, ending: string) =>
            readFileSync(join(folder, 'pki', `${name}.${ending}`), 'utf8');
          expect(read(join(second!.dir, backup!, 'before'), 'key')).toBe(read(original, 'key'));
          expect(read(second!.dir, 'key')).not.toBe(read(original, 'key'));
          const modulus = (kind: string, ending: string) =>
            spawnSync('openssl', [kind, '-noout', '-modulus', '-in', join(second!.dir, 'pki', `${name}.${ending}`)], {
              encoding: 'utf8',
            }).stdout;
          expect([at, name, modulus('x509', 'crt')]).toEqual([at, name, modulus('rsa', 'key')]);
        }
      }
      expect(existsSync(join(second!.dir, 'countersign-renewal'))).toBe(false);
    }, 240_000);
  });
}
