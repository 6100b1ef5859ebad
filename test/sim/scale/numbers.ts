/**
 * Every number that the models take from AWS, Kubernetes or from our own settings, at one place. docs/internals/scale.md says where
 * each comes from; test/unit/sim/scale.test.ts holds those that are ours to the code that has them.
 */

export const kms = {
  /** Cryptographic operations with elliptic-curve keys, all keys of an account in a region together. */
  signaturesPerSecond: 1_000,
  /** A quota of its own. */
  publicKeysPerSecond: 2_000,
  milliseconds: [5, 40],
  /** Of a throttled call: adapters/aws/kms-signer.ts. */
  attempts: 1,
  patienceMilliseconds: 4_000,
} as const;

export const lambda = {
  accountConcurrency: 1_000,
  /** Of the account's, what reserved concurrency must leave to others. */
  unreservable: 100,
  /** New environments of one function. */
  startsPerTenSeconds: 1_000,
  /** Of one function, for each environment it may have. */
  callsPerSecondEach: 10,
  coldMilliseconds: [200, 600],
  /** The work between the calls, on a third of a processor: docs/internals/performance.md, bench. */
  workMilliseconds: [4, 10],
  /** lib/functions.ts */
  memoryGigabytes: 0.5,
  limitMilliseconds: 25_000,
} as const;

/** Of relay, front door and function, one way. */
export const networkMilliseconds = [2, 6] as const;
/** adapters/signing-api/client.ts */
export const clientMilliseconds = 29_000;

export const dynamodb = {
  /** A new on-demand table, and each of its indexes. */
  writeUnits: 4_000,
  readUnits: 12_000,
  /** One partition, and so one key of a table or an index. */
  partitionWriteUnits: 1_000,
  partitionReadUnits: 3_000,
  /** The most that a table may have, unless its account asked for more. */
  tableWriteUnits: 40_000,
  /** What lasted a minute is a peak, and twice that is let through when so much time has passed. */
  doublesInMilliseconds: 1_800_000,
  /** A partition that refuses something in each of so many minutes in a row becomes two. AWS says no number. */
  splitsAfterMinutes: 10,
  milliseconds: [3, 9],
  /** adapters/dynamodb/ledger.ts: the SDK's standard mode. */
  attempts: 3,
  /** The SDK's, for a throttled call: half of it on average, doubled for the one after. */
  throttledDelayMilliseconds: 1_000,
  /** Of an intent and of a record that is issued: what is written by one `open` or `complete`, in kilobytes begun. */
  intentUnits: 2,
  recordUnits: 3,
  /** Keys of the index by expiry on one day: adapters/dynamodb/table.ts. */
  expiryKeys: 16,
} as const;

/** Of an account in a region, every tool of the account together. */
export const ec2 = {
  /** DescribeInstances with a filter: the bucket of the other Describe* actions, 10 and 50 without one. adapters/aws/ec2.ts */
  describesPerSecond: 20,
  describesAtOnce: 100,
  milliseconds: [60, 200],
  /** Of a throttled call: adapters/aws/ec2.ts. */
  attempts: 1,
} as const;

export const sts = {
  /** Of the account whose credentials signed: the machine's. */
  callsPerSecond: 600,
  milliseconds: [20, 80],
} as const;

export const attestation = {
  /** core/attestation/aws/sts-token.ts: how old evidence may be. */
  freshMilliseconds: 300_000,
  /** kubelet-authenticator/providers/aws.ts: after so long without a decision a node asks with evidence of then. */
  patienceMilliseconds: 300_000,
  /** After a refusal for its age: at once. */
  againMilliseconds: 1_000,
  /** The verdict, if there is one, and the requester's refusals: one unit each. */
  recallUnits: 2,
  /** Machine, its lock, proof and name, of one moment: two units each. */
  lookUnits: 8,
  /** Verdict, proof, machine and name. */
  claimItems: 4,
  /** core/attestation/evidence/last-description.ts: how long what EC2 said decides about a serving certificate. */
  seenMilliseconds: 120_000,
  /** Of a stock kubelet's serving request: the name, then name and machine of one moment; then verdict, machine and name. */
  holderUnits: 2,
  servingLookUnits: 4,
  servingItems: 3,
  /** In a transaction, of one kilobyte at most. */
  itemUnits: 2,
} as const;

/** After its client certificate a kubelet registers its node and learns its addresses: an assumption, nothing measured. */
export const kubelet = { servesAfterMilliseconds: [1_000, 30_000] } as const;

export const apiServer = {
  writeMilliseconds: [4, 20],
  readMilliseconds: [2, 8],
  watchMilliseconds: [1, 30],
  /** Of 600 (--max-requests-inflight and --max-mutating-requests-inflight together) workload-low's nominal share. */
  seats: 245,
  /** One user's requests go into 6 of 128 queues of 50. */
  queued: 300,
  retryAfterSeconds: 1,
} as const;

/** US dollars; docs/cost.md. */
export const prices = {
  sign: 0.15 / 10_000,
  /** Not one of the asymmetric signing operations that cost more. */
  publicKey: 0.03 / 10_000,
  writeUnit: 0.625 / 1_000_000,
  readUnit: 0.125 / 1_000_000,
  invocation: 0.2 / 1_000_000,
  gigabyteSecond: 0.0000133334,
  httpCall: 1 / 1_000_000,
  /** Logs, by call. */
  logs: 0.001 / 1_000,
} as const;
