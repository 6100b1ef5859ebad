/** What the bench measures, and what a contender is started with. */
import type { ControlPlane } from '../../test/harness/kubernetes/control-plane.ts';
import type { RunningProcess } from '../../test/harness/processes/processes.ts';
import type { FakeAws } from './fake-aws.ts';
import type { LocalStackDeployment } from './localstack.ts';
import type { ProcessGroup } from '../measure/process-usage.ts';

/** The names that `--only` takes. */
export const contenderNames = ['countersign', 'one-process', 'localstack', 'kcm-unthrottled', 'kcm-default'] as const;
export type ContenderName = (typeof contenderNames)[number];

export interface Contender {
  readonly name: ContenderName | 'countersign-unproved' | 'against';
  readonly label: string;
  /** Only for an approver that demands evidence: the cluster that the evidence must name. */
  readonly evidenceCluster?: string;
  start(surroundings: Surroundings, options: StartOptions): Promise<RunningContender>;
}

/** What exists before a contender is started. */
export interface Surroundings {
  readonly controlPlane: ControlPlane;
  /** Present if a contender demands evidence. */
  readonly aws?: FakeAws;
  /** Present when LocalStack is measured. */
  readonly localStack?: LocalStackDeployment;
}

export interface StartOptions {
  /** When it ends, each Node process of Countersign writes a CPU profile into this folder, named for the contender. */
  readonly profile?: { readonly folder: string; readonly of: string };
}

export interface RunningContender {
  /** In the order in which they were started. */
  readonly processes: readonly RunningProcess[];
  /** The processes whose CPU time and memory count as the contender's. */
  readonly groups: readonly ProcessGroup[];
  /** The processes that take the place of AWS on the same processors. */
  readonly besides: readonly ProcessGroup[];
  /** The CA that must have signed its certificates. */
  readonly caPem: string;
  /** Only for a contender that signs with KMS: how long KMS took between two moments of performance.now(). */
  readonly kmsMilliseconds?: (from: number, to: number) => number;
  stop(): Promise<void>;
}
