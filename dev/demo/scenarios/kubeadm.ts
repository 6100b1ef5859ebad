/**
 * A control plane of the real kubeadm gets its certificates without a CA key on the machine, a request that asks for more is refused, and a
 * renewal replaces keys and certificates. Command line and ca function's rules run in this process, the CAs are in a folder.
 */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { readLogin } from '../../../cli/kubeadm/kubeconfig.ts';
import { main } from '../../../cli/main.ts';
import { processIo } from '../../../cli/world.ts';
import { DemoFailure } from '../scenario.ts';
import type { DemoWorld, Scenario } from '../scenario.ts';
import type { Terminal } from '../terminal.ts';

export const kubeadmScenario: Scenario = {
  name: 'kubeadm',
  summary:
    'a control plane of kubeadm gets and renews its certificates without ca.key (needs kubeadm, of the test tools)',
  proven: 'kubeadm made keys and requests, and no CA key was on its machine',
  onRealCluster: false,
  run,
};

const configuration = JSON.stringify({
  version: 1,
  clusters: {
    demo: {
      cas: {
        kubernetes: { subject: { commonName: 'kubernetes' } },
        'front-proxy': { subject: { commonName: 'front-proxy-ca' } },
        etcd: { subject: { commonName: 'etcd-ca' } },
      },
      profiles: { 'kubernetes.io/kube-apiserver-client-kubelet': { ca: 'kubernetes' } },
      kubeadm: {
        cas: { kubernetes: 'kubernetes', frontProxy: 'front-proxy', etcd: 'etcd' },
        apiServerNames: ['10.96.0.1', 'k8s.example.com'],
        nodes: { 'cp-1': ['10.0.0.11'] },
      },
    },
  },
});

async function run({ terminal, signal }: DemoWorld): Promise<void> {
  const program = await findKubeadm(signal);
  const folder = mkdtempSync(join(tmpdir(), 'countersign-demo-'));
  try {
    const play = await prepare(folder, program, terminal, signal);
    await playSign(play);
    await playRefusal(play);
    await playRenewal(play);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Play {
  readonly terminal: Terminal;
  /** /etc/kubernetes of the machine. */
  readonly dir: string;
  readonly kubeadmConfig: string;
  readonly program: string;
  readonly countersign: (
    ...args: readonly string[]
  ) => Promise<{ readonly code: number; readonly out: string; readonly err: string }>;
  readonly kubeadm: (...args: readonly string[]) => Promise<string>;
}

async function prepare(folder: string, program: string, terminal: Terminal, signal: AbortSignal): Promise<Play> {
  const [dir, data, config, kubeadmConfig] = ['kubernetes', 'data', 'countersign.yaml', 'kubeadm.yaml'].map((name) =>
    join(folder, name),
  ) as [string, string, string, string];
  mkdirSync(dir);
  writeFileSync(config, configuration);
  const version = await call(program, ['version', '-o', 'short'], signal);
  writeFileSync(
    kubeadmConfig,
    `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.0.0.11}
nodeRegistration: {name: cp-1}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ${version.trim()}
controlPlaneEndpoint: k8s.example.com:6443
encryptionAlgorithm: ECDSA-P256
`,
  );
  const play: Play = {
    terminal,
    dir,
    kubeadmConfig,
    program,
    async countersign(...args) {
      const printed = { out: '', err: '' };
      const code = await main([...args, '--data', data, '--config', config], {
        ...processIo(),
        environment: {},
        out: (text) => void (printed.out += text),
        err: (text) => void (printed.err += text),
      });
      return { code, ...printed };
    },
    kubeadm: (...args) => call(program, args, signal),
  };
  terminal.heading('The signing side');
  for (const ca of ['kubernetes', 'front-proxy', 'etcd']) {
    const made = await play.countersign('ca', 'init', '--name', ca);
    if (made.code !== 0) throw new DemoFailure(made.err);
  }
  terminal.step('three CAs', 'kubernetes, front proxy and etcd; their keys never come to the machine');
  terminal.step('countersign.yaml', 'cp-1 may be 10.0.0.11; the API server k8s.example.com and 10.96.0.1');
  return play;
}

async function playSign(play: Play): Promise<void> {
  const { terminal, dir } = play;
  terminal.heading(`The machine cp-1`);
  await play.kubeadm(
    'certs',
    'generate-csr',
    '--kubeconfig-dir',
    dir,
    '--cert-dir',
    join(dir, 'pki'),
    '--config',
    play.kubeadmConfig,
  );
  const requests = filesIn(dir).filter((name) => name.endsWith('.csr'));
  terminal.step('kubeadm', `certs generate-csr: ${requests.length} keys and requests`);
  const signed = await play.countersign('kubeadm', 'sign', '--dir', dir, '--include', 'super-admin', '-o', 'json');
  if (signed.code !== 0) throw new DemoFailure(signed.err);
  const { certificates } = JSON.parse(signed.out) as { readonly certificates: readonly unknown[] };
  terminal.step('countersign', `kubeadm sign: ${certificates.length} certificates beside their keys`);
  const ca = new X509Certificate(readFileSync(join(dir, 'pki/ca.crt')));
  const server = new X509Certificate(readFileSync(join(dir, 'pki/apiserver.crt')));
  const admin = adminOf(dir);
  check(terminal, [
    [
      server.verify(ca.publicKey) && server.checkHost('k8s.example.com') !== undefined,
      'the API server serves as k8s.example.com',
    ],
    [
      admin.verify(ca.publicKey) && admin.subject.includes('kubeadm:cluster-admins'),
      'admin.conf logs in as kubeadm:cluster-admins',
    ],
    [filesIn(dir).every((name) => !/(^|\/|-)ca\.key$/.test(name)), 'there is no ca.key on the machine'],
  ]);
}

/** The key and request of super-admin.conf under the name of admin.conf. */
async function playRefusal(play: Play): Promise<void> {
  const { terminal, dir } = play;
  terminal.heading('A request that asks for more');
  const other = join(dir, 'other');
  await play.kubeadm(
    'certs',
    'generate-csr',
    '--kubeconfig-dir',
    other,
    '--cert-dir',
    join(other, 'pki'),
    '--config',
    play.kubeadmConfig,
  );
  for (const ending of ['', '.csr'])
    renameSync(join(other, `super-admin.conf${ending}`), join(other, `admin.conf${ending}`));
  terminal.step('admin.conf.csr', 'asks for O=system:masters');
  const { code, err } = await play.countersign('kubeadm', 'sign', '--dir', other);
  terminal.step('countersign', err.split('\n')[0]?.replace('countersign: ', '').slice(0, 100) ?? '');
  check(terminal, [
    [code === 1 && err.includes('admin.conf: SubjectNotPermitted'), 'it is refused'],
    [!filesIn(other).some((name) => name.endsWith('.crt')), 'and nothing else was signed'],
  ]);
  rmSync(other, { recursive: true });
}

async function playRenewal(play: Play): Promise<void> {
  const { terminal, dir } = play;
  terminal.heading('A year later');
  const [key, before] = [readFileSync(join(dir, 'pki/apiserver.key'), 'utf8'), adminOf(dir)];
  const flags = ['--dir', dir, '--kubeadm', play.program, '--kubeadm-config', play.kubeadmConfig, '-o', 'json'];
  const renewed = await play.countersign('kubeadm', 'renew', ...flags);
  if (renewed.code !== 0) throw new DemoFailure(renewed.err);
  const { certificates, backup, restart } = JSON.parse(renewed.out) as {
    readonly certificates: readonly unknown[];
    readonly backup: string;
    readonly restart: readonly string[];
  };
  terminal.step('countersign', `kubeadm renew: ${certificates.length} keys and certificates replaced`);
  terminal.step('restart', restart.join(', '));
  const after = adminOf(dir);
  check(terminal, [
    [readFileSync(join(dir, 'pki/apiserver.key'), 'utf8') !== key, 'the API server has another key'],
    [
      after.serialNumber !== before.serialNumber && after.subject === before.subject,
      'admin.conf has another certificate of the same name',
    ],
    [readFileSync(join(backup, 'before/pki/apiserver.key'), 'utf8') === key, 'the files before are in the backup'],
  ]);
}

function adminOf(dir: string): X509Certificate {
  const path = join(dir, 'admin.conf');
  return new X509Certificate(readLogin(path, readFileSync(path, 'utf8')).certificate ?? '');
}

function check(terminal: Terminal, checks: readonly (readonly [holds: boolean, what: string])[]): void {
  for (const [holds, what] of checks) terminal.check(holds, what);
  if (!checks.every(([holds]) => holds)) throw new DemoFailure('a check failed');
}

function filesIn(dir: string): readonly string[] {
  return readdirSync(dir, { recursive: true }).map(String);
}

/** On PATH, or among the test tools of this machine. */
async function findKubeadm(signal: AbortSignal): Promise<string> {
  const cache = process.env['COUNTERSIGN_TOOLS_CACHE'] ?? join(homedir(), '.cache/countersign/tools');
  const tools = existsSync(cache) ? readdirSync(cache).filter((name) => name.startsWith('kubernetes-')) : [];
  for (const program of ['kubeadm', ...tools.map((name) => join(cache, name, 'kubeadm'))])
    if ((await call(program, ['version', '-o', 'short'], signal).catch(() => '')) !== '') return program;
  throw new DemoFailure(
    'this scenario needs kubeadm: node dev/run.mjs test/tools/install.ts kubeadm builds it (Go ≥ 1.26)',
  );
}

function call(program: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, [...args], { signal }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new DemoFailure(`${program} ${args.join(' ')}: ${stderr.trim() || error.message}`));
    });
  });
}
