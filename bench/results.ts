/** What one run measured, as it is written to its JSON file. */
import type { AuthenticatorResult } from './programs/authenticator.ts';
import type { BundlesResult } from './programs/bundles.ts';
import type { RelayMemoryResult } from './programs/relay-memory.ts';
import type { StepResult } from './programs/steps.ts';

export interface Results {
  readonly schema: typeof schema;
  readonly date: string;
  readonly commit: string;
  readonly machine: Machine;
  readonly phases: readonly PhaseResult[];
  readonly steps: readonly StepResult[];
  readonly memory?: RelayMemoryResult;
  readonly bundles?: BundlesResult;
  readonly authenticator?: AuthenticatorResult;
  /** What this machine lacks the tools for, and what failed. */
  readonly leftOut: readonly Missing[];
  readonly failed: readonly Missing[];
}

export const schema = 3;

export interface Missing {
  readonly what: string;
  readonly why: string;
}

export interface Machine {
  readonly cpu: string;
  readonly processors: number;
  readonly memoryGibibytes: number;
  readonly system: string;
  readonly node: string;
  /** Absent when no control plane was needed. */
  readonly kubernetes?: string;
}

/** One kind of work, done by several contenders in turns. */
export interface PhaseResult {
  /** In a few words, for the table of all comparisons. */
  readonly name: string;
  /** What was done, and what t0 is. */
  readonly description: string;
  /** The figure of a turn that contenders are compared by. */
  readonly compared: 'all' | 'p50';
  readonly rows: readonly PhaseRow[];
}

export interface PhaseRow {
  readonly contender: string;
  readonly label: string;
  readonly turns: readonly Turn[];
}

/** Times in milliseconds. */
export interface Turn {
  /** Turns of the same round are a pair. */
  readonly round: number;
  readonly requests: number;
  /** The least of (certificate seen − t0) over all requests, and two percentiles of it. */
  readonly first: number;
  readonly p50: number;
  readonly p99: number;
  /** From the first t0 until the last certificate was seen. */
  readonly all: number;
  /** The contender's processes, from t0 on; for a backlog since their start. */
  readonly processes: readonly ProcessResult[];
  /** The processes that stand in for AWS, on the same processors. */
  readonly besides: readonly ProcessResult[];
  /** CPU time of the API server, without etcd, which the contender caused. */
  readonly apiServerSeconds: number;
  /** The share of all processors that other programs than the bench and its children used. */
  readonly othersShare: number;
  /** Only one by one and with KMS: the median of the KMS call, and of everything else. */
  readonly kms?: number;
  readonly withoutKms?: number;
}

/** One process, or the sum of several of one kind. */
export interface ProcessResult {
  readonly name: string;
  readonly processes: number;
  readonly cpuSeconds: number;
  readonly peakMegabytes: number;
}
