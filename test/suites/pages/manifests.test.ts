/**
 * The manifests of docs/cluster-api.md, docs/talos.md and docs/kops.md, as far as components that run here can check them: kubeadm's part by the
 * real kubeadm, the scripts by a shell, the join command by kubelet-authenticator's parser, the rules by the configuration reader.
 * test/unit/dev/examples.test.ts: that all manifests have the same scripts.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import { planOf } from '../../../kubelet-authenticator/join/join-flags.ts';
import { temporaryFolder } from '../../harness/processes/processes.ts';
import { kubernetesVersion } from '../../tools/pins.ts';
import { requireTools, toolPath } from '../../tools/tools.ts';
import { root } from './commands.ts';

const { skip } = await requireTools('kubeadm');
const run = promisify(execFile);

const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const example = (name: string): string => read(`examples/cluster-api/${name}.yaml`);
const yamlOf = (page: string): string[] =>
  [...read(`docs/${page}.md`).matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text!);

interface File {
  readonly path: string;
  readonly permissions: string;
  readonly content: string;
}
interface WorkerSpec {
  readonly joinConfiguration: object;
  readonly files: File[];
  readonly preKubeadmCommands: string[];
  readonly postKubeadmCommands: string[];
}
const workers = parse(example('workers')) as { spec: { template: { spec: WorkerSpec } } };
const pool = parseAllDocuments(example('machine-pool')).map(
  (document) => document.toJS() as { kind: string; spec: unknown },
);
const controlPlane = parse(example('control-plane')) as {
  spec: {
    version: string;
    kubeadmConfigSpec: {
      clusterConfiguration: object;
      initConfiguration: { patches: { directory: string } };
      joinConfiguration: { patches: { directory: string } };
      files: File[];
      preKubeadmCommands: string[];
      postKubeadmCommands: string[];
    };
  };
};
const { joinConfiguration, files, preKubeadmCommands, postKubeadmCommands } = workers.spec.template.spec;
const ofControlPlane = controlPlane.spec.kubeadmConfigSpec;
const file = (end: string, among: readonly File[] = files): File => among.find(({ path }) => path.endsWith(end))!;

test.each([
  ['examples/cluster-api/countersign.yaml', () => example('countersign')],
  ['docs/talos.md', () => yamlOf('talos').find((text) => text.startsWith('version: 1'))!],
  ['docs/kops.md', () => yamlOf('kops').find((text) => text.startsWith('version: 1'))!],
])('the rules of %s can be deployed', (name, text) => {
  const parsed = parseConfiguration(text(), name, { toDeploy: true });
  expect(parsed.ok ? [] : parsed.problem).toEqual([]);
});

test.each(['talos', 'kops'])('every manifest of docs/%s.md is YAML', (page) => {
  expect(yamlOf(page).length).toBeGreaterThan(2);
  for (const text of yamlOf(page))
    for (const document of parseAllDocuments(text)) expect(document.errors, text).toEqual([]);
});

describe.skipIf(skip)('Cluster API', () => {
  const folder = temporaryFolder('manifests');
  afterAll(folder.remove);
  const inFolder = (name: string): string => join(folder.path, name);
  const token = 'abcdef.0123456789abcdef';
  const hash = `sha256:${'0a'.repeat(32)}`;
  const discovery = { bootstrapToken: { token, apiServerEndpoint: '10.0.0.10:6443', caCertHashes: [hash] } };

  /** kubeadm's verdict about one of its documents. */
  async function validate(kind: string, document: object): Promise<string> {
    const path = inFolder(`${kind}.yaml`);
    writeFileSync(path, stringify({ apiVersion: 'kubeadm.k8s.io/v1beta4', kind, ...document }));
    const kubeadm = await toolPath('kubeadm');
    try {
      const { stdout, stderr } = await run(kubeadm, ['config', 'validate', '--config', path]);
      return stdout + stderr;
    } catch (error) {
      return String(error);
    }
  }

  test('kubeadm accepts its parts of both manifests, and no unknown key', async () => {
    const { clusterConfiguration } = controlPlane.spec.kubeadmConfigSpec;
    expect(controlPlane.spec.version).toBe(`v${kubernetesVersion}`);
    const version = { kubernetesVersion: controlPlane.spec.version };
    expect(await validate('ClusterConfiguration', { ...version, ...clusterConfiguration })).toBe('ok\n');
    expect(await validate('JoinConfiguration', { discovery, ...joinConfiguration })).toBe('ok\n');
    expect(await validate('JoinConfiguration', { discovery, skipPhase: [] })).toContain('unknown field "skipPhase"');
  });

  test('kubeadm accepts the configuration of examples/join, and the cloud-init of its control plane has the same', async () => {
    const text = read('examples/join/kubeadm.yaml');
    const path = inFolder('plain.yaml');
    writeFileSync(path, text);
    const { stdout } = await run(await toolPath('kubeadm'), ['config', 'validate', '--config', path]);
    expect(stdout).toBe('ok\n');
    const documents = (yaml: string): unknown[] => parseAllDocuments(yaml).map((each) => each.toJS() as unknown);
    const cloudInit = parse(read('examples/join/control-plane.yaml')) as { write_files: File[]; runcmd: string[] };
    expect(documents(file('kubeadm.yaml', cloudInit.write_files).content)).toEqual(documents(text));
    expect(documents(text)).toContainEqual(expect.objectContaining({ serverTLSBootstrap: true }));
    // After kubeadm init, which creates the bindings.
    expect(cloudInit.runcmd.at(-1)).toBe(file('/countersign-close-approvals', cloudInit.write_files).path);
  });

  test('kubeadm join has the phases that are skipped', async () => {
    const { stdout } = await run(await toolPath('kubeadm'), ['join', '--help']);
    const { skipPhases } = joinConfiguration as { skipPhases: string[] };
    expect(skipPhases).toHaveLength(2);
    for (const phase of skipPhases) expect(stdout).toMatch(new RegExp(`^${phase} `, 'm'));
  });

  test('the script reads what Cluster API gives to kubeadm, joins with it, and starts the kubelet', async () => {
    // As kubeadm writes such a file, which is how Cluster API writes it too.
    await validate('JoinConfiguration', { discovery, ...joinConfiguration });
    const given = inFolder('kubeadm-join-config.yaml');
    const migrate = ['config', 'migrate', '--old-config', inFolder('JoinConfiguration.yaml'), '--new-config', given];
    await run(await toolPath('kubeadm'), migrate);
    expect(readFileSync(given, 'utf8')).toContain(token);

    const programs = inFolder('programs');
    mkdirSync(programs);
    const log = inFolder('log');
    for (const name of ['kubelet-authenticator', 'systemctl']) {
      const stub = `#!/bin/sh\nprintf '%s\\n' "$0" "$@" >> ${log}\n[ ! -e ${inFolder('run')}/token ] || cat ${inFolder('run')}/token >> ${log}\n`;
      writeFileSync(join(programs, name), stub);
      chmodSync(join(programs, name), 0o755);
    }
    const script = file('/countersign-join')
      .content.replace('/run/kubeadm/kubeadm-join-config.yaml', given)
      .replaceAll('/run/countersign', inFolder('run'));
    await run('sh', ['-c', script], { env: { PATH: `${programs}${delimiter}${process.env['PATH'] ?? ''}` } });
    const [joined = '', ...started] = readFileSync(log, 'utf8')
      .split(/^.*\/programs\/(?:kubelet-authenticator|systemctl)\n/m)
      .slice(1);
    const argv = joined.trim().split('\n');
    expect(argv.pop()).toBe(token);
    expect(argv.slice(0, 2)).toEqual(['join', '10.0.0.10:6443']);
    expect(argv[argv.indexOf('--discovery-token-ca-cert-hash') + 1]).toBe(hash);
    const world = { readText: () => token, hostname: () => 'node-1', program: '/usr/local/bin/kubelet-authenticator' };
    expect(planOf(argv.slice(1), world)).toMatchObject({ ok: true });
    expect(started.map((text) => text.trim().split('\n'))).toEqual([
      ['daemon-reload'],
      ['enable', '--now', 'kubelet-authenticator-serving'],
      ['enable', '--now', 'kubelet'],
    ]);
  });

  describe('countersign-install', () => {
    const served: string[] = [];
    const server = createServer((request, response) => {
      served.push(request.url ?? '');
      response.end('#!/bin/sh\necho installed\n');
    });
    const sum = createHash('sha256').update('#!/bin/sh\necho installed\n').digest('hex');
    beforeAll(() => new Promise<void>((done) => void server.listen(0, '127.0.0.1', done)));
    afterAll(() => void server.close());
    const install = (to: string, checksum: string) => {
      const { port } = server.address() as AddressInfo;
      const script = file('/countersign-install')
        .content.replaceAll('/usr/local/bin/kubelet-authenticator', to)
        .replaceAll(/"https:[^"$]*\/\$name"/g, `"http://127.0.0.1:${port}/$name"`)
        .replaceAll(/sum=0{64}/g, `sum=${checksum}`);
      return run('sh', ['-c', script]);
    };

    test('downloads the program of this architecture once', async () => {
      const to = inFolder('installed');
      await install(to, sum);
      expect(served).toEqual([`/kubelet-authenticator-linux-${process.arch === 'arm64' ? 'arm64' : 'x64'}`]);
      expect((await run(to)).stdout).toBe('installed\n');
      expect(statSync(to).mode & 0o777).toBe(0o755);
      await install(to, sum);
      expect(served).toHaveLength(1);
    });

    test('leaves nothing of a file with another checksum', async () => {
      const to = inFolder('changed');
      await expect(install(to, '1'.repeat(64))).rejects.toThrow('has another checksum');
      expect([to, `${to}.new`].map((path) => existsSync(path))).toEqual([false, false]);
    });
  });

  test('each command of a manifest is one of its files, which only root may run', () => {
    expect([...preKubeadmCommands, ...postKubeadmCommands]).toEqual([
      file('/countersign-install').path,
      file('/countersign-join').path,
    ]);
    const [, ...before] = ofControlPlane.preKubeadmCommands;
    const commands = [...before, ...ofControlPlane.postKubeadmCommands];
    expect(commands).toEqual(['/usr/local/sbin/countersign-install', '/usr/local/sbin/countersign-close-approvals']);
    for (const [among, paths] of [
      [files, [...preKubeadmCommands, ...postKubeadmCommands]],
      [ofControlPlane.files, commands],
    ] as const)
      for (const path of paths) expect(file(path, among).permissions, path).toBe('0700');
  });

  test('the members of a pool join as the machines of a deployment', () => {
    expect(pool.map(({ kind }) => kind)).toEqual(['MachinePool', 'AWSMachinePool', 'KubeadmConfig']);
    expect(pool[2]!.spec).toEqual(workers.spec.template.spec);
  });

  test('the stock kubelet of the control plane requests its serving certificate: kubeadm takes the patch', async () => {
    const { directory } = ofControlPlane.initConfiguration.patches;
    expect(ofControlPlane.joinConfiguration.patches.directory).toBe(directory);
    const patch = ofControlPlane.files.find(({ path }) => path.startsWith(`${directory}/`))!;
    expect(parse(patch.content)).toEqual({ serverTLSBootstrap: true });
    // kubeadm reads the target, the kind of patch and the form from the file's name.
    expect(patch.path).toBe(`${directory}/kubeletconfiguration+merge.yaml`);
    const patches = inFolder('patches');
    mkdirSync(patches);
    writeFileSync(join(patches, 'kubeletconfiguration+merge.yaml'), patch.content);
    const documents = [
      {
        kind: 'InitConfiguration',
        localAPIEndpoint: { advertiseAddress: '10.0.0.10' },
        nodeRegistration: { name: 'cp-1', criSocket: 'unix:///none' },
        patches: { directory: patches },
      },
      { kind: 'ClusterConfiguration', kubernetesVersion: controlPlane.spec.version },
    ];
    const configuration = inFolder('patched.yaml');
    writeFileSync(
      configuration,
      documents.map((each) => stringify({ apiVersion: 'kubeadm.k8s.io/v1beta4', ...each })).join('---\n'),
    );
    const dry = inFolder('dry');
    mkdirSync(dry);
    const args = ['init', 'phase', 'kubelet-start', '--dry-run', '--config', configuration];
    await run(await toolPath('kubeadm'), args, { env: { ...process.env, KUBEADM_INIT_DRYRUN_DIR: dry } });
    expect(parse(readFileSync(join(dry, 'config.yaml'), 'utf8'))).toMatchObject({ serverTLSBootstrap: true });
  });

  test('the bundle of the control plane has both CAs', async () => {
    const pki = inFolder('pki');
    mkdirSync(pki);
    for (const name of ['ca.crt', 'countersign-ca.pem']) writeFileSync(join(pki, name), `${name}\n`);
    const [command = ''] = controlPlane.spec.kubeadmConfigSpec.preKubeadmCommands;
    await run('sh', ['-c', command.replaceAll('/etc/kubernetes/pki', pki)]);
    expect(readFileSync(join(pki, 'client-ca-bundle.crt'), 'utf8')).toBe('ca.crt\ncountersign-ca.pem\n');
    const extra = JSON.stringify(controlPlane.spec.kubeadmConfigSpec.clusterConfiguration);
    expect(extra).toContain('/etc/kubernetes/pki/client-ca-bundle.crt');
  });
});
