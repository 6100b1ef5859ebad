/** The benchmark's side of fake-aws-server.ts, and what a cluster whose machines prove themselves is configured with. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProcess, temporaryFolder, waitUntilReady } from '../test/harness/processes.ts';
import type { RunningProcess } from '../test/harness/processes.ts';
import type { NodeRequest } from './requests.ts';

/** What a deployment needs to know of it. */
export interface FakeAwsFacts {
  readonly ordersUrl: string;
  readonly account: string;
  readonly region: string;
  /** For whoever asks about machines: where, and as whom. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface EvidenceOrder {
  readonly names: readonly string[];
  readonly cluster: string;
  readonly signerName: string;
}

export interface FakeAws extends FakeAwsFacts {
  readonly process: RunningProcess;
  /** What the agents of these machines send, proofs good for five minutes. */
  evidence(order: EvidenceOrder): Promise<readonly NodeRequest[]>;
  stop(): Promise<void>;
}

/** Not one of Kubernetes' own: kube-controller-manager would have nothing against issuing for those unproved. */
export const attestedSigner = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';

export async function startFakeAws(): Promise<FakeAws> {
  const folder = temporaryFolder('bench-aws');
  const file = join(folder.path, 'facts.json');
  const server = startProcess({
    name: 'fake AWS',
    command: process.execPath,
    args: [join(import.meta.dirname, 'fake-aws-server.ts'), file],
    logPath: join(folder.path, 'log'),
  });
  const stop = async (): Promise<void> => {
    await server.stop();
    folder.remove();
  };
  const read = (): FakeAwsFacts => JSON.parse(readFileSync(file, 'utf8')) as FakeAwsFacts;
  try {
    await waitUntilReady(server, () => read().ordersUrl !== '');
    const facts = read();
    return {
      ...facts,
      process: server,
      async evidence(order) {
        const answer = await fetch(facts.ordersUrl, { method: 'POST', body: JSON.stringify(order) });
        return (await answer.json()) as readonly NodeRequest[];
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Lines of a cluster in countersign.yaml: its machines are instances of that AWS, called by their tag. */
export function attestationOf(facts: FakeAwsFacts, cluster: string): string {
  const { account, region } = facts;
  return `    attestation:
      audience: ${account}/${region}/${cluster}
      aws:
        accounts: { '${account}': {} }
        regions: [${region}]
        tags: { kubernetes.io/cluster/${cluster}: owned }
        nodeName: ['tag:Name']
`;
}
