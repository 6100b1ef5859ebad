/**
 * Every way a request can end, and what each end is called over HTTP and in the cluster: one table for all clients.
 *
 * "No" is a value with a closed set of codes. Throwing means "temporary, try again" and becomes `busy` at the edge.
 */
import { failure } from './result.ts';
import type { Result } from './result.ts';

/**
 * Why a request is refused for good. The relay writes a `Failed` condition only for a code of this list, so a proxy's
 * 422 can never end a request. Adding a code is a decision: clients and runbooks match on it.
 */
export const refusalCodes = [
  'SignerValidationFailure', // what the in-tree signer refuses, in its own words (kubernetes.io/* profiles)
  'RequestMalformed', // undecodable, ambiguous, or more than one reading
  'RequestTooLarge', // over a cap that bounds what one request can cost: bytes, names, groups
  'SignatureInvalid', // the requester did not prove possession of the key
  'KeyNotPermitted', // key kind or size, or the digest of the self-signature
  'UsageNotPermitted', // empty, unknown, or outside a custom profile
  'SubjectNotPermitted', // outside what the profile names
  'SanNotPermitted', // a name type that no profile permits, or a name outside a custom profile
  'NameReserved', // names of the control plane, reserved names, and node names outside the profiles that may issue them
  'RequesterNotAllowed', // not one of the requesters that the profile names
  'UidReused', // the same UID came with other content: the first record wins
  'IntentExpired', // begun, never finished, and now too old to finish
  'Locked', // an operator locked the node or the machine (countersign lock)
  'AttestationMissing', // the profile demands evidence of the machine, and the request has no evidence
  'AttestationInvalid', // the evidence is invalid, or not for this request
  'AttestationVersion', // a provider or version of evidence that is not accepted; the annotation lists the accepted ones
  'AttestationChallenge', // the node has to answer the challenge in the annotation with its next request
  'IdentityNotAllowed', // proved, but not a machine that may join
  'TofuReuse', // the machine is registered already, with another key
  'TofuNodeMismatch', // the machine is registered under another node name
  'TofuNodeTaken', // the node name belongs to another machine
  'Revoked', // the machine's record ended or changed since the verdict
  'KeyReused', // a certificate was made for this key before, and the profile wants fresh ones
  'NameNotOwned', // an address or DNS name that does not belong to the machine
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

export function isRefusalCode(code: unknown): code is RefusalCode {
  return (refusalCodes as readonly unknown[]).includes(code);
}

/** One broken rule. `message` is for people, names no secret, and is shown in conditions, Events and logs. */
export interface Violation {
  readonly code: RefusalCode;
  readonly message: string;
}
export type Violations = readonly [Violation, ...Violation[]];

/** The request cannot be read, or can be read in more than one way. */
export function malformed(message: string): Result<never, Violations> {
  return failure([violation('RequestMalformed', message)]);
}

export function violation(code: RefusalCode, message: string): Violation {
  return { code, message };
}

export const uidReused = violation(
  'UidReused',
  'a request with this UID and other content came before; create a new request',
);

/** Not ours to answer; the relay does nothing. */
export type IgnoredWhy = 'UnknownSigner' | 'NotApproved' | 'Denied' | 'Failed' | 'AlreadyIssued';

/** Temporary: the client comes back later. `Internal` raises an alarm, the others do not. */
export type BusyWhy =
  | 'InProgress' // another delivery of the same request is being answered
  | 'SecondLook' // a change needs a second observation, minutes after the first (core/attestation/second-look.ts)
  | 'Limited' // too many requests of one machine or requester (core/attestation/request-limits.ts)
  | 'Throttled'
  | 'Unavailable'
  | 'Internal';

export type SignOutcome =
  | { readonly kind: 'issued'; readonly certificatePem: string; readonly serial: string; readonly repeat: boolean }
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'ignored'; readonly why: IgnoredWhy }
  | { readonly kind: 'invalid'; readonly message: string }
  | { readonly kind: 'busy'; readonly why: BusyWhy; readonly retryAfterSeconds: number };

export function refused(first: Violation, ...more: readonly Violation[]): SignOutcome & { kind: 'refused' } {
  return { kind: 'refused', violations: [first, ...more] };
}

/** The reason of the whole refusal (condition reason): that of the first rule broken. */
export function refusalReason(violations: Violations): RefusalCode {
  return violations[0].code;
}

/** All violations in order, joined so that the text starts with the in-tree signer's own. */
export function refusalMessage(violations: Violations): string {
  return violations.map(({ message }) => message).join('; ');
}

/** HTTP status (docs/signing-api.md). Refusals are never 2xx: the webhook client takes any 2xx as success. */
export function httpStatus(outcome: SignOutcome): number {
  switch (outcome.kind) {
    case 'issued':
      return 200;
    case 'refused':
      return refusalReason(outcome.violations) === 'RequestTooLarge' ? 413 : 422;
    case 'ignored':
      return 409;
    case 'invalid':
      return 400;
    case 'busy':
      return 503;
  }
}
