/**
 * Runs on an instance: kubelet-authenticator's own code asks the metadata service, makes evidence and the request, and the
 * instance's console takes the place of the API server. Each round has fresh evidence, for the same key.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectImds } from '../../adapters/aws/imds.ts';
import { signIdentityProof } from '../../adapters/aws/sigv4-identity.ts';
import { awsProvider } from '../../kubelet-authenticator/providers/aws.ts';
import { clientUsages, makeRequest, newKey } from '../../kubelet-authenticator/request/request.ts';
import { toLines } from './console-lines.ts';

export interface MachineTask {
  readonly run: string;
  readonly nodeName: string;
  readonly clusterName: string;
  readonly audience: string;
  readonly signerName: string;
  readonly rounds: number;
  readonly pauseSeconds: number;
}

export async function handler(task: MachineTask, console: string): Promise<void> {
  const { run, signerName, rounds, pauseSeconds } = task;
  const imds = connectImds({ endpoint: process.env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] });
  const provider = awsProvider(imds, signIdentityProof);
  const wanted = { signerName, usages: clientUsages, names: { dns: [], ip: [] } };
  const key = newKey('P-256');
  for (let round = 1; round <= rounds; round += 1) {
    try {
      const { text } = await makeRequest(task, wanted, key, provider, { version: 'aws/v2', now: Date.now() });
      appendFileSync(console, toLines(run, round, text));
    } catch (error) {
      appendFileSync(console, `${run}: ${error instanceof Error ? error.message : 'unknown error'}\n`);
    }
    await sleep(pauseSeconds * 1_000);
  }
}
