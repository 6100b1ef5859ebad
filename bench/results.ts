/** What one run found, as it is written for the next one to compare with. */
import { readFileSync } from 'node:fs';
import type { ApprovingResult } from './approving.ts';
import type { AuthenticatorResult } from './authenticator.ts';
import type { BundlesResult } from './bundles.ts';
import { contenders } from './contenders.ts';
import type { ContenderName } from './contenders.ts';
import type { RelayMemoryResult } from './relay-memory.ts';
import type { StepResult } from './steps.ts';

export interface Results {
  readonly schema: typeof schema;
  readonly date: string;
  readonly commit: string;
  readonly machine: Machine;
  readonly contenders: readonly ContenderResults[];
  readonly steps: readonly StepResult[];
  readonly approval?: readonly ApprovingResult[];
  readonly memory?: RelayMemoryResult;
  readonly bundles?: BundlesResult;
  readonly authenticator?: AuthenticatorResult;
  /** What this machine has no means for, and what went wrong. */
  readonly leftOut: readonly Missing[];
  readonly failed: readonly Missing[];
}

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
  /** Left out when none was needed. */
  readonly kubernetes?: string;
}

/** As far as it got. */
export interface ContenderResults {
  readonly contender: ContenderName;
  readonly backlog?: MassResult;
  /** In the order measured, the smallest first. */
  readonly bursts: readonly MassResult[];
  readonly steady?: SteadyResult;
  readonly sequence?: SequenceResult;
}

/** Times in seconds. */
export interface MassResult {
  readonly requests: number;
  /** From t0 until the benchmark saw the first, and the last, certificate. */
  readonly first: number;
  readonly all: number;
  readonly perSecond: number;
  /** Of (certificate seen − t0) over all requests. */
  readonly p50: number;
  readonly p99: number;
  /** Of the contender: from t0 on; since their start, for the backlog. */
  readonly processes: readonly ProcessResult[];
  /** What stands for AWS, on the same processors. */
  readonly besides: readonly ProcessResult[];
  /** What the API server spent from t0 on, without etcd: the work all contenders cause. */
  readonly apiServerSeconds: number;
  /** Which share of all processors others took meanwhile, none of the above and not the benchmark. */
  readonly othersShare: number;
}

/** Of one process, or of several of one kind together. */
export interface ProcessResult {
  readonly name: string;
  readonly processes: number;
  readonly cpuSeconds: number;
  readonly peakMegabytes: number;
}

/** In milliseconds from when each came up approved. */
export interface SteadyResult {
  readonly perSecond: number;
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
  /** From when the last came up until all had their certificates: who cannot keep up is late by more and more. */
  readonly lag: number;
  readonly othersShare: number;
}

/** In milliseconds from sending until the certificate was seen. */
export interface SequenceResult {
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
  /** Where the signature is a call: its median, and everything else. */
  readonly kms?: number;
  readonly withoutKms?: { readonly p50: number; readonly p99: number };
}

const schema = 2;

/** An earlier run's. Throws when the file holds none. */
export function readResults(file: string): Results {
  const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
  const results = upgraded(read);
  if (results === undefined) throw new Error(`${file} holds no results of this benchmark`);
  return results;
}

type SchemaOneMass = Omit<MassResult, 'processes' | 'besides'> & {
  readonly contender: ContenderName;
  readonly processes: readonly Omit<ProcessResult, 'processes'>[];
};
type SchemaOne = Pick<Results, 'date' | 'commit' | 'machine' | 'steps' | 'bundles' | 'authenticator'> & {
  readonly contenders: readonly {
    readonly backlog: SchemaOneMass;
    readonly burst: SchemaOneMass;
    readonly sequence?: SequenceResult;
  }[];
};

/**
 * Also of the time when there was one burst, and approval was measured from the start of its processes: that, being no
 * burst, is left out.
 */
export function upgraded(read: unknown): Results | undefined {
  const { schema: written } = read as { schema?: unknown };
  if (written === schema) return read as Results;
  if (written !== 1) return undefined;
  const { date, commit, machine, steps, bundles, authenticator, contenders: measured } = read as SchemaOne;
  const mass = ({ processes, ...rest }: SchemaOneMass): MassResult => ({
    ...rest,
    processes: processes.map((each) => ({ ...each, processes: 1 })),
    besides: [],
  });
  return {
    schema,
    date,
    commit,
    machine,
    steps,
    contenders: measured.map(({ backlog, burst, sequence }) => ({
      contender: burst.contender,
      backlog: mass(backlog),
      bursts: [mass(burst)],
      ...(sequence === undefined
        ? {}
        : { sequence: { requests: sequence.requests, p50: sequence.p50, p99: sequence.p99 } }),
    })),
    ...(bundles === undefined ? {} : { bundles }),
    ...(authenticator === undefined ? {} : { authenticator }),
    leftOut: [],
    failed: [],
  };
}

export function labelOf(name: ContenderName): string {
  return contenders.find((contender) => contender.name === name)?.label ?? name;
}

/** By its own settings, so that it would not have used the whole machine anyway. */
export function isThrottled(name: ContenderName): boolean {
  return contenders.find((contender) => contender.name === name)?.ceilingPerSecond !== undefined;
}
