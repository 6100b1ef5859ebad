/** What is simulated: how many requests, in what time, of how many clusters with which limits, and what goes wrong. */
import type { AccountOptions } from './aws/account.ts';
import { dynamodb, ec2, kms, lambda } from './numbers.ts';

/** All at once, of one requester of one cluster, besides the even load. */
export interface Flood {
  readonly requests: number;
  readonly cluster: number;
  readonly requester: string;
  /** In seconds. */
  readonly from: number;
}

export interface Scenario {
  readonly name: string;
  readonly requests: number;
  readonly clusters: number;
  /** Of each cluster. */
  readonly requesters: number;
  /** 0: all at once. */
  readonly overSeconds: number;
  /** The relay's. */
  readonly concurrency: number;
  readonly inFlightPerRequester: number;
  /** The function's and the front door's: `limits` of countersign.yaml. */
  readonly reservedConcurrency: number;
  /** What API Gateway answers where Lambda throttles. */
  readonly throttledStatus: 500 | 503;
  readonly throttle: { readonly rate: number; readonly burst: number };
  readonly tableWriteUnits: number;
  readonly account: Omit<AccountOptions, 'outage'>;
  /** Nodes that join with a proof ask, instead of people whose requests are approved. */
  readonly joins?: true;
  /** Each node that has joined asks for a serving certificate, as a stock kubelet does. */
  readonly serves?: true;
  /** Besides, of each of the other kinds, evenly while the quota's time lasts. */
  readonly others?: number;
  readonly floods?: readonly Flood[];
  /** Seconds after the first request: KMS answers no call. */
  readonly outage?: readonly [number, number];
  /** Likewise: the front door says busy to every client. */
  readonly away?: { readonly from: number; readonly until: number; readonly retryAfterSeconds?: number };
}

const account = {
  signaturesPerSecond: kms.signaturesPerSecond,
  concurrency: lambda.accountConcurrency,
  describes: { perSecond: ec2.describesPerSecond, atOnce: ec2.describesAtOnce },
};

/** As everything is by default. */
const ordinary = {
  clusters: 1,
  requesters: 8,
  overSeconds: 0,
  concurrency: 32,
  inFlightPerRequester: 24,
  reservedConcurrency: 40,
  throttle: { rate: 200, burst: 400 },
  throttledStatus: 503,
  tableWriteUnits: dynamodb.writeUnits,
  account,
} as const;

/** One cluster that may have all of the account, with a table that has been warmed. */
const wide = {
  ...ordinary,
  concurrency: 128,
  inFlightPerRequester: 64,
  reservedConcurrency: 200,
  throttle: { rate: 2_000, burst: 4_000 },
  tableWriteUnits: 40_000,
} as const;

/** Five hundred with ordinary limits, in an account whose concurrency was raised to hold their reservations. */
const many = {
  ...ordinary,
  clusters: 500,
  requesters: 2,
  account: { ...account, concurrency: 500 * 40 + lambda.unreservable },
} as const;

/** Five hundred in an account as AWS gives it: one environment for each. */
const narrow = { ...many, reservedConcurrency: 1, account } as const;

/** One cluster with fewer environments than its relay makes calls: Lambda is the limit. */
const scarce = { ...ordinary, reservedConcurrency: 8 } as const;

/** Nodes: each with one of two tokens. */
const join = { ...ordinary, requesters: 2, joins: true } as const;

/** Both functions of each cluster reserve. */
const joinMany = {
  ...join,
  clusters: 500,
  account: { ...account, concurrency: 2 * 500 * 40 + lambda.unreservable },
} as const;

/** Of five hundred, or fewer with so much less of everything. */
function flooded(clusters: number): Omit<Scenario, 'name'> {
  const share = clusters / 500;
  return {
    ...wide,
    clusters,
    requests: 20 * clusters,
    account: {
      ...account,
      signaturesPerSecond: share * kms.signaturesPerSecond,
      concurrency: clusters * wide.reservedConcurrency + lambda.unreservable,
    },
    floods: [{ requests: share * 20_000, cluster: 0, requester: 'flood', from: 0 }],
  };
}

const hour = 3_600;
const sizes = [
  ['1k', 1_000],
  ['10k', 10_000],
  ['100k', 100_000],
] as const;

export const scenarios: readonly Scenario[] = [
  ...sizes.flatMap(([size, requests]): Scenario[] => [
    { ...ordinary, name: `one-${size}`, requests },
    { ...ordinary, name: `one-${size}-hour`, requests, overSeconds: hour },
    { ...wide, name: `wide-${size}`, requests },
    { ...many, name: `many-${size}`, requests },
    { ...many, name: `many-${size}-hour`, requests, overSeconds: hour },
    { ...narrow, name: `narrow-${size}`, requests },
  ]),
  { ...narrow, name: 'narrow-500-10k', requests: 10_000, throttledStatus: 500 },
  { ...scarce, name: 'scarce-1k', requests: 1_000 },
  { ...scarce, name: 'scarce-500-1k', requests: 1_000, throttledStatus: 500 },
  { ...join, name: 'join-100', requests: 100 },
  { ...join, name: 'join-1k', requests: 1_000 },
  { ...join, name: 'join-1k-others', requests: 1_000, others: 100 },
  { ...join, name: 'join-10k', requests: 10_000 },
  { ...join, name: 'fleet-1k', requests: 1_000, serves: true },
  { ...join, name: 'fleet-10k', requests: 10_000, serves: true },
  { ...join, name: 'fleet-10k-one-token', requests: 10_000, requesters: 1, serves: true },
  // EC2's quota was raised to five times as much, and all that is ours to it: docs/sizing.md.
  {
    ...join,
    name: 'fleet-10k-raised',
    requests: 10_000,
    serves: true,
    concurrency: 128,
    inFlightPerRequester: 96,
    reservedConcurrency: 100,
    throttle: { rate: 600, burst: 1_200 },
    account: { ...account, describes: { perSecond: 100, atOnce: 500 } },
  },
  { ...join, name: 'join-few-1k', clusters: 11, requests: 1_000 },
  { ...join, name: 'join-few-10k', clusters: 11, requests: 10_000 },
  { ...joinMany, name: 'join-many-1k', requests: 1_000 },
  { ...joinMany, name: 'join-many-1k-others', requests: 1_000, others: 500 },
  { ...joinMany, name: 'join-many-10k', requests: 10_000 },
  { ...wide, name: 'cold-10k', requests: 10_000, tableWriteUnits: dynamodb.writeUnits },
  // The table may have grown when the second wave comes.
  {
    ...wide,
    name: 'cold-twice-50k',
    requests: 50_000,
    tableWriteUnits: dynamodb.writeUnits,
    floods: [{ requests: 50_000, cluster: 0, requester: 'second', from: 2_400 }],
  },
  // One requester asks for one a second, beside another that wants thousands.
  ...[2_000, 10_000].map((requests): Scenario => {
    const seconds = requests / ordinary.throttle.rate;
    const floods = [{ requests, cluster: 0, requester: 'flood', from: 0 }];
    const name = requests === 2_000 ? 'flood-requester-2k' : 'flood-requester';
    return { ...ordinary, name, requests: seconds, requesters: 1, overSeconds: seconds, floods };
  }),
  // One cluster of many wants a thousand times as much as each other, and may have all that KMS gives.
  { ...flooded(500), name: 'flood-cluster' },
  { ...flooded(100), name: 'flood-fifth' },
  { ...wide, name: 'outage-wide-100k', requests: 100_000, outage: [20, 80] },
  { ...ordinary, name: 'outage-one-10k', requests: 10_000, outage: [20, 80] },
  { ...many, name: 'outage-many-100k', requests: 100_000, outage: [20, 80] },
  { ...ordinary, name: 'away-22', requests: 22, away: { from: 0, until: 3 } },
  { ...ordinary, name: 'away-22-later', requests: 22, away: { from: 0, until: 3, retryAfterSeconds: 2 } },
  { ...ordinary, name: 'away-minute-1k', requests: 1_000, away: { from: 0, until: 60 } },
  { ...many, name: 'away-many-10k', requests: 10_000, away: { from: 0, until: 30 } },
];
