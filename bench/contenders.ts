/** Who is measured. */
import { startBesideLocalStack, startOneProcess, startReference, startTwoProcesses } from './contender-processes.ts';
import type { RunningContender, StartOptions, Surroundings } from './contender-processes.ts';

export const contenderNames = ['countersign', 'one-process', 'localstack', 'kcm-unthrottled', 'kcm-default'] as const;
export type ContenderName = (typeof contenderNames)[number];

export interface Contender {
  readonly name: ContenderName;
  readonly label: string;
  /** What its own settings keep it below, so that the benchmark has the patience. */
  readonly ceilingPerSecond?: number;
  /** Its records outlive its processes: what it has signed once it would not sign again. */
  readonly remembers?: true;
  start(surroundings: Surroundings, options: StartOptions): Promise<RunningContender>;
}

export const contenders: readonly Contender[] = [
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
    remembers: true,
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
    ceilingPerSecond: 20,
    start: ({ controlPlane }) => startReference(controlPlane, {}),
  },
];
