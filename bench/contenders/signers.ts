/** The signers that are measured. Their requests are approved before their turn. */
import { basename } from 'node:path';
import { startBesideLocalStack, startOneProcess, startReference, startTwoProcesses } from './processes.ts';
import type { Contender } from './contender.ts';

export const signers: readonly Contender[] = [
  {
    name: 'countersign',
    label: 'Countersign: relay + sign server',
    start: ({ controlPlane }, options) => startTwoProcesses(controlPlane, options),
  },
  {
    name: 'one-process',
    label: 'Countersign: all in one process',
    start: ({ controlPlane }, options) => startOneProcess(controlPlane, options),
  },
  {
    name: 'localstack',
    label: 'Countersign: relay + LocalStack (an emulator)',
    start: (surroundings, options) => startBesideLocalStack(surroundings, options, 'signer'),
  },
  {
    name: 'kcm-unthrottled',
    label: 'kube-controller-manager, qps 2000',
    start: ({ controlPlane }) => startReference(controlPlane, { qps: 2_000, burst: 4_000 }),
  },
  {
    name: 'kcm-default',
    label: 'kube-controller-manager, default',
    start: ({ controlPlane }) => startReference(controlPlane, {}),
  },
];

/** Countersign of another checkout. */
export function signerOf(checkout: string): Contender {
  return {
    name: 'against',
    label: `Countersign of ${basename(checkout)}`,
    start: ({ controlPlane }, options) => startTwoProcesses(controlPlane, options, { root: checkout }),
  };
}
