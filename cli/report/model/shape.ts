/** The value that `countersign report -o json` prints and the page shows. docs/report.md describes it. */
import type { Attention } from './attention-codes.ts';
import type { Audit } from './audit.ts';
import type { CaRow, TrustRow } from './cas.ts';
import type { Part, PartName } from './facts.ts';
import type { Conflict, Machines, ShownLock } from './machines.ts';
import type { NodeRow, ShownCertificate } from './nodes.ts';
import type { RequestRow } from './requests.ts';

/** Counts changes that are not additions. */
export const reportFormat = 1;

/** What was read. `why`: of `notAsked` and `failed`. */
export interface ShownPart {
  readonly name: PartName;
  readonly title: string;
  readonly state: Part<unknown>['state'];
  readonly why?: string;
  /** What the part leaves out. */
  readonly note?: string;
}

export interface OtherCertificate extends ShownCertificate {
  readonly holder: string;
}

/** Instants are RFC 3339 text. The fields of Audit are absent if the records were not read. */
export interface Report extends Partial<Audit> {
  readonly formatVersion: typeof reportFormat;
  readonly at: string;
  readonly version: string;
  readonly cluster: string;
  readonly parts: readonly ShownPart[];
  readonly attention: readonly Attention[];
  readonly fleet: readonly NodeRow[];
  /** The latest certificates of holders that are not nodes, the next to end first. */
  readonly otherCertificates: readonly OtherCertificate[];
  /** Absent: the records were not read. */
  readonly machines?: Machines;
  readonly conflicts: readonly Conflict[];
  readonly locks: readonly ShownLock[];
  readonly requests: readonly RequestRow[];
  readonly cas: readonly CaRow[];
  readonly trust: readonly TrustRow[];
}
