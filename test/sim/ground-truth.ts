/** What is really so, as those know who made it: nothing of the code that is judged has a say in it. */

/** Of a request. */
export interface GroundTruth {
  readonly uid: string;
  /** Its name and what it is, for people. */
  readonly what: string;
  readonly signerName: string;
  /** The request digest (core/kubernetes/request-digest.ts) of the object in the API server. */
  readonly digest: string;
  readonly spkiSha256: string;
  readonly requestSha256: string;
  readonly username: string;
  readonly createdAt: number;
  /** It brings evidence. */
  readonly evidence: boolean;
  /** Made by the machine that it names, with that machine's own proof and under a name that is its. */
  readonly genuine: boolean;
  /** The identity of the machine that made it. */
  readonly machine?: string;
  readonly node?: string;
  /** What it proves itself with, where that can be used once. */
  readonly proof?: string;
  /** The attestation key with which its TPM made the quote. */
  readonly akName?: string;
  /** It answers a challenge, and the TPM that answered has that key. */
  readonly activated?: boolean;
  /** Names and addresses of a serving certificate. */
  readonly names?: readonly string[];
  /** With the credentials of the node itself. */
  readonly byNode: boolean;
  /** Its signer signs such a request; the requester is not considered. */
  readonly sound: boolean;
  /** Nothing speaks against it: approved, it ends in a certificate. */
  readonly plain: boolean;
  /**
   * Too large for the relay, which refuses it. `full`: so large that no condition fits beside what it holds, so that it
   * never ends.
   */
  readonly padded?: 'large' | 'full';
  /** The cluster never permits its requester to have it approved. */
  readonly unpermitted: boolean;
}

/** Of a machine, as its platform knows. */
export interface MachineFacts {
  readonly identity: string;
  /** What it may be called: any name, or this one. */
  readonly node: string | undefined;
  addresses: readonly string[];
  /** What its platform took away from it, and when; virtual. */
  readonly former: { readonly address: string; readonly until: number }[];
  readonly dnsNames: readonly string[];
  /** When it was started, and started anew; virtual. */
  readonly starts: number[];
  /** Its Machine object belongs to another cluster. */
  foreign?: boolean;
  /** Until when it was there; undefined = it is. */
  gone?: number;
}
