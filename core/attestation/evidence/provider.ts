/**
 * What an attestation provider is (Cluster API's kubelet authentication proposal, ClusterAPISigner: verify client
 * evidence, verify the serving request, name the machine). A provider is one file here named as on the wire, one line in
 * `providers.ts`, one page in docs/attestation/, one set of vectors under test/. Providers know nothing of Kubernetes
 * objects, records or policy about signers: they say which machine speaks, and what belongs to it.
 */
import type { OnceKey } from '../../ports/attestation-store.ts';
import type { CertificateRequest } from '../../x509/model.ts';
import type { Violation, Violations } from '../../outcome/outcome.ts';
import type { Instant } from '../../ports/instant.ts';

export interface AttestationProvider {
  /** As on the wire and in signer names: `aws`. */
  readonly name: string;
  /** Versions of its evidence, newest first: `aws/v1`. */
  readonly versions: readonly [string, ...string[]];
  /**
   * Whether the machines it names renew with a new key and get serving certificates. An insecure provider cannot
   * (Cluster API's proposal, Insecure providers).
   */
  readonly secure: boolean;
  /** For so many milliseconds after a stop and start a machine may come back with a new key without renewing; absent = never. */
  readonly restartWindow?: number;
  /** Decodes and verifies what needs nobody else: no network, no clock but `now`. Never throws. */
  examine(evidence: Evidence): Examined | Refused;
  /**
   * What is known today of a machine recorded under `identity`, for requests that bring no evidence and for names whose
   * holder may be gone. Throws when it cannot be told now: an error of the platform is never an answer.
   */
  describe(identity: string, now: Instant): Promise<MachineState>;
}

/** What a node sent, and what it must be bound to. */
export interface Evidence {
  /** One of the provider's own. */
  readonly version: string;
  /** The DATA block: JSON by the provider's closed schema, not yet decoded. At most 32 KiB. */
  readonly data: Uint8Array;
  readonly request: CertificateRequest;
  readonly nodeName: string;
  readonly clusterName: string;
  /** B of docs/attestation.md in lower-case hex, computed by us; the nonce is what the evidence says was used. */
  readonly binding: (nonce: string) => string;
  readonly now: Instant;
}

export interface Examined {
  /**
   * Which machine the evidence says it is. Nothing is proven until `verify` answers: anyone may claim any machine, so before
   * that the machine itself must not suffer for it (no count, no limit, no record of its own).
   */
  readonly identity: string;
  readonly once: readonly (OnceKey & { readonly expiresAt: Instant })[];
  /** Names under which the machine must be on the operator's list; empty = no list is configured. */
  readonly machines: readonly string[];
  /** Asks the platform. Throws when it cannot answer now. */
  verify(): Promise<Machine | Refused>;
}

/** A machine as its platform describes it. */
export interface Machine {
  readonly identity: string;
  /** What the node's providerID is, such as `aws:///eu-central-1a/i-0123456789abcdef0`. */
  readonly providerId: string;
  /** What it may be called: patterns of core/policy/patterns.ts, exact names among them. */
  readonly nodeNames: readonly string[];
  /** Of all its interfaces, public ones included; canonical text as in SubjectAltNames.ip. */
  readonly addresses: readonly string[];
  /** Lower case. */
  readonly dnsNames: readonly string[];
  readonly startedAt?: Instant;
}

export type MachineState =
  /** `violations`: it runs, and policy would not let it join today. */
  | { readonly kind: 'running'; readonly machine: Machine; readonly violations: readonly Violation[] }
  /** Stopped, stopping, shutting down: still somebody's. */
  | { readonly kind: 'stopped' }
  /** Terminated: it will never come back. */
  | { readonly kind: 'gone' }
  /** The platform does not know it (any more): an answer only when it should know it for long. */
  | { readonly kind: 'unknown' };

export interface Refused {
  readonly violations: Violations;
}
