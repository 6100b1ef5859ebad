/** One scenario from its first request until all are signed, in virtual time. */
import { createRelay } from '../../../lambdas/watch-relay/relay.ts';
import type { SignerPolicy } from '../../../lambdas/watch-relay/settings/options.ts';
import { createRandom } from '../random.ts';
import { epoch } from '../runtime.ts';
import { clockOf, createTimeline } from '../../harness/determinism/virtual-time.ts';
import { createAccount, services } from './aws/account.ts';
import type { Count, Service, World } from './aws/account.ts';
import { createApiServer } from './api-server.ts';
import { createArrivals, kinds, signers, uidOf } from './arrivals.ts';
import type { Arrivals, Kind } from './arrivals.ts';
import { createAttestationTable } from './aws/attestation-table.ts';
import { createAttestations } from './aws/attestations.ts';
import type { Pairs } from './certificate.ts';
import { createEndpoint } from './aws/endpoint.ts';
import { boundsOf, fewestCalls, put } from './floor.ts';
import type { Bounds } from './floor.ts';
import type { Scenario } from './scenarios.ts';
import { createTable, spreadOf } from './aws/table.ts';
import type { Table } from './aws/table.ts';
import { kubelet } from './numbers.ts';
import { evenly, flooding } from './wanted.ts';
import type { Wanted } from './wanted.ts';

export interface Waits {
  readonly median: number;
  readonly p99: number;
  readonly longest: number;
}

export interface Result extends Bounds {
  readonly scenario: string;
  readonly requests: number;
  readonly clusters: number;
  readonly signed: number;
  /** From the first request to the last certificate. */
  readonly seconds: number;
  /** `seconds` beside the floor. */
  readonly ratio: number;
  /** `seconds` beside the pace. */
  readonly paceRatio: number;
  readonly calls: Readonly<Record<Service, Count>>;
  /** Of each service, calls beside the fewest that could have done it. */
  readonly callRatios: Readonly<Partial<Record<Service, number>>>;
  readonly worstCallRatio: number;
  readonly waits: Waits;
  /** Of the serving certificates, from their requests on. */
  readonly serving?: Waits & { readonly answered: number };
  /** Of the other kinds; in a flood, of all requesters that do not flood. */
  readonly others?: Waits & { readonly answered: number };
  /** Of clusters, or of requesters where there is one cluster: the mean wait of the worst off, beside the mean of all. */
  readonly unfairness: number;
  readonly dollars: number;
  readonly mostRunning: number;
  readonly steps: number;
}

/** Where nodes join: what countersign.yaml says of each signer. Approved by another approver, if not here. */
const policies: ReadonlyMap<string, SignerPolicy> = new Map<string, SignerPolicy>([
  [
    signers.join,
    {
      approval: 'approve',
      kind: 'kube-apiserver-client-kubelet',
      attestation: { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false },
    },
  ],
  [signers.serving, { approval: 'approve', kind: 'kubelet-serving' }],
  [
    signers.nodeServing,
    {
      approval: 'approve',
      kind: 'kubelet-serving',
      attestation: { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false },
    },
  ],
]);
/** Virtual. After that it will not end any more. */
const mostMilliseconds = 4 * 3_600_000;
/** Lists and watches of the relays are through with this. */
const settleMilliseconds = 5_000;

interface Cluster {
  readonly arrivals: Arrivals;
  readonly table: Table;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

export async function runScenario(scenario: Scenario, pairs: Pairs, seed = 1): Promise<Result> {
  const random = createRandom(`scale ${scenario.name} ${seed}`);
  const timeline = createTimeline(random.stream('order').next);
  const world: World = { timeline, random };
  const mainKind: Kind = scenario.joins === true ? 'join' : 'approved';
  const others = scenario.others ?? 0;
  const serves = scenario.serves === true;
  const wanted = kinds.filter((kind) => kind === mainKind || (kind === 'nodeServing' ? serves : others > 0));
  const certificates = new Map(Object.values(pairs).map(({ request, certificatePem }) => [request, certificatePem]));
  const outage = scenario.outage?.map((second) => settleMilliseconds + second * 1_000) as [number, number] | undefined;
  const account = createAccount(world, { ...scenario.account, ...(outage === undefined ? {} : { outage }) });

  const clusters = Array.from({ length: scenario.clusters }, (_, number): Cluster => {
    const own: World = { timeline, random: random.stream(`cluster ${number}`) };
    const api = createApiServer(own, account);
    const table = createTable(own, account, scenario.tableWriteUnits);
    const attestations = createAttestations(
      own,
      account,
      createAttestationTable(own, account, scenario.tableWriteUnits),
    );
    const away = scenario.away;
    const endpoint = createEndpoint(own, account, table, attestations, {
      throttle: scenario.throttle,
      reservedConcurrency: scenario.reservedConcurrency,
      throttledStatus: scenario.throttledStatus,
      certificates,
      ...(away === undefined
        ? {}
        : {
            away: {
              ...away,
              from: settleMilliseconds + away.from * 1_000,
              until: settleMilliseconds + away.until * 1_000,
            },
          }),
    });
    const clock = clockOf(timeline, epoch);
    const relay = createRelay(
      {
        signerNames: wanted.map((kind) => signers[kind]),
        policies,
        concurrency: scenario.concurrency,
        inFlightPerRequester: scenario.inFlightPerRequester,
        graceMilliseconds: 1_000,
        identity: `relay-${number}`,
      },
      { api, endpoint, clock, random: own.random.stream('relay').next, log: silent },
    );
    const stop = new AbortController();
    const kubelets = own.random.stream('kubelets');
    const servesAfter = () => kubelets.between(...kubelet.servesAfterMilliseconds);
    const arrivals = createArrivals(own, api, attestations, pairs, serves ? servesAfter : undefined);
    return { arrivals, table, stop, ended: relay.run(stop.signal) };
  });

  let created = 0;
  const chance = random.stream('arrivals');
  const { requests, overSeconds } = scenario;
  const main = [
    ...evenly(scenario, { kind: mainKind, count: requests, overSeconds }, chance),
    ...flooding(scenario, mainKind),
  ];
  const bounds = boundsOf(
    scenario,
    main,
    ({ name, cluster }) => clusters[cluster]?.table.partitionsOf(spreadOf(uidOf(name))) ?? [],
  );
  const asides = wanted
    .filter((kind) => kind !== mainKind && kind !== 'nodeServing')
    .flatMap((kind) => evenly(scenario, { kind, count: others, overSeconds: bounds.pace.seconds }, chance));
  const all: readonly Wanted[] = [...main, ...asides];
  for (const { kind, name, cluster, requester, at } of all) {
    timeline.after(settleMilliseconds + at * 1_000, () => {
      created += 1;
      clusters[cluster]?.arrivals.ask(kind, name, requester);
    });
  }

  let steps = 0;
  let last = 0;
  const done = (): boolean => {
    if (created < all.length) return false;
    // Asked at every step of many clusters: the first one that is not through answers.
    while (last < clusters.length && clusters[last]?.arrivals.waiting === 0) last += 1;
    return last === clusters.length;
  };
  while (!done() && timeline.now() < mostMilliseconds && (await timeline.step())) steps += 1;
  for (const { stop } of clusters) stop.abort(new Error('the end'));
  for (let more = 0; more < 1_000 && (await timeline.step()); more += 1);

  return {
    ...measure(scenario, { mainKind, requests: main.length, ...bounds }, clusters, account.counts, account.starts()),
    dollars: account.dollars(),
    mostRunning: account.mostRunning(),
    steps,
  };
}

function measure(
  scenario: Scenario,
  { mainKind, requests, pace, floor }: Bounds & { readonly mainKind: Kind; readonly requests: number },
  clusters: readonly Cluster[],
  calls: Readonly<Record<Service, Count>>,
  starts: number,
): Omit<Result, 'dollars' | 'mostRunning' | 'steps'> {
  const floods = new Set(scenario.floods?.map(({ requester }) => requester));
  const groups = new Map<string, number[]>();
  const waits: number[] = [];
  const asides: number[] = [];
  const count = { requests: 0, proofs: 0, judged: 0, seen: 0 };
  const served: number[] = [];
  let [first, end] = [Number.POSITIVE_INFINITY, 0];
  clusters.forEach(({ arrivals }, number) => {
    for (const { kind, requester, from, until } of arrivals.lives) {
      if (until === undefined) continue;
      count.requests += 1;
      if (kind === 'join') count.proofs += 1;
      if (kind === 'serving') count.judged += 1;
      const wait = (until - from) / 1_000;
      if (kind === 'nodeServing') {
        count.seen += 1;
        served.push(wait);
        end = Math.max(end, until);
        continue;
      }
      if (kind !== mainKind) {
        asides.push(wait);
        continue;
      }
      waits.push(wait);
      if (floods.size > 0 && !floods.has(requester)) asides.push(wait);
      put(groups, clusters.length > 1 ? String(number) : requester, wait);
      first = Math.min(first, from);
      end = Math.max(end, until);
    }
  });
  const seconds = (end - first) / 1_000;
  const minimum = fewestCalls(count.requests, starts, count);
  const callRatios = Object.fromEntries(
    services.flatMap((service) => {
      const fewest = minimum[service];
      return fewest === undefined ? [] : [[service, calls[service].calls / fewest]];
    }),
  ) as Partial<Record<Service, number>>;
  const means = [...groups.values()].map(mean);
  return {
    scenario: scenario.name,
    requests,
    clusters: scenario.clusters,
    signed: waits.length,
    seconds,
    pace,
    floor,
    ratio: seconds / floor.seconds,
    paceRatio: seconds / pace.seconds,
    calls,
    callRatios,
    worstCallRatio: Math.max(...Object.values(callRatios)),
    waits: waitsOf(waits),
    ...(served.length === 0 ? {} : { serving: { answered: served.length, ...waitsOf(served) } }),
    ...(asides.length === 0 ? {} : { others: { answered: asides.length, ...waitsOf(asides) } }),
    unfairness: Math.max(...means) / mean(waits),
  };
}

function waitsOf(waits: readonly number[]): Waits {
  const sorted = waits.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { median: at(0.5), p99: at(0.99), longest: sorted.at(-1) ?? 0 };
}

function mean(list: readonly number[]): number {
  return list.reduce((sum, each) => sum + each, 0) / list.length;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };
