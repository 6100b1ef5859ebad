/**
 * Contenders that approve and sign the pending request of a node that joins. With Countersign each machine sends its own
 * evidence, which the attest function verifies against the strict fakes of STS and EC2. The reference is
 * kube-controller-manager, with approver and signer in one process, which demands no evidence.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import { startBesideLocalStack, startReference, startTwoProcesses } from './processes.ts';
import type { Contender, RunningContender, StartOptions, Surroundings } from './contender.ts';
import { attestationOf, attestedSigner } from './fake-aws.ts';
import { deployedCluster } from './localstack.ts';
import { signerName } from '../requests/requests.ts';

export const approvers: readonly Contender[] = [
  {
    name: 'countersign',
    label: 'Countersign: relay + sign server, with proof',
    evidenceCluster: 'bench',
    start: (surroundings, options) => startWithAttestation(surroundings, options),
  },
  {
    name: 'localstack',
    label: 'Countersign: relay + LocalStack (an emulator), with proof',
    evidenceCluster: deployedCluster,
    start: (surroundings, options) => startBesideLocalStack(surroundings, options, 'approver'),
  },
  {
    name: 'countersign-unproved',
    label: 'Countersign: relay + sign server, no proof',
    start({ controlPlane }, options) {
      const configuration = writeConfiguration(controlPlane, configurationFor(signerName));
      return startTwoProcesses(controlPlane, options, { configuration });
    },
  },
  {
    name: 'kcm-unthrottled',
    label: 'kube-controller-manager, approver + signer, qps 2000, no proof',
    start: ({ controlPlane }) =>
      startReference(controlPlane, { qps: 2_000, burst: 4_000 }, ['csrapproving', 'csrsigning']),
  },
];

/** Countersign of another checkout. */
export function approverOf(checkout: string): Contender {
  return {
    name: 'against',
    label: `Countersign of ${basename(checkout)}, with proof`,
    evidenceCluster: 'bench',
    start: (surroundings, options) => startWithAttestation(surroundings, options, checkout),
  };
}

function startWithAttestation(
  { controlPlane, aws }: Surroundings,
  options: StartOptions,
  root?: string,
): Promise<RunningContender> {
  if (aws === undefined) throw new Error('the fake AWS has not been started');
  const configuration = writeConfiguration(controlPlane, configurationFor(attestedSigner, attestationOf(aws, 'bench')));
  return startTwoProcesses(controlPlane, options, { configuration, aws, ...(root === undefined ? {} : { root }) });
}

/** The configuration that `docs/watch-relay.md` recommends for nodes that join. */
function configurationFor(signer: string, attestation = ''): string {
  return `version: 1
clusters:
  bench:
    cas: { ca: { subject: { commonName: bench CA } } }
    profiles: { ${signer}: { maxTtl: 365d } }
    approval: { ${signer}: approve }
${attestation}`;
}

function writeConfiguration({ dir }: ControlPlane, configuration: string): string {
  const file = join(dir, `countersign-${randomBytes(4).toString('hex')}.yaml`);
  writeFileSync(file, configuration);
  return file;
}
