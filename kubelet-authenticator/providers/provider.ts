/**
 * What a provider is on the node: the other half of core/attestation/evidence/provider.ts. It says which machine this is and makes
 * the evidence for one request; keys, requests and certificates are not its business. A provider is one file here named as
 * on the wire, one line in obtain.ts, one line in settings.ts.
 */

export interface NodeProviderPort {
  /** Versions of evidence it can make, newest first: `aws/v1`. */
  readonly versions: readonly [string, ...string[]];
  /**
   * Whether the node itself renews, with a new key. A provider that proves nothing cannot tell a new key of the same machine
   * from another machine's (Cluster API's proposal): there the node asks as it did the first time, for the same key.
   */
  readonly renews: boolean;
  /** Which machine this is. Throws when it cannot be told now. */
  describe(): Promise<MachineDescription>;
  /** Throws when it cannot be made now. */
  makeEvidence(question: EvidenceQuestion): Promise<MadeEvidence>;
}

export interface MachineDescription {
  /** The node's providerID, such as `aws:///eu-central-1a/i-0123456789abcdef0`; nothing where it has none. */
  readonly providerId?: string;
  /** IP addresses and DNS names that the platform gives it: what a serving certificate may hold. */
  readonly names: readonly string[];
}

export interface EvidenceQuestion {
  /** One of `versions`. */
  readonly version: string;
  /** In countersign.yaml. */
  readonly clusterName: string;
  /** B of docs/attestation.md, for the nonce that the evidence will name (empty where it has none), in lower-case hex. */
  readonly binding: (nonce: string) => string;
  /** Random, base64url. Proofs are good once: without it two of one second could be the same. */
  readonly nonce: string;
  readonly now: number;
}

export interface MadeEvidence {
  /** The DATA block: JSON of that version. */
  readonly data: string;
  /** From then on nobody takes it any more. */
  readonly staleAt: number;
}
