/**
 * The whole way of a node that joins: its pending request is reviewed, approved and signed. Countersign's machines prove
 * which machine they are: each has evidence of its own, which the attest function verifies against the strict fakes of
 * STS and EC2. Beside it runs the reference's approver and signer in one process, as kube-controller-manager runs them,
 * which knows no proof.
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
    provedTo: 'bench',
    start: (surroundings, options) => startWithProof(surroundings, options),
  },
  {
    name: 'localstack',
    label: 'Countersign: relay + LocalStack (an emulator), with proof',
    provedTo: deployedCluster,
    start: (surroundings, options) => startBesideLocalStack(surroundings, options, 'approver'),
  },
  {
    name: 'countersign-unproved',
    label: 'Countersign: relay + sign server, no proof',
    start({ controlPlane }, options) {
      const configuration = written(controlPlane, configurationFor(signerName));
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

/** Countersign as another checkout has it. */
export function approverOf(checkout: string): Contender {
  return {
    name: 'against',
    label: `Countersign of ${basename(checkout)}, with proof`,
    provedTo: 'bench',
    start: (surroundings, options) => startWithProof(surroundings, options, checkout),
  };
}

function startWithProof(
  { controlPlane, aws }: Surroundings,
  options: StartOptions,
  root?: string,
): Promise<RunningContender> {
  if (aws === undefined) throw new Error('there is no AWS that knows the machines');
  const configuration = written(controlPlane, configurationFor(attestedSigner, attestationOf(aws, 'bench')));
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

function written({ dir }: ControlPlane, configuration: string): string {
  const file = join(dir, `countersign-${randomBytes(4).toString('hex')}.yaml`);
  writeFileSync(file, configuration);
  return file;
}
