/** The client of fake-aws-server.ts, and the configuration of a cluster that demands evidence from these machines. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProcess, temporaryFolder, waitUntilReady } from '../../test/harness/processes/processes.ts';
import type { RunningProcess } from '../../test/harness/processes/processes.ts';
import type { NodeRequest } from '../requests/requests.ts';

/** What a deployment needs to know about this AWS. */
export interface FakeAwsFacts {
  readonly evidenceUrl: string;
  readonly account: string;
  readonly region: string;
  /** Endpoints and credentials for the attest function. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface EvidenceSpec {
  readonly names: readonly string[];
  readonly cluster: string;
  readonly signerName: string;
}

export interface FakeAws extends FakeAwsFacts {
  readonly process: RunningProcess;
  /** Requests with evidence as the authenticators on these machines make it; it expires after five minutes. */
  evidence(spec: EvidenceSpec): Promise<readonly NodeRequest[]>;
  stop(): Promise<void>;
}

/** Not a signer of kube-controller-manager, which would sign without attestation. */
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
    await waitUntilReady(server, () => read().evidenceUrl !== '');
    const facts = read();
    return {
      ...facts,
      process: server,
      async evidence(spec) {
        const answer = await fetch(facts.evidenceUrl, { method: 'POST', body: JSON.stringify(spec) });
        return (await answer.json()) as readonly NodeRequest[];
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Lines of a cluster in countersign.yaml: its machines are instances of this AWS, and a tag gives their node name. */
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
