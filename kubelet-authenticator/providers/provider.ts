/**
 * The interface of a provider on the node, the counterpart of core/attestation/evidence/provider.ts. It identifies the machine
 * and makes the evidence for one request; it does not handle keys, requests or certificates. To add a provider: one file in
 * this folder with its wire name, one case in certificate-spec.ts, one entry in settings.ts.
 */

export interface NodeProviderPort {
  /** The versions of evidence that it can make, newest first, such as `aws/v2`. */
  readonly versions: readonly [string, ...string[]];
  /**
   * Whether a node renews with its certificate and a new key. Without evidence a new key of the same machine looks like
   * another machine's (Cluster API's proposal). Then the node renews with its bootstrap credentials and the same key.
   */
  readonly renews: boolean;
  /** Whether it can answer a challenge of the approver. Absent: it cannot. */
  readonly answersChallenges?: boolean;
  /** Identifies the machine. Throws on a temporary failure. */
  describe(): Promise<MachineDescription>;
  /** Throws on a temporary failure, and ChallengeRefusedError. */
  makeEvidence(question: EvidenceQuestion): Promise<MadeEvidence>;
}

export interface MachineDescription {
  /** The node's providerID, such as `aws:///eu-central-1a/i-0123456789abcdef0`; absent if it has none. */
  readonly providerId?: string;
  /** IP addresses and DNS names that the platform assigned: a serving certificate may contain them. */
  readonly names: readonly string[];
}

export interface EvidenceQuestion {
  /** One of `versions`. */
  readonly version: string;
  /** The cluster's name in countersign.yaml. */
  readonly clusterName: string;
  /** The binding digest B of docs/attestation.md in lower-case hex, for the nonce in the evidence (empty if it has none). */
  readonly binding: (nonce: string) => string;
  /** Random, base64url. Each proof is accepted once: without a nonce, two proofs of one second could be identical. */
  readonly nonce: string;
  /** The approver's answer to the last request, if it was a challenge that this evidence must answer. */
  readonly challenge?: Challenge | undefined;
  /** Whether an approver refused the last request: evidence may then say more, so that the next refusal can. Absent: no. */
  readonly refused?: boolean;
  readonly now: number;
}

export interface Challenge {
  /** Names the challenge: sent back as it came. base64url. */
  readonly challenge: string;
  /** What only the challenged machine can open. base64. */
  readonly credential: string;
}

/** The machine cannot open the credential of this challenge, now or later. Another challenge may be right. */
export class ChallengeRefusedError extends Error {
  override readonly name = 'ChallengeRefusedError';
}

export interface MadeEvidence {
  /** The DATA block: JSON of that version. */
  readonly data: string;
  /** From this moment on the approver refuses it. */
  readonly staleAt: number;
}
