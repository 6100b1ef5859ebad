/**
 * The outcomes of a request, and their names and statuses over HTTP and in the cluster.
 *
 * A refusal is a value with a closed set of codes. A thrown error is temporary; the handlers answer it with `busy`.
 */
import { failure } from './result.ts';
import type { Result } from './result.ts';

/**
 * The reasons of a final refusal. The relay writes a `Failed` condition only for a code of this list, so a proxy's
 * 422 can never end a request. Clients and runbooks match on the codes, so a new code is a change of the interface.
 */
export const refusalCodes = [
  'SignerValidationFailure', // a rule of the in-tree signer, with its message (kubernetes.io/* profiles)
  'RequestMalformed', // cannot be decoded, or can be read in more than one way
  'RequestTooLarge', // over a limit on what one request can cost: bytes, names, groups
  'SignatureInvalid', // the requester did not prove possession of the key
  'KeyNotPermitted', // key kind or size, or the digest of the self-signature
  'UsageNotPermitted', // empty, unknown, or outside a custom profile
  'SubjectNotPermitted', // not a subject that the profile permits
  'SanNotPermitted', // a name type that no profile permits, or a name outside a custom profile
  'NameReserved', // names of the control plane, reserved names, and node names outside the profiles that may issue them
  'RequesterNotAllowed', // not one of the requesters that the profile names
  'UidReused', // an earlier request with the same UID has other content
  'IntentExpired', // the intent was not signed in time, and is now too old
  'Locked', // an operator locked the node, the machine or the key (countersign lock, cert revoke)
  'AttestationMissing', // the profile demands evidence of the machine, and the request has no evidence
  'AttestationInvalid', // the evidence is invalid, or not for this request
  'AttestationVersion', // a provider or version of evidence that is not accepted; the annotation lists the accepted ones
  'AttestationChallenge', // the node has to answer the challenge in the annotation with its next request
  'IdentityNotAllowed', // the evidence is valid, but the machine may not join
  'TofuReuse', // the machine is registered already, with another key
  'TofuNodeMismatch', // the machine is registered under another node name
  'TofuNodeTaken', // the node name belongs to another machine
  'Revoked', // the machine's record ended or changed since the verdict
  'KeyReused', // this key was certified before, and the profile demands fresh keys
  'MachineNotFound', // no Machine or MachinePool of Cluster API has this provider ID, or the caller did not look
  'MachineNotReady', // the Machine has no bootstrap data yet
  'MachineAmbiguous', // several Machines have this provider ID
  'MachineDeleting', // the Machine or its Cluster is being deleted
  'MachineOfOtherCluster', // the Machine belongs to another Cluster
  'MachineMismatch', // the Machine is about another machine or node than the evidence
  'AttestorNotAuthorized', // the Cluster object does not authorize the provider of the evidence
  'NameNotOwned', // an address or DNS name that does not belong to the machine
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

export function isRefusalCode(code: unknown): code is RefusalCode {
  return (refusalCodes as readonly unknown[]).includes(code);
}

/** One broken rule. `message` contains no secret and is shown in conditions, Events and logs. */
export interface Violation {
  readonly code: RefusalCode;
  readonly message: string;
}
export type Violations = readonly [Violation, ...Violation[]];

/** The request cannot be read, or can be read in more than one way. */
export function malformed(message: string): Result<never, Violations> {
  return violated('RequestMalformed', message);
}

/** The result of a check that failed with this one violation. */
export function violated(code: RefusalCode, message: string): Result<never, Violations> {
  return failure([violation(code, message)]);
}

export function violation(code: RefusalCode, message: string): Violation {
  return { code, message };
}

export const uidReused = violation(
  'UidReused',
  'a request with this UID and other content came before; create a new request',
);

/** The request is not for this endpoint, or is in another state; the relay writes nothing. */
export type IgnoredWhy = 'UnknownSigner' | 'NotApproved' | 'Denied' | 'Failed' | 'AlreadyIssued';

/** Temporary: the client tries again later. `Internal`, `Throttled` and `Unavailable` are troubles (trouble.ts). */
export type BusyWhy =
  | 'InProgress' // another delivery of the same request is being answered
  | 'SecondLook' // a change needs a second observation, minutes after the first (core/attestation/second-look.ts)
  | 'Limited' // too many requests of one machine or requester (core/attestation/records/request-limits.ts)
  | 'Throttled'
  | 'Unavailable'
  | 'Internal';

export type SignOutcome =
  | {
      readonly kind: 'issued';
      readonly certificatePem: string;
      readonly serial: string;
      readonly repeat: boolean;
      /** For the log: the KMS request that made the signature. */
      readonly kmsRequestId?: string;
    }
  | { readonly kind: 'refused'; readonly violations: Violations }
  | { readonly kind: 'ignored'; readonly why: IgnoredWhy }
  | { readonly kind: 'invalid'; readonly message: string }
  | { readonly kind: 'busy'; readonly why: BusyWhy; readonly retryAfterSeconds: number };

export function refused(first: Violation, ...more: readonly Violation[]): SignOutcome & { kind: 'refused' } {
  return { kind: 'refused', violations: [first, ...more] };
}

/** The condition reason of the refusal: the code of the first violation. */
export function refusalReason(violations: Violations): RefusalCode {
  return violations[0].code;
}

/** All violations in their order. A message of the in-tree signer comes first. */
export function refusalMessage(violations: Violations): string {
  return violations.map(({ message }) => message).join('; ');
}

/** HTTP status (docs/signing-api.md). A refusal is never 2xx, which the webhook client takes as success. */
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
