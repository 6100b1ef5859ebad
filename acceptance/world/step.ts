/** A step of the acceptance run, what it finds, and what it works with. */
import type { CheckRecorder } from './recorder.ts';
import type { Clients } from './clients.ts';
import type { Emulated } from './emulator.ts';
import type { ClusterPlan } from './clusters.ts';
import type { Place } from './names.ts';
import type { Undo } from './undo.ts';

/** One statement of the policy that the run needs. */
export interface Statement {
  readonly sid: string;
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  /** As IAM writes them. */
  readonly conditions?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** What a run does only if it is asked for: `--with`. */
export const extras = ['restore'] as const;
export type Extra = (typeof extras)[number];

export interface Step {
  readonly id: string;
  readonly title: string;
  /** After the start, on AWS. */
  readonly minute: number;
  /** What the reader knows after it. */
  readonly shows: string;
  /** It runs only with `--with` this. */
  readonly extra?: Extra;
  /** Steps without whose success this one cannot run. */
  readonly needs: readonly string[];
  /** For the policy of `--plan`. The names of everything that the run makes begin with `accept-` or `countersign-accept-`. */
  readonly statements: (place: Place) => readonly Statement[];
  run(site: Site): Promise<void>;
}

export interface Site extends CheckRecorder {
  /** `accept-` and eight hexadecimal digits. */
  readonly name: string;
  readonly place: Place;
  /** ARN of the login's role or user, as policies name it. */
  readonly principal: string;
  readonly aws: Clients;
  /** Counts a call that no client of `aws` makes, by its name. */
  readonly count: (call: string) => void;
  /** Absent on AWS. */
  readonly emulator?: Emulated;
  readonly plan: ClusterPlan;
  readonly undo: Undo;
  /** Of the service stacks, by cluster; empty until they are deployed. */
  readonly outputs: Map<string, Readonly<Record<string, string>>>;
  /** Minutes without a call of the functions, between two signatures; 0: none. */
  readonly idleMinutes: number;
  /** Where the instances start. Undefined: a subnet of the default VPC. */
  readonly subnet?: string;
  /** Milliseconds between two looks at something that AWS is making. */
  readonly pollMilliseconds: number;
}
