/** `countersign kubeadm renew`: new keys and certificates under the same names, and nothing lost wherever it is killed. */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { cpSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { thisHost } from '../../../../cli/kubeadm/host.ts';
import type { Host } from '../../../../cli/kubeadm/host.ts';
import { filesOf } from '../../../../cli/kubeadm/layout.ts';
import { readPair } from '../../../../cli/kubeadm/material.ts';
import { renew } from '../../../../cli/kubeadm/renew.ts';
import { sign } from '../../../../cli/kubeadm/sign.ts';
import { kubeadmCertificates } from '../../../../core/kubeadm/certificates.ts';
import type { KubeadmCertificate } from '../../../../core/kubeadm/certificates.ts';
import { kubeadmFile, kubeadmKeys } from '../../core/kubeadm/requests.ts';
import { generate, hostWith, machine, quietIo, read } from './control-plane.ts';
import type { Machine } from './control-plane.ts';

const made: Machine[] = [];
afterEach(() => made.splice(0).forEach(({ root }) => rmSync(root, { recursive: true })));

/** A machine with these certificates. */
async function furnished(names: readonly KubeadmCertificate[]): Promise<Machine> {
  const on = await machine();
  made.push(on);
  generate(on.folders, names);
  await sign({ ...on.flags, include: ['super-admin'] }, quietIo(), thisHost);
  for (const name of names) rmSync(filesOf(name, on.folders).csr);
  return on;
}

type Pairs = Readonly<Record<string, { readonly key: string; readonly serial: string }>>;

/** Fails unless each key fits its certificate. */
async function pairs({ folders }: Machine, names: readonly KubeadmCertificate[]): Promise<Pairs> {
  const found: [string, Pairs[string]][] = [];
  for (const name of names) {
    const { key = '', certificate = '' } = await readPair(filesOf(name, folders), thisHost);
    const parsed = new X509Certificate(certificate);
    expect([name, parsed.checkPrivateKey(createPrivateKey(key))]).toEqual([name, true]);
    found.push([name, { key, serial: parsed.serialNumber }]);
  }
  return Object.fromEntries(found);
}

const most = kubeadmCertificates.filter((name) => name !== 'kubelet.conf' && name !== 'super-admin.conf');

test('replaces keys and certificates, keeps everything else and a backup, and says what to restart', async () => {
  const on = await furnished(kubeadmCertificates);
  const before = await pairs(on, kubeadmCertificates);
  const config = read(join(on.dir, 'admin.conf'));
  const [io, host] = [quietIo(), hostWith(kubeadmCertificates)];
  await renew({ ...on.flags, kubeadmConfig: '/etc/kubeadm.yaml' }, io, host);
  const report = JSON.parse(io.printed.out) as { backup: string; restart: string[]; leftOut: { name: string }[] };

  const after = await pairs(on, kubeadmCertificates);
  for (const name of most) {
    expect([name, after[name]!.key === before[name]!.key]).toEqual([name, false]);
    expect(after[name]!.serial).not.toBe(before[name]!.serial);
  }
  // Not the kubelet's, which renews its own, and not the one that was not requested.
  for (const name of ['kubelet.conf', 'super-admin.conf']) expect(after[name]).toEqual(before[name]);
  expect(report.leftOut.map(({ name }) => name)).toEqual(['super-admin.conf']);
  expect(report.restart).toEqual(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']);

  expect(readdirSync(on.dir).filter((name) => name.startsWith('countersign'))).toEqual([
    report.backup.split('/').at(-1),
  ]);
  expect(readdirSync(report.backup)).toEqual(['before']);
  expect(read(join(report.backup, 'before/admin.conf'))).toBe(config);
  expect(statSync(join(report.backup, 'before/pki/apiserver.key')).mode & 0o777).toBe(0o600);
  expect(statSync(report.backup).mode & 0o077).toBe(0);
  const withoutLogin = (text: string) => text.replace(/client-(key|certificate)-data: \S+/g, '');
  expect(withoutLogin(read(join(on.dir, 'admin.conf')))).toBe(withoutLogin(config));

  const work = join(on.dir, 'countersign-renewal/new.draft');
  expect(host.calls).toEqual([
    [
      'certs',
      'generate-csr',
      '--kubeconfig-dir',
      work,
      '--cert-dir',
      join(work, 'pki'),
      '--config',
      '/etc/kubeadm.yaml',
    ],
  ]);
});

test('renews super-admin.conf where it is asked for, and a machine without etcd', async () => {
  const names = ['apiserver', 'super-admin.conf'] as const;
  const on = await furnished(names);
  const before = await pairs(on, names);
  const io = quietIo();
  await renew({ ...on.flags, include: ['super-admin'] }, io, hostWith(kubeadmCertificates));
  const after = await pairs(on, names);
  expect(after['super-admin.conf']).not.toEqual(before['super-admin.conf']);
  expect((JSON.parse(io.printed.out) as { restart: string[] }).restart).toEqual(['kube-apiserver']);
  expect(existsSync(join(on.dir, 'pki/etcd/server.crt'))).toBe(false);
});

test('leaves out what has no CA in the configuration, and a kubeconfig that only names files', async () => {
  const names = ['apiserver', 'etcd-peer', 'scheduler.conf'] as const;
  const on = await furnished(names);
  const before = await pairs(on, names);
  writeFileSync(on.config, kubeadmFile(kubeadmKeys.replace(', etcd: etcd}', '}')));
  const scheduler = join(on.dir, 'scheduler.conf');
  const named = read(scheduler).replace(/client-certificate-data: .*/, 'client-certificate: /var/lib/login.pem');
  writeFileSync(scheduler, named);
  const io = quietIo();
  await renew(on.flags, io, hostWith(kubeadmCertificates));
  expect(JSON.parse(io.printed.out)).toMatchObject({
    certificates: [{ name: 'apiserver', done: 'written' }],
    leftOut: [
      { name: 'scheduler.conf', why: 'its certificate is not inside it' },
      { name: 'etcd-peer', why: 'the configuration of cluster prod has no kubeadm.cas.etcd' },
    ],
    restart: ['kube-apiserver'],
  });
  expect((await pairs(on, ['etcd-peer']))['etcd-peer']).toEqual(before['etcd-peer']);
  expect(read(scheduler)).toBe(named);
});

test('changes nothing where everything is left out', async () => {
  const on = await furnished(['etcd-peer']);
  writeFileSync(on.config, kubeadmFile(kubeadmKeys.replace(', etcd: etcd}', '}')));
  const io = quietIo();
  await renew(on.flags, io, hostWith(['etcd-peer']));
  expect(JSON.parse(io.printed.out)).toMatchObject({ certificates: [], leftOut: [{ name: 'etcd-peer' }] });
  expect(readdirSync(on.dir)).toEqual(['pki']);
});

test('other names than the present ones are refused, unless they are accepted', async () => {
  const on = await furnished(['apiserver']);
  const host = hostWith(['apiserver'], (_, spec) => ({
    ...spec,
    sans: { dns: spec.sans!.dns!.filter((name) => name !== 'k8s.example.com'), ip: ['10.0.0.11'] },
  }));
  const before = await pairs(on, ['apiserver']);
  await expect(renew(on.flags, quietIo(), host)).rejects.toThrow(
    'the new certificates would have other names:\n  apiserver would lose DNS name k8s.example.com\n  apiserver would lose address 10.96.0.1',
  );
  expect(await pairs(on, ['apiserver'])).toEqual(before);
  expect(readdirSync(on.dir)).toEqual(['pki']);
  await renew({ ...on.flags, allowChangedNames: true }, quietIo(), host);
  const certificate = new X509Certificate(read(join(on.dir, 'pki/apiserver.crt')));
  expect(certificate.subjectAltName).not.toContain('k8s.example.com');
});

describe('what goes wrong before the first signature leaves nothing behind', () => {
  test.each([
    ['no kubeadm', { ...thisHost, run: async () => undefined }, 'there is no program kubeadm'],
    [
      'a kubeadm that fails',
      { ...thisHost, run: async () => ({ code: 1, output: 'unknown flag' }) },
      /failed \(1\):\nunknown flag/,
    ],
    ['requests that are missing', hostWith([]), 'kubeadm wrote no request for apiserver'],
    // The configuration has no such node: the ca function refuses.
    [
      'a refusal',
      hostWith(['apiserver'], (_, spec) => ({ ...spec, sans: { ...spec.sans, ip: ['10.6.6.6'] } })),
      /SanNotPermitted/,
    ],
  ])('%s', async (_, host, message) => {
    const on = await furnished(['apiserver']);
    await expect(renew({ ...on.flags, allowChangedNames: true }, quietIo(), host)).rejects.toThrow(message);
    expect(readdirSync(on.dir)).toEqual(['pki']);
  });

  test('a dry run', async () => {
    const on = await furnished(['apiserver']);
    const io = quietIo();
    await renew({ ...on.flags, dryRun: true }, io, hostWith(['apiserver']));
    expect(JSON.parse(io.printed.out)).toMatchObject({ certificates: [{ name: 'apiserver', done: 'permitted' }] });
    expect(readdirSync(on.dir)).toEqual(['pki']);
  });

  test('a machine without certificates', async () => {
    const on = await machine();
    made.push(on);
    await expect(renew(on.flags, quietIo(), hostWith([]))).rejects.toThrow('there is no certificate of kubeadm');
  });
});

/** Everything that changes the machine, each a step at which a process can be killed. */
const steps = ['makeFolder', 'writeNew', 'rename', 'remove', 'run'] as const;

class Killed extends Error {}

/** Dies right after the effect of step n; of a write the half is on the disk. A dead process does nothing more. */
function dyingHost(host: Host, at: number): Host & { readonly count: () => number } {
  let done = 0;
  const step = <Args extends readonly unknown[], Answer>(call: (...args: Args) => Promise<Answer>) => {
    return async (...args: Args): Promise<Answer> => {
      done += 1;
      if (done > at) throw new Killed();
      const [path, content, ...rest] = args;
      const isTorn = done === at && Buffer.isBuffer(content);
      const answer = await call(
        ...(isTorn ? ([path, content.subarray(0, content.length / 2), ...rest] as unknown as Args) : args),
      );
      if (done === at) throw new Killed();
      return answer;
    };
  };
  return {
    ...host,
    ...(Object.fromEntries(steps.map((name) => [name, step(host[name] as never)])) as Pick<
      Host,
      (typeof steps)[number]
    >),
    count: () => done,
  };
}

describe('killed at any step', () => {
  const names = ['apiserver', 'admin.conf'] as const;

  test('the same command completes it: pairs fit, the backup is what was there, nothing is left over', async () => {
    const on = await furnished(names);
    const [before, original] = [await pairs(on, names), join(on.root, 'original')];
    cpSync(on.dir, original, { recursive: true });
    const counting = dyingHost(hostWith(names), Number.POSITIVE_INFINITY);
    await renew(on.flags, quietIo(), counting);
    expect(counting.count()).toBeGreaterThan(25);

    for (let at = 1; at <= counting.count(); at += 1) {
      rmSync(on.dir, { recursive: true });
      cpSync(original, on.dir, { recursive: true });
      const where = `step ${at}`;
      await expect(renew(on.flags, quietIo(), dyingHost(hostWith(names), at)), where).rejects.toThrow(Killed);
      // Whatever is there, the last step was the last: then there is nothing to complete.
      const isDone = readdirSync(on.dir).some((name) => name.startsWith('countersign-backup'));
      if (!isDone) await renew(on.flags, quietIo(), hostWith(names));
      const after = await pairs(on, names);
      for (const name of names) expect([where, after[name]!.key === before[name]!.key]).toEqual([where, false]);
      const [backup, ...others] = readdirSync(on.dir).filter((name) => name.startsWith('countersign'));
      expect([where, others]).toEqual([where, []]);
      expect([where, backup]).toEqual([where, expect.stringContaining('backup')]);
      for (const file of ['admin.conf', 'pki/apiserver.key', 'pki/apiserver.crt'])
        expect([where, read(join(on.dir, backup!, 'before', file))]).toEqual([where, read(join(original, file))]);
      const hidden = readdirSync(on.dir, { recursive: true }).map(String);
      expect([where, hidden.filter((name) => name.endsWith('.countersign'))]).toEqual([where, []]);
    }
  }, 120_000);
});
