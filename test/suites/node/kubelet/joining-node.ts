import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { placesOf } from '../../../../kubelet-authenticator/join/join-files.ts';
import type { AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { startFakeImds } from '../../../harness/fake-aws/machine/imds.ts';
import { startMachine, type Kubelet, type Machine } from '../../../harness/kubernetes/kubelet.ts';
import { startProcess, waitUntilReady, type RunningProcess } from '../../../harness/processes/processes.ts';

const root = resolve(import.meta.dirname, '../../../..');

export interface Run {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** An EC2 instance with kubelet-authenticator installed, which its metadata service tells who it is. */
export interface JoiningNode {
  readonly nodeName: string;
  readonly instanceId: string;
  readonly machine: Machine;
  /** The program as root would run it there; `join` writes into this machine's folders. */
  run(args: readonly string[]): Promise<Run>;
  /** As the kubelet would call it. */
  exec(): Promise<Run>;
  /** Starts `serving --watch`; resolves when there is something to serve with. */
  serve(): Promise<void>;
  /** With the files that `join` wrote and the flags that it named. */
  startKubelet(plane: ControlPlane): Promise<Kubelet>;
  /** What the plugin's cache holds now. */
  clientCertificate(): X509Certificate;
  stop(): Promise<void>;
}

export async function launchNode(platform: AwsPlatform, nodeName: string): Promise<JoiningNode> {
  const machine = await startMachine();
  const { instanceId } = platform.launch(nodeName, { privateIp: machine.address });
  const imds = await startFakeImds({ aws: platform.aws, instanceId });
  const environment = { AWS_EC2_METADATA_SERVICE_ENDPOINT: imds.url };
  const node = installOn(machine, nodeName, environment);
  return { ...node, instanceId, stop: async () => (await node.stop(), imds.close()) };
}

/** kubelet-authenticator on a machine. `environment`: how it reaches what proves the machine. */
export function installOn(
  machine: Machine,
  nodeName: string,
  environment: Readonly<Record<string, string>>,
): Omit<JoiningNode, 'instanceId'> {
  const [etc, cache] = [join(machine.dir, 'etc'), join(machine.dir, 'authenticator')];
  const places = placesOf(etc);
  const command = join(machine.dir, 'kubelet-authenticator');
  const program = join(root, 'kubelet-authenticator/kubelet-authenticator.ts');
  writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, { mode: 0o755 });
  // Of the test's environment only what a unit file would have: the rest the program must not need.
  const env = { PATH: process.env['PATH'] ?? '', ...environment };
  let server: RunningProcess | undefined;

  const start = (args: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<Run> =>
    new Promise((done) => {
      const options = { timeout: 120_000, env: { ...env, ...more } };
      execFile(command, args, options, (error, stdout, stderr) =>
        done({ code: error === null ? 0 : (error.code ?? null), stdout, stderr }),
      );
    });

  return {
    nodeName,
    machine,
    run: (args) => start([...args, `--directory=${etc}`, `--cache-dir=${cache}`, `--command=${command}`]),
    exec() {
      const spec = { interactive: false };
      const info = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', spec };
      return start(['exec', '--settings', places.settings], { KUBERNETES_EXEC_INFO: JSON.stringify(info) });
    },
    async serve() {
      server = startProcess({
        name: 'kubelet-authenticator serving',
        command,
        args: ['serving', '--watch', '--settings', places.settings],
        env,
        logPath: join(machine.dir, 'serving.log'),
      });
      await waitUntilReady(server, () => existsSync(join(cache, 'serving.pem')));
    },
    startKubelet: (plane) =>
      machine.startKubelet({
        plane,
        nodeName,
        kubeconfig: places.kubeconfig,
        configDir: resolve(places.dropIn, '..'),
        env,
      }),
    clientCertificate: () => new X509Certificate(readFileSync(join(cache, 'client.pem'))),
    async stop() {
      await server?.stop();
      await machine.stop();
    },
  };
}
