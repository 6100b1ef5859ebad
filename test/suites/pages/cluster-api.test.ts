/**
 * The manifests of docs/cluster-api.md on a real API server with the CustomResourceDefinitions of Cluster API, and the script in them that
 * removes kubeadm's bindings. manifests.test.ts checks the rest of them without a server.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { installClusterApi } from '../../harness/cluster-api/definitions.ts';
import { startControlPlane, type ControlPlane } from '../../harness/kubernetes/control-plane.ts';
import { requireTools, toolPath } from '../../tools/tools.ts';
import { runKubeadmBootstrap } from '../control-plane/join/kubeadm-cluster.ts';
import { root, stepText } from './commands.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubeadm', 'kubectl', 'cluster-api');

const manifest = (name: string): string => readFileSync(join(root, `examples/cluster-api/${name}.yaml`), 'utf8');

describe.skipIf(skip)('docs/cluster-api.md', () => {
  let plane: ControlPlane;
  beforeAll(async () => {
    plane = await startControlPlane();
    await Promise.all([
      installClusterApi(plane, {
        kinds: ['MachinePool', 'AWSMachinePool', 'KubeadmConfig', 'KubeadmConfigTemplate', 'KubeadmControlPlane'],
      }),
      runKubeadmBootstrap(plane),
    ]);
    await plane.kubectl(['create', 'namespace', 'fleet']);
  }, 120_000);
  afterAll(() => plane?.stop());

  const apply = (text: string): Promise<string> =>
    plane.kubectl(['apply', '--server-side', '--validate=strict', '--filename=-'], { input: text });

  test.each([
    ['control-plane', ['kubeadmcontrolplane']],
    ['workers', ['kubeadmconfigtemplate']],
    ['machine-pool', ['machinepool', 'awsmachinepool', 'kubeadmconfig']],
  ])('%s.yaml: the API server knows each field, and keeps it', async (name, kinds) => {
    const applied = (await apply(manifest(name))).trim().split('\n');
    expect(applied.map((line) => /^(\w+)\.\S+ serverside-applied$/.exec(line)?.[1])).toEqual(kinds);
  });

  test('a field that Cluster API does not have is refused', async () => {
    const planted = manifest('workers').replace('postKubeadmCommands:', 'postKubeadmCommand:');
    await expect(apply(planted)).rejects.toThrow('postKubeadmCommand');
  });

  test('the script of the control plane removes the bindings that kubeadm made, and may run again', async () => {
    const { files } = (
      parse(manifest('control-plane')) as {
        spec: { kubeadmConfigSpec: { files: { path: string; content: string }[] } };
      }
    ).spec.kubeadmConfigSpec;
    const script = files.find(({ path }) => path.endsWith('close-approvals'))!.content;
    // docs/upgrade-nodes.md has the same command for a running cluster.
    const [, ...names] = /clusterrolebinding (\S+) (\S+)/.exec(stepText('docs/upgrade-nodes.md', 'unbind'))!;
    for (const name of names) expect(script).toContain(name);
    const bin = join(plane.dir, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'kubectl'), `#!/bin/sh\nexec ${await toolPath('kubectl')} "$@"\n`);
    chmodSync(join(bin, 'kubectl'), 0o755);
    const bindings = async (): Promise<string> => plane.kubectl(['get', 'clusterrolebindings', '--output=name']);
    const before = await bindings();
    for (const name of names) expect(before).toContain(name);
    const run = () =>
      promisify(execFile)('sh', ['-c', script.replace('/etc/kubernetes/admin.conf', plane.adminKubeconfig)], {
        env: { PATH: [bin, dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter), HOME: plane.dir },
      });
    await run();
    const after = await bindings();
    expect(before.split('\n').filter((line) => !after.includes(line)).length).toBe(names.length);
    for (const name of names) expect(after).not.toContain(name);
    await run();
    expect(await bindings()).toBe(after);
  });
});
