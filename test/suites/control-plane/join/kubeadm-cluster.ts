/** A control plane as kubeadm leaves one: its bootstrap phase run by the real kubeadm, its tokens signed by the real controller. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { joinCommand, processDependencies } from '../../../../kubelet-authenticator/join/join.ts';
import { caCertificates } from '../../../../core/kubernetes/cluster-info.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { startKubeControllerManager } from '../../../harness/kubernetes/controller-manager.ts';
import { kubernetesVersion } from '../../../tools/pins.ts';
import { toolPath } from '../../../tools/tools.ts';

export interface KubeadmCluster {
  readonly plane: ControlPlane;
  /** `127.0.0.1:<port>` */
  readonly endpoint: string;
  /** Of its CA, as kubeadm prints it. */
  readonly pin: string;
  /** Runs kubeadm against it. */
  kubeadm(args: readonly string[]): Promise<string>;
  clusterInfo(): Promise<Record<string, string>>;
  /** Resolves when cluster-info has a signature of this token, or has none any more. */
  waitForSignature(tokenId: string, present?: boolean): Promise<void>;
  stop(): Promise<void>;
}

/** `existing`: a control plane that the caller stops. */
export async function startKubeadmCluster(existing?: ControlPlane): Promise<KubeadmCluster> {
  const plane = existing ?? (await startControlPlane());
  const stopOwn = async (): Promise<void> => {
    if (existing === undefined) await plane.stop();
  };
  try {
    await runKubeadmBootstrap(plane);
    const controllers = await startKubeControllerManager({
      controlPlane: plane,
      controllers: ['bootstrapsigner', 'tokencleaner'],
    });
    const certificates = caCertificates(plane.servingCaPem);
    const clusterInfo = async () => {
      const found = await plane.admin.expectOk<{ data: Record<string, string> }>(
        '/api/v1/namespaces/kube-public/configmaps/cluster-info',
      );
      return found.data;
    };
    return {
      plane,
      endpoint: new URL(plane.url).host,
      pin: certificates.ok ? (certificates.value[0]?.pin ?? '') : '',
      kubeadm: (args) => runKubeadm(plane, args),
      clusterInfo,
      async waitForSignature(tokenId, present = true) {
        for (let attempt = 0; attempt < 300; attempt++) {
          const signature = (await clusterInfo())[`jws-kubeconfig-${tokenId}`];
          if ((signature !== undefined) === present) return;
          await sleep(100);
        }
        throw new Error(`cluster-info still has ${present ? 'no' : 'a'} signature of ${tokenId}`);
      },
      async stop() {
        await controllers.stop();
        await stopOwn();
      },
    };
  } catch (error) {
    await stopOwn();
    throw error;
  }
}

/** What `kubeadm init` and `kubeadm upgrade` do for joining: token, cluster-info, and the bindings. */
export async function runKubeadmBootstrap(plane: ControlPlane): Promise<void> {
  const path = join(plane.dir, 'kubeadm.yaml');
  writeFileSync(path, configuration);
  await runKubeadm(plane, ['init', 'phase', 'bootstrap-token', '--config', path, '--skip-token-print']);
}

async function runKubeadm(plane: ControlPlane, args: readonly string[]): Promise<string> {
  const call = promisify(execFile)(await toolPath('kubeadm'), [...args, '--kubeconfig', plane.adminKubeconfig], {
    timeout: 60_000,
  });
  return (await call).stdout;
}

export const firstToken = 'abcdef.0123456789abcdef';

const configuration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
  - token: ${firstToken}
    ttl: 1h
    usages: [signing, authentication]
    groups: [system:bootstrappers:kubeadm:default-node-token]
nodeRegistration: { criSocket: 'unix:///none' }
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v${kubernetesVersion}
`;

export interface Joined {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** `--directory` of this call. */
  readonly directory: string;
}

const folders: string[] = [];

/** The command in this process, over real connections; only its patience is a test's. `directory`: one of an earlier call. */
export async function runJoin(argv: readonly string[], directory = nodeFolder()): Promise<Joined> {
  const printed = { out: '', err: '' };
  const real = processDependencies();
  const err = (text: string) => void (printed.err += text);
  const code = await joinCommand(['--directory', directory, ...argv], {
    ...real,
    out: (text) => void (printed.out += text),
    err,
    log: (line) => err(`${line}\n`),
    hostname: () => 'Worker-1',
    program: '/usr/local/bin/kubelet-authenticator',
    patience: { reachMilliseconds: 2_000, signatureMilliseconds: 1_000, intervalMilliseconds: 100 },
  });
  return { code, ...printed, directory };
}

export function nodeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-node-'));
  folders.push(folder);
  return folder;
}

export function removeNodeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}
