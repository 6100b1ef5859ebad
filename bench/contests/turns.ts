/** One turn of one contender: a few seconds of work, with the times of its certificates and its CPU time. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Contender, RunningContender, Surroundings } from '../contenders/contender.ts';
import type { Observer } from '../requests/observer.ts';
import { countFromNow, startedAt, usageOf, usageOfGroups, watchForOthers } from '../measure/process-usage.ts';
import { checkCertificates } from '../requests/requests.ts';
import type { NodeRequest } from '../requests/requests.ts';
import type { Turn } from '../results.ts';
import { restore, restoreSteadily, removeAll } from '../requests/request-snapshot.ts';
import type { Snapshot } from '../requests/request-snapshot.ts';
import { percentile } from '../measure/statistics.ts';

/** A contender and the control plane that it has to itself. */
export interface Site {
  readonly contender: Contender;
  readonly surroundings: Surroundings;
  readonly observer: Observer;
  readonly running: RunningContender;
}

export type Measured = Omit<Turn, 'round'>;

/** How long a turn may go on without a further certificate. */
const stalledMilliseconds = 60_000;
/** The pause between turns, in which the contender finishes its work on removed requests. */
const restMilliseconds = 300;

/** All requests appear at once before a contender that is warm and idle. t0 is the start of writing them. */
export async function burst(site: Site, snapshot: Snapshot, given: readonly NodeRequest[] = []): Promise<Measured> {
  const before = begin(site);
  const t0 = performance.now();
  await restoreAll(site, snapshot);
  return finish(site, snapshot.names, () => t0, before, given);
}

/** The requests exist before the contender is started. t0 is the start of its first process. */
export async function backlog(
  site: Omit<Site, 'running'>,
  snapshot: Snapshot,
  start: () => Promise<RunningContender>,
): Promise<Measured> {
  await restoreAll(site, snapshot);
  await sleep(restMilliseconds);
  const before = begin(site);
  const running = await start();
  const t0 = Math.min(...running.processes.map(({ pid }) => startedAt(pid)));
  return finish({ ...site, running }, snapshot.names, () => t0, before);
}

/** `perSecond` requests appear each second, even if earlier ones are not signed yet. */
export async function steady(site: Site, snapshot: Snapshot, perSecond: number): Promise<Measured> {
  const before = begin(site);
  const restoredAt = await restoreSteadily(site.surroundings.controlPlane, snapshot, perSecond);
  return finish(site, snapshot.names, (name) => restoredAt.get(name) ?? Number.NaN, before);
}

/** A request that waits for one call: its creation, or its approval. */
export interface PendingCall {
  readonly name: string;
  readonly send: () => Promise<unknown>;
}

/** Each request is sent when the one before has its certificate. */
export async function oneByOne(
  site: Site,
  requests: readonly PendingCall[],
  given: readonly NodeRequest[] = [],
): Promise<Measured> {
  const { observer, running } = site;
  const before = begin(site);
  const sentAt = new Map<string, number>();
  const kms: number[] = [];
  const rest: number[] = [];
  for (const { name, send } of requests) {
    const sent = performance.now();
    sentAt.set(name, sent);
    await send();
    await observer.allCertified([name], stalledMilliseconds, running.processes);
    const certified = observer.certifiedAt.get(name) ?? Number.NaN;
    const inKms = running.kmsMilliseconds?.(sent, certified);
    if (inKms === undefined) continue;
    kms.push(inKms);
    rest.push(certified - sent - inKms);
  }
  const names = requests.map(({ name }) => name);
  const measured = await finish(site, names, (name) => sentAt.get(name) ?? Number.NaN, before, given);
  return kms.length === 0 ? measured : { ...measured, kms: percentile(kms, 0.5), withoutKms: percentile(rest, 0.5) };
}

/** A burst that is not measured, so that programs and libraries are loaded and the compiler has seen the code. */
export async function warmUp(site: Site, snapshot: Snapshot, given: readonly NodeRequest[] = []): Promise<void> {
  await burst(site, snapshot, given);
}

interface Baseline {
  readonly apiServer: number;
  readonly own: ReadonlyMap<number, number>;
  readonly others: () => number;
}

function begin(site: Omit<Site, 'running'> & { readonly running?: RunningContender }): Baseline {
  const { running, surroundings, observer } = site;
  observer.forget();
  return {
    apiServer: apiServerSeconds(surroundings),
    // A process that is started later is counted from its start.
    own: running === undefined ? new Map() : countFromNow([...running.groups, ...running.besides]),
    others: watchForOthers(),
  };
}

/** Waits until all requests have certificates, checks these, and removes the requests. `beganAt` gives each one's t0. */
async function finish(
  { surroundings, observer, running }: Site,
  names: readonly string[],
  beganAt: (name: string) => number,
  before: Baseline,
  given: readonly NodeRequest[] = [],
): Promise<Measured> {
  await observer.allCertified(names, stalledMilliseconds, running.processes);
  const othersShare = before.others();
  const processes = usageOfGroups(running.groups, before.own);
  const besides = usageOfGroups(running.besides, before.own);
  const apiServer = apiServerSeconds(surroundings) - before.apiServer;
  const latencies = names.map((name) => (observer.certifiedAt.get(name) ?? Number.NaN) - beganAt(name));
  const first = Math.min(...names.map(beganAt));
  const last = Math.max(...names.map((name) => observer.certifiedAt.get(name) ?? Number.NaN));
  await checkCertificates(surroundings.controlPlane, names, running.caPem, given);
  await removeAll(surroundings.controlPlane);
  await sleep(restMilliseconds);
  return {
    requests: names.length,
    first: Math.min(...latencies),
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    all: last - first,
    processes,
    besides,
    apiServerSeconds: apiServer,
    othersShare,
  };
}

function restoreAll({ surroundings, observer }: Omit<Site, 'running'>, snapshot: Snapshot): Promise<void> {
  return restore(surroundings.controlPlane, snapshot, () => observer.added());
}

function apiServerSeconds({ controlPlane }: Surroundings): number {
  return usageOf(controlPlane.apiServer.pid).cpuSeconds;
}
