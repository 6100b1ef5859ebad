/**
 * The manifests of docs/cluster-api.md, docs/talos.md and docs/kops.md, as far as components that run here can check them: kubeadm's part by the
 * real kubeadm, the script by a shell, the join command by kubelet-authenticator's parser, the rules by the configuration reader.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
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
const workers = parse(example('workers')) as {
  spec: { template: { spec: { joinConfiguration: object; files: File[]; postKubeadmCommands: string[] } } };
};
const controlPlane = parse(example('control-plane')) as {
  spec: {
    version: string;
    kubeadmConfigSpec: { clusterConfiguration: object; files: File[]; preKubeadmCommands: string[] };
  };
};
const { joinConfiguration, files, postKubeadmCommands } = workers.spec.template.spec;
const file = (end: string): File => files.find(({ path }) => path.endsWith(end))!;

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

  test('units and kubelet configuration are those of examples/join', () => {
    const uncommented = (text: string): string => text.replaceAll(/^#.*\n/gm, '').trim();
    expect(uncommented(file('kubelet-authenticator-serving.service').content)).toBe(
      uncommented(read('examples/join/kubelet-authenticator-serving.service')),
    );
    expect(uncommented(file('20-countersign.conf').content)).toBe(
      uncommented(read('examples/join/10-countersign.conf')),
    );
    const { write_files: written } = parse(read('examples/join/cloud-init.yaml')) as { write_files: File[] };
    expect(file('config.yaml').content).toBe(written.find(({ path }) => path.endsWith('config.yaml'))!.content);
    expect(file('/countersign-join').permissions).toBe('0700');
    expect(postKubeadmCommands).toEqual([file('/countersign-join').path]);
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
