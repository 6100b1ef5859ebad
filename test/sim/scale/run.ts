/** One scenario from its first request until all are signed, in virtual time. */
import { createRelay } from '../../../lambdas/watch-relay/relay.ts';
import type { Clock } from '../../../lambdas/watch-relay/clock.ts';
import { createRandom } from '../random.ts';
import { epoch } from '../stage.ts';
import { createTimeline } from '../timeline.ts';
import { createAccount, services } from './account.ts';
import type { Count, Service, World } from './account.ts';
import { createApiServer } from './api-server.ts';
import type { ApiServer } from './api-server.ts';
import type { Pair } from './certificate.ts';
import { createEndpoint } from './endpoint.ts';
import { fewestCalls, floorSeconds } from './floor.ts';
import type { Scenario } from './scenarios.ts';
import { createTable } from './table.ts';

export interface Result {
  readonly scenario: string;
  readonly requests: number;
  readonly clusters: number;
  readonly signed: number;
  /** From the first request to the last certificate. */
  readonly seconds: number;
  /** The requests, by the tightest quota; which one that is. */
  readonly floor: { readonly seconds: number; readonly quota: string };
  /** `seconds` beside the time in which the requests came, or the floor where that is longer. */
  readonly ratio: number;
  readonly calls: Readonly<Record<Service, Count>>;
  /** Of each service, calls beside the fewest that could have done it. */
  readonly callRatios: Readonly<Partial<Record<Service, number>>>;
  readonly worstCallRatio: number;
  readonly waits: { readonly median: number; readonly p99: number; readonly longest: number };
  /** Of clusters, or of requesters where there is one cluster: the mean wait of the worst off, beside the mean of all. */
  readonly unfairness: number;
  readonly dollars: number;
  readonly mostRunning: number;
  readonly steps: number;
}

const signerName = 'kubernetes.io/kube-apiserver-client';
/** Virtual. After that it will not end any more. */
const mostMilliseconds = 4 * 3_600_000;
/** Lists and watches of the relays are through with this. */
const settleMilliseconds = 5_000;

interface Cluster {
  readonly api: ApiServer;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

export async function runScenario(scenario: Scenario, pair: Pair, seed = 1): Promise<Result> {
  const random = createRandom(`scale ${scenario.name} ${seed}`);
  const timeline = createTimeline(random.stream('order'));
  const world: World = { timeline, random };
  const outage = scenario.outage?.map((second) => settleMilliseconds + second * 1_000) as [number, number] | undefined;
  const account = createAccount(world, { ...scenario.account, ...(outage === undefined ? {} : { outage }) });

  const clusters = Array.from({ length: scenario.clusters }, (_, number): Cluster => {
    const own: World = { timeline, random: random.stream(`cluster ${number}`) };
    const api = createApiServer(own, account, { signerName, request: pair.request });
    const table = createTable(own, account, scenario.tableWriteUnits);
    const away = scenario.away;
    const endpoint = createEndpoint(own, account, table, {
      throttle: scenario.throttle,
      reservedConcurrency: scenario.reservedConcurrency,
      certificatePem: pair.certificatePem,
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
    const clock: Clock = {
      now: () => epoch + Math.floor(timeline.now()),
      monotonic: () => timeline.now(),
      after: (milliseconds, run) => timeline.after(milliseconds, run),
    };
    const relay = createRelay(
      {
        signerNames: [signerName],
        policies: new Map(),
        concurrency: scenario.concurrency,
        inFlightPerRequester: scenario.inFlightPerRequester,
        graceMilliseconds: 1_000,
        identity: `relay-${number}`,
      },
      { api, endpoint, clock, random: own.random.stream('relay').next, log: silent },
    );
    const stop = new AbortController();
    return { api, stop, ended: relay.run(stop.signal) };
  });

  let created = 0;
  const arrivals = random.stream('arrivals');
  for (let number = 0; number < scenario.requests; number += 1) {
    const cluster = clusters[number % clusters.length];
    const requester = `requester-${Math.floor(number / clusters.length) % scenario.requesters}`;
    const at = settleMilliseconds + arrivals.next() * scenario.overSeconds * 1_000;
    timeline.after(at, () => {
      created += 1;
      cluster?.api.create(`csr-${number}`, `uid-${number}`, requester);
    });
  }

  let steps = 0;
  let last = 0;
  const done = (): boolean => {
    if (created < scenario.requests) return false;
    // Asked at every step of many clusters: the first one that is not through answers.
    while (last < clusters.length && clusters[last]?.api.waiting === 0) last += 1;
    return last === clusters.length;
  };
  while (!done() && timeline.now() < mostMilliseconds && (await timeline.step())) steps += 1;
  for (const { stop } of clusters) stop.abort(new Error('the end'));
  for (let more = 0; more < 1_000 && (await timeline.step()); more += 1);

  return {
    ...measure(scenario, clusters, account.counts, account.starts()),
    dollars: account.dollars(),
    mostRunning: account.mostRunning(),
    steps,
  };
}

function measure(
  scenario: Scenario,
  clusters: readonly Cluster[],
  calls: Readonly<Record<Service, Count>>,
  starts: number,
): Omit<Result, 'dollars' | 'mostRunning' | 'steps'> {
  const groups = new Map<string, number[]>();
  const waits: number[] = [];
  let [first, end] = [Number.POSITIVE_INFINITY, 0];
  clusters.forEach(({ api }, number) => {
    for (const { requester, from, until } of api.lives.values()) {
      if (until === undefined) continue;
      const wait = (until - from) / 1_000;
      waits.push(wait);
      const group = clusters.length > 1 ? String(number) : requester;
      groups.set(group, [...(groups.get(group) ?? []), wait]);
      first = Math.min(first, from);
      end = Math.max(end, until);
    }
  });
  waits.sort((a, b) => a - b);
  const at = (share: number): number => waits[Math.min(waits.length - 1, Math.floor(share * waits.length))] ?? 0;
  const floor = floorSeconds(scenario);
  const seconds = (end - first) / 1_000;
  const minimum = fewestCalls(scenario.requests, starts);
  const callRatios = Object.fromEntries(
    services.flatMap((service) => {
      const fewest = minimum[service];
      return fewest === undefined ? [] : [[service, calls[service].calls / fewest]];
    }),
  ) as Partial<Record<Service, number>>;
  const means = [...groups.values()].map(mean);
  return {
    scenario: scenario.name,
    requests: scenario.requests,
    clusters: scenario.clusters,
    signed: waits.length,
    seconds,
    floor,
    ratio: seconds / Math.max(floor.seconds, scenario.overSeconds),
    calls,
    callRatios,
    worstCallRatio: Math.max(...Object.values(callRatios)),
    waits: { median: at(0.5), p99: at(0.99), longest: waits.at(-1) ?? 0 },
    unfairness: Math.max(...means) / mean(waits),
  };
}

function mean(list: readonly number[]): number {
  return list.reduce((sum, each) => sum + each, 0) / list.length;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };
