/**
 * What a run is measured by: the fewest calls; the time that the requests take at the rate of the tightest quota; and the
 * floor, which no client could beat, however it asks: everything that quotas let through at once is taken at once, what
 * has to wait for a quota passes it the moment it may, and nothing else takes longer than the models allow at best.
 */
import type { Service } from './aws/account.ts';
import { throughAt } from './gate.ts';
import type { Gate } from './gate.ts';
import { apiServer, dynamodb, ec2, kms, lambda, networkMilliseconds, sts } from './numbers.ts';
import type { Scenario } from './scenarios.ts';
import type { Wanted } from './wanted.ts';

/**
 * docs/internals/call-budget.md. Each environment that is started asks the key once and reads the two items of its CA. `proofs` of
 * the requests are of nodes that join, `judged` are shown to attest and prove nothing, `seen` are
 * serving requests of nodes that have just joined.
 */
interface Kinds {
  readonly proofs: number;
  readonly judged: number;
  readonly seen: number;
}

export function fewestCalls(
  requests: number,
  starts: number,
  { proofs, judged, seen }: Kinds = { proofs: 0, judged: 0, seen: 0 },
): Partial<Record<Service, number>> {
  const calls = requests + proofs + judged + seen;
  return {
    frontDoor: calls,
    lambda: calls,
    kms: requests,
    kmsPublicKey: starts,
    // Of a signed request: the locks of its key and its node, and two writes. Of a proof: attest's, and what sign reads of it.
    dynamodb: 4 * requests + 2 * starts + 8 * proofs + 9 * seen,
    ...(proofs === 0 ? {} : { sts: proofs, ec2: proofs }),
  };
}

const least = ([milliseconds]: readonly [number, number]): number => milliseconds / 1_000;
const mean = ([low, high]: readonly [number, number]): number => (low + high) / 2_000;

/** At best, until a warm function has the first unit of the table, and from the last one until the certificate is there. */
const toDoor = least(apiServer.watchMilliseconds) + least(networkMilliseconds);
const toTable = toDoor + least(lambda.workMilliseconds) / 2 + least(dynamodb.milliseconds) / 2;
const toKey = toTable + least(dynamodb.milliseconds) / 2 + least(kms.milliseconds) / 2;
const fromTable =
  least(dynamodb.milliseconds) / 2 +
  least(lambda.workMilliseconds) / 2 +
  least(networkMilliseconds) +
  least(apiServer.writeMilliseconds);
const fromKey = least(kms.milliseconds) / 2 + least(dynamodb.milliseconds) / 2 + fromTable;
const fromDoor = toKey - toDoor + fromKey;
/** More than that for the first one of a cluster: an environment starts, and reads which CA it signs with. */
const coldStart = least(lambda.coldMilliseconds) + Math.max(2 * least(dynamodb.milliseconds), least(kms.milliseconds));
/** A node that joins: until EC2 and STS are asked, and from their answers; and until sign is asked about it. */
const toAws = toDoor + least(lambda.workMilliseconds) / 2;
const fromAws =
  least(dynamodb.milliseconds) + least(networkMilliseconds) + least(apiServer.writeMilliseconds) + fromDoor;
const proving =
  least(lambda.workMilliseconds) +
  3 * least(dynamodb.milliseconds) +
  least(sts.milliseconds) +
  least(ec2.milliseconds) +
  2 * least(networkMilliseconds) +
  least(apiServer.writeMilliseconds);

/** What a call takes on average without queues and starts: of sign, of attest, and of sign as the relay sees it. */
const signSeconds = mean(lambda.workMilliseconds) + mean(kms.milliseconds) + 2 * mean(dynamodb.milliseconds);
const attestSeconds =
  mean(lambda.workMilliseconds) + 3 * mean(dynamodb.milliseconds) + mean(sts.milliseconds) + mean(ec2.milliseconds);
const relaySeconds = signSeconds + 2 * mean(networkMilliseconds) + 0.017;

export interface Bounds {
  /** At the rate of the tightest quota, as if it let nothing through at once. */
  readonly pace: { readonly seconds: number; readonly quota: string };
  /** What no client could beat, from the first request to the last certificate; `quota`: which one leaves no less. */
  readonly floor: { readonly seconds: number; readonly quota: string };
}

/** A gate, the least time from there to the certificate, and how many may be between both during an outage. */
type Runtime = Gate & { readonly after: number; readonly underWay: number };

/** `partitionsOf`: which partitions of its cluster's table a request needs. */
export function boundsOf(
  scenario: Scenario,
  wanted: readonly Wanted[],
  partitionsOf: (wanted: Wanted) => readonly number[],
): Bounds {
  const { outage, away } = scenario;
  const sorted = wanted.toSorted((a, b) => a.at - b.at);
  const stages = stagesOf(scenario, sorted, partitionsOf);
  // During an outage nothing can be signed.
  const [from, to] = outage ?? [away?.from ?? 0, away?.until ?? 0];
  const begin = sorted[0]?.at ?? 0;
  const floors = stages.map(
    (runtime) =>
      [runtime.name, throughAt(runtime, { from, to, underWay: runtime.underWay }) + runtime.after - begin] as const,
  );
  const paces = [
    ...stages.map(
      (runtime) =>
        [
          runtime.name,
          throughAt({ ...runtime, burst: 0 }, { from, to, underWay: 0 }) - (runtime.asks[0] ?? 0),
        ] as const,
    ),
    ...inHand(scenario, wanted).map(([name, seconds]) => [name, seconds + to - from] as const),
  ];
  const [floor, pace] = [longest(floors), longest(paces)];
  return { floor, pace };
}

function stagesOf(
  { throttle, reservedConcurrency, tableWriteUnits, account, joins, clusters, outage, away }: Scenario,
  sorted: readonly Wanted[],
  partitionsOf: (wanted: Wanted) => readonly number[],
): readonly Runtime[] {
  /** By cluster: when what follows the first start of an environment can begin, of sign and of attest. */
  const ready: number[] = [];
  const readyToProve: number[] = [];
  const atKey: number[] = [];
  const atAws: number[] = [];
  const atDoor = new Map<number, number[]>();
  const atPartition = new Map<string, number[]>();
  for (const one of sorted) {
    const { cluster, at } = one;
    const proves = joins === true ? Math.max(at, (readyToProve[cluster] ??= at + least(lambda.coldMilliseconds))) : at;
    const signs = joins === true ? proves + proving : at;
    const served = Math.max(signs, (ready[cluster] ??= signs + coldStart));
    atAws.push(proves + toAws);
    atKey.push(served + toKey);
    put(atDoor, cluster, at + toDoor);
    for (const partition of partitionsOf(one)) put(atPartition, `${cluster} ${partition}`, served + toTable);
  }
  for (const asks of [atKey, atAws]) asks.sort((a, b) => a - b);

  const { signaturesPerSecond, describes } = account;
  const calls = reservedConcurrency * lambda.callsPerSecondEach;
  const units = Math.min(tableWriteUnits, dynamodb.partitionWriteUnits);
  // A function that waits for KMS may be the first afterwards; a front door that is shut lets no request in.
  const waiting = outage === undefined && away?.from === 0 ? 0 : reservedConcurrency;
  const underWay = joins === true ? Number.POSITIVE_INFINITY : waiting;
  const beforeKey = outage === undefined ? clusters * underWay : 0;
  const stages: Runtime[] = [
    {
      name: 'KMS signatures',
      ...bucket(signaturesPerSecond),
      each: 1,
      asks: atKey,
      after: fromKey,
      underWay: beforeKey,
    },
    ...[...atDoor.values()].flatMap((asks) => [
      {
        name: 'front door',
        ...bucket(throttle.rate, throttle.burst),
        each: joins === true ? 2 : 1,
        asks,
        after: fromDoor,
        underWay,
      },
      { name: 'calls of the function', ...bucket(calls), each: 1, asks, after: fromDoor, underWay },
    ]),
  ];
  if (joins === true) {
    const proof = { each: 1, asks: atAws, after: fromAws, underWay };
    const { perSecond, atOnce } = describes;
    stages.push({ name: 'EC2 DescribeInstances', ...bucket(perSecond, atOnce), ...proof });
    stages.push({ name: 'STS', ...bucket(sts.callsPerSecond), ...proof });
    // Nodes ask again with another UID, which falls elsewhere.
    return stages;
  }
  for (const asks of atPartition.values()) {
    stages.push({
      name: 'one partition of the table',
      ...bucket(units),
      each: dynamodb.intentUnits + dynamodb.recordUnits,
      asks,
      after: fromTable,
      underWay,
      // Once for what a peak leaves, and once for heat, with which the first minute may have ended.
      doublesInMinutes: [dynamodb.doublesInMilliseconds / 60_000, dynamodb.splitsAfterMinutes - 1],
    });
  }
  return stages;
}

/** What so many at once take on average: no bound, for some are faster. */
function inHand(scenario: Scenario, wanted: readonly Wanted[]): readonly (readonly [string, number])[] {
  const { account, reservedConcurrency, clusters, concurrency, requesters, inFlightPerRequester, joins } = scenario;
  const ofClusters: number[] = Array.from({ length: clusters }, () => 0);
  for (const { cluster } of wanted) ofClusters[cluster] = (ofClusters[cluster] ?? 0) + 1;
  const most = Math.max(...ofClusters);
  const both = signSeconds + (joins === true ? attestSeconds : 0);
  return [
    ['environments of the function', (most * signSeconds) / reservedConcurrency],
    ['environments of attest', joins === true ? (most * attestSeconds) / reservedConcurrency : 0],
    ['concurrency of the account', (wanted.length * both) / account.concurrency],
    ["the relay's concurrency", (most * relaySeconds) / Math.min(concurrency, requesters * inFlightPerRequester)],
  ];
}

function bucket(perSecond: number, burst = perSecond): { readonly perSecond: number; readonly burst: number } {
  return { perSecond, burst };
}

function longest(times: readonly (readonly [string, number])[]): { readonly seconds: number; readonly quota: string } {
  const [quota, seconds] = times.reduce((most, each) => (each[1] > most[1] ? each : most));
  return { seconds, quota };
}

export function put<K>(lists: Map<K, number[]>, key: K, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
