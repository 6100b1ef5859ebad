/**
 * The interface of an attestation provider (Cluster API's kubelet authentication proposal, ClusterAPISigner: verify
 * client evidence, verify the serving request, name the machine). A provider is one file or folder named as on the wire,
 * one line in `providers.ts`, one page in docs/attestation/, one set of vectors under test/. A provider knows no Kubernetes
 * objects, no records and no policy of signers: it names the machine that sent the evidence and describes it.
 */
import type { DeviceState, SingleUseKey } from '../../ports/attestation-store.ts';
import type { PcrPolicy } from '../../policy/profile.ts';
import type { CertificateRequest } from '../../x509/model.ts';
import type { Violation, Violations } from '../../outcome/outcome.ts';
import type { Result } from '../../outcome/result.ts';
import type { Instant } from '../../ports/instant.ts';

export interface AttestationProvider {
  /** The name in evidence and in signer names: `aws`. */
  readonly name: string;
  /** Versions of its evidence, newest first: `aws/v1`. */
  readonly versions: readonly [string, ...string[]];
  /**
   * Whether its machines may renew with a new key and get serving certificates; not with an insecure provider
   * (Cluster API's proposal, Insecure providers).
   */
  readonly secure: boolean;
  /**
   * Whether the evidence proves the hardware itself, so that the machine may request a new key with its bootstrap credentials:
   * a new disk in the same machine. Absent = no.
   */
  readonly provesHardware?: true;
  /** For so many milliseconds after a stop and start a machine may request a new key without a renewal; absent = never. */
  readonly restartWindow?: number;
  /**
   * Whether a serving certificate may be decided by the machine's last description (last-description.ts). Only for a platform
   * whose quota limits how fast machines join, and not with `restartWindow`. Absent = no.
   */
  readonly reusesDescriptions?: true;
  /** Decodes the evidence and makes all checks that need no network. Never throws, and its promise never rejects. */
  examine(evidence: Evidence): Result<Examined, Violations> | Promise<Result<Examined, Violations>>;
  /**
   * The current state of the machine recorded under `identity`, for requests without evidence and for node names whose holder
   * may be gone. Throws if the platform does not answer: an error is not a state.
   */
  describe(identity: string, now: Instant): Promise<MachineState>;
  /**
   * The identities of the machines that the platform reports as terminated, those of other clusters included. Each is listed at least
   * as long as two looks take (second-look.ts). Absent: the platform has no such list. Throws at the end if a part of the list could
   * not be read; the identities before that are right. Two providers of one platform (registrar.ts) have the list once.
   */
  goneMachines?(): AsyncIterable<string>;
}

/** What a node sent, and the request to which it must be bound. */
export interface Evidence {
  /** One of `versions`. */
  readonly version: string;
  /**
   * The DATA block: JSON by the provider's closed schema, not yet decoded. At most 32 KiB. A provider whose nodes write other blocks
   * reads `request.evidence`.
   */
  readonly data: Uint8Array;
  readonly request: CertificateRequest;
  readonly nodeName: string;
  readonly clusterName: string;
  /** Computes B (binding-digest.ts) with the nonce of the evidence. Lower-case hex. */
  readonly binding: (nonce: string) => string;
  /** Of the profile, for providers with a TPM. */
  readonly pcrs?: PcrPolicy | undefined;
  readonly now: Instant;
}

export interface Examined {
  /**
   * The machine that the evidence claims. A requester can claim any machine, so before `verify` succeeds nothing may be counted,
   * limited or recorded for this machine.
   */
  readonly identity: string;
  readonly once: readonly (SingleUseKey & { readonly expiresAt: Instant })[];
  /** Names of the machine: one of them must be on the operator's list. Empty: no list is configured. */
  readonly machines: readonly string[];
  /** Asks the platform. Throws if the platform cannot answer now. */
  verify(): Promise<Result<Machine, Violations>>;
  /**
   * All of `verify` but the question how the platform describes the machine: for a machine that was `seen` moments ago, which is
   * returned with what this evidence proves. Throws if temporary. Absent: the evidence can only be verified with a new description.
   */
  readonly confirm?: (seen: Machine) => Promise<Result<Machine, Violations>>;
}

/** A machine as its platform describes it. */
export interface Machine {
  readonly identity: string;
  /** The providerID of its node, such as `aws:///eu-central-1a/i-0123456789abcdef0`. */
  readonly providerId: string;
  /** Its node's program writes no provider ID into requests, which Cluster API's proposal demands. One that is there must be right. */
  readonly mayOmitProviderId?: true;
  /** Node names that it may have: exact names and patterns of core/policy/patterns.ts. */
  readonly nodeNames: readonly string[];
  /** Of all its interfaces, public ones included; canonical text as in SubjectAltNames.ip. */
  readonly addresses: readonly string[];
  /** Lower case. */
  readonly dnsNames: readonly string[];
  readonly startedAt?: Instant;
  /** The entry of the operator's list that this description was read from: an exact name. A claim for the machine depends on it. */
  readonly entry?: string;
  /** Only of a machine with a TPM. */
  readonly device?: Device;
}

/** The TPM of a machine, as the quote of this request shows it. */
export interface Device {
  /** SubjectPublicKeyInfo, DER. Absent if the platform knows the attestation key itself. */
  readonly endorsementKey?: Uint8Array;
  readonly state: DeviceState;
  /** Whether the request answers a challenge, which proves that attestation key and endorsement key are in one TPM. */
  readonly activated: boolean;
  /** Makes a challenge for this TPM: the value of the annotation `countersign.dev/attestation-challenge`. Throws if temporary. */
  challenge(): Promise<string>;
}

export type MachineState =
  /** `violations`: why the policy would not admit it today. */
  | { readonly kind: 'running'; readonly machine: Machine; readonly violations: readonly Violation[] }
  /** Stopped, stopping or shutting down: the machine still exists. */
  | { readonly kind: 'stopped' }
  /** Terminated: it never returns. */
  | { readonly kind: 'gone' }
  /** The platform does not know the machine, or not any more; second-look.ts decides what follows. */
  | { readonly kind: 'unknown' };
