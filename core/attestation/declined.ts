/** Refusals and delays of attest. A step that declines nothing returns `undefined` or its value. */
import type { Violation, Violations } from '../outcome/outcome.ts';
import type { IdentityRecord } from '../ports/attestation-store.ts';
import { LaterError } from '../ports/errors.ts';

export type Declined = Refused | Later | Challenged;

interface Observed {
  /** A machine's record with a new observation; attest.ts writes it before it answers. */
  readonly observed?: IdentityRecord;
}

export interface Refused extends Observed {
  readonly kind: 'refused';
  readonly violations: Violations;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Usually over within minutes, and decided before the platform was asked: attest neither stores nor counts it. */
  readonly transient?: true;
  /** The requester may have many machines that are refused for this reason at once: attest does not count it. */
  readonly uncounted?: true;
}

/** Temporary: the same request may be admitted later. */
interface Later extends Observed {
  readonly kind: 'later';
  readonly error: LaterError;
}

/** The machine must answer the challenge in the annotations with its next request. */
export interface Challenged extends Observed {
  readonly kind: 'challenged';
  readonly violations: Violations;
  readonly annotations: Readonly<Record<string, string>>;
}

export function refuse(first: Violation, ...more: readonly Violation[]): Refused {
  return { kind: 'refused', violations: [first, ...more] };
}

/** `undefined` if there is no violation. */
export function refusalOf([first, ...more]: readonly Violation[]): Refused | undefined {
  return first === undefined ? undefined : refuse(first, ...more);
}

export function later(...reason: ConstructorParameters<typeof LaterError>): Later {
  return { kind: 'later', error: new LaterError(...reason) };
}
