/**
 * What every contender goes through, one after the other, on the same control plane and with the same requests:
 *
 *   warm-up   started once with 100 requests waiting, and thrown away: programs and libraries are in the page cache
 *   backlog   N approved requests wait; the contender is started. t0 is when its first process was started
 *   burst     the same process, now warm and idle; N approved requests come up at once. t0 is when they were put there
 *   steady    the same process; approved requests come up one by one, so many in a second, whatever becomes of them
 *   sequence  the same process; one request after the other is approved once the one before has its certificate
 *
 * Ended by a watch of the benchmark's own seeing the last certificate. Where no backlog is measured, the process that was
 * warmed up is the one that goes on.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlPlane } from '../test/harness/control-plane.ts';
import type { RunningContender, StartOptions, Surroundings } from './contender-processes.ts';
import type { Contender } from './contenders.ts';
import { observeRequests } from './observer.ts';
import type { Observer } from './observer.ts';
import {
  countFromNow,
  quietMoment,
  quietShare,
  startedAt,
  usageOf,
  usageOfGroups,
  watchForOthers,
} from './process-usage.ts';
import { approve, checkCertificates, createApproved, createRequests } from './requests.ts';
import type { ContenderResults, MassResult, SequenceResult, SteadyResult } from './results.ts';
import { release, releaseSteadily, shelve } from './shelf.ts';
import type { Shelf } from './shelf.ts';
import { percentile } from './statistics.ts';

export interface Plan {
  /** None is measured where it is empty. */
  readonly backlog: number;
  readonly bursts: readonly number[];
  readonly steady: { readonly perSecond: number; readonly seconds: number };
  readonly sequence: number;
  /** Between the phases. */
  readonly restMilliseconds: number;
  /** How long to wait for a quiet moment before backlog and burst. */
  readonly patienceMilliseconds: number;
}

/** Approved requests, the same for every contender. Fewer are taken where the plan says so. */
export interface Shelves {
  readonly warmUp: Shelf;
  readonly backlog: Shelf;
  readonly bursts: readonly Shelf[];
  readonly steady: Shelf;
}

export async function prepareShelves(
  controlPlane: ControlPlane,
  { warmUp, backlog, bursts, steady }: Pick<Plan, 'backlog' | 'bursts' | 'steady'> & { readonly warmUp: number },
): Promise<Shelves> {
  const make = async (prefix: string, count: number): Promise<Shelf> => {
    await createApproved(controlPlane, prefix, count);
    return shelve(controlPlane);
  };
  const burstShelves: Shelf[] = [];
  for (const [index, count] of bursts.entries()) burstShelves.push(await make(`burst${index}`, count));
  return {
    warmUp: await make('warm-up', warmUp),
    backlog: await make('backlog', backlog),
    bursts: burstShelves,
    steady: await make('steady', steady.perSecond * steady.seconds),
  };
}

/** Were all processors there for the measurement? A contender below its own ceiling would not have used them. */
export function wasQuiet({ backlog, bursts }: ContenderResults, throttled: boolean): boolean {
  const masses = backlog === undefined ? bursts : [backlog, ...bursts];
  return throttled || masses.every(({ othersShare }) => othersShare <= quietShare);
}

/** Without one more certificate. */
const stalledMilliseconds = 60_000;

/** What could be measured, and why the rest could not. */
export interface Measured {
  readonly results: ContenderResults;
  readonly failure?: string;
}

export async function measure(
  contender: Contender,
  plan: Plan,
  shelves: Shelves,
  surroundings: Surroundings,
  options: StartOptions,
  say: (what: string) => void,
): Promise<Measured> {
  const { controlPlane } = surroundings;
  const observer = await observeRequests(controlPlane);
  const started = new Set<RunningContender>();
  const start = async (): Promise<RunningContender> => {
    const running = await contender.start(surroundings, options);
    started.add(running);
    return running;
  };
  const bursts: MassResult[] = [];
  let results: ContenderResults = { contender: contender.name, bursts };
  try {
    say('warm-up');
    await put(controlPlane, shelves.warmUp, observer);
    let running = plan.backlog === 0 ? await start() : await contender.start(surroundings, {});
    started.add(running);
    await observer.allCertified(shelves.warmUp.names, stalledMilliseconds, running.processes);
    const trial = {
      controlPlane,
      observer,
      get running() {
        return running;
      },
    };

    if (plan.backlog > 0) {
      await running.stop();
      started.delete(running);
      await shelve(controlPlane);
      const backlog = some(shelves.backlog, plan.backlog);
      await put(controlPlane, backlog, observer);
      await rested(plan);
      say(`backlog of ${plan.backlog}`);
      const atRest = { apiServer: apiServerSeconds(controlPlane), others: watchForOthers() };
      running = await start();
      const spawned = Math.min(...running.processes.map(({ pid }) => startedAt(pid)));
      results = { ...results, backlog: await massResult(trial, backlog.names, spawned, { ...atRest, own: new Map() }) };
    }
    for (const [index, count] of plan.bursts.entries()) {
      await shelve(controlPlane);
      await rested(plan);
      say(`burst of ${count}`);
      bursts.push(await burst(trial, some(shelves.bursts[index]!, count)));
    }
    if (plan.steady.seconds > 0) {
      await shelve(controlPlane);
      await rested(plan);
      say(`${plan.steady.perSecond} a second`);
      const count = plan.steady.perSecond * plan.steady.seconds;
      results = { ...results, steady: await steadily(trial, some(shelves.steady, count), plan.steady.perSecond) };
    }
    if (plan.sequence > 0) {
      await shelve(controlPlane);
      say(`sequence of ${plan.sequence}`);
      results = { ...results, sequence: await oneAfterTheOther(trial, contender.name, plan) };
    }
    return { results };
  } catch (error) {
    const logs = [...started].flatMap(({ processes }) =>
      processes.map((process) => `${process.name}:\n${process.logTail(8)}`),
    );
    return { results, failure: `${error instanceof Error ? error.message : String(error)}\n${logs.join('\n')}` };
  } finally {
    observer.close();
    for (const running of started) await running.stop();
    await shelve(controlPlane); // away with them: each contender finds the API server as empty as the one before
  }
}

export interface Trial {
  readonly controlPlane: ControlPlane;
  readonly observer: Observer;
  readonly running: RunningContender;
}

/** They come up at once before a contender that is warm. */
export async function burst(
  trial: Trial,
  shelf: Shelf,
  check: (names: readonly string[]) => Promise<void> = (names) =>
    checkCertificates(trial.controlPlane, names, trial.running.caPem),
): Promise<MassResult> {
  const { controlPlane, observer, running } = trial;
  const own = countFromNow([...running.groups, ...running.besides]);
  const before = { apiServer: apiServerSeconds(controlPlane), own, others: watchForOthers() };
  const released = performance.now();
  await put(controlPlane, shelf, observer);
  return massResult(trial, shelf.names, released, before, check);
}

/** Waits until all have their certificates. `before` is the CPU time spent before t0. */
async function massResult(
  { controlPlane, observer, running }: Trial,
  names: readonly string[],
  t0: number,
  before: {
    readonly apiServer: number;
    readonly own: ReadonlyMap<number, number>;
    readonly others: () => number;
  },
  check = (certified: readonly string[]): Promise<void> => checkCertificates(controlPlane, certified, running.caPem),
): Promise<MassResult> {
  await observer.allCertified(names, stalledMilliseconds, running.processes);
  const othersShare = before.others();
  const [processes, besides] = [running.groups, running.besides].map((groups) => usageOfGroups(groups, before.own));
  const apiServer = apiServerSeconds(controlPlane) - before.apiServer;
  await check(names);
  const seconds = names.map((name) => ((observer.certifiedAt.get(name) ?? Number.NaN) - t0) / 1_000);
  const all = Math.max(...seconds);
  return {
    requests: names.length,
    first: Math.min(...seconds),
    all,
    perSecond: names.length / all,
    p50: percentile(seconds, 0.5),
    p99: percentile(seconds, 0.99),
    processes: processes!,
    besides: besides!,
    apiServerSeconds: apiServer,
    othersShare,
  };
}

/** An approved request that comes up was approved that moment, as far as anybody who watches can tell. */
async function steadily(
  { controlPlane, observer, running }: Trial,
  shelf: Shelf,
  perSecond: number,
): Promise<SteadyResult> {
  const others = watchForOthers();
  const releasedAt = await releaseSteadily(controlPlane, shelf, perSecond);
  const last = Math.max(...releasedAt.values());
  await observer.allCertified(shelf.names, stalledMilliseconds, running.processes);
  const othersShare = others();
  await checkCertificates(controlPlane, shelf.names, running.caPem);
  const certified = shelf.names.map((name) => observer.certifiedAt.get(name) ?? Number.NaN);
  const latencies = shelf.names.map((name, index) => certified[index]! - (releasedAt.get(name) ?? Number.NaN));
  return {
    perSecond,
    requests: shelf.names.length,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    lag: Math.max(0, Math.max(...certified) - last),
    othersShare,
  };
}

async function oneAfterTheOther(
  { controlPlane, observer, running }: Trial,
  prefix: string,
  { sequence, restMilliseconds }: Plan,
): Promise<SequenceResult> {
  const requests = await createRequests(controlPlane, `${prefix}-sequence`, sequence);
  await sleep(restMilliseconds);
  const latencies: number[] = [];
  const kms: number[] = [];
  for (const request of requests) {
    const { name } = request.metadata;
    const sent = performance.now();
    await approve(controlPlane, request);
    await observer.allCertified([name], stalledMilliseconds, running.processes);
    const certified = observer.certifiedAt.get(name) ?? Number.NaN;
    latencies.push(certified - sent);
    if (running.kmsMilliseconds !== undefined) kms.push(running.kmsMilliseconds(sent, certified));
  }
  await checkCertificates(
    controlPlane,
    requests.map(({ metadata }) => metadata.name),
    running.caPem,
  );
  return sequenceResult(latencies, kms);
}

/** `kms`: of each, where the signature is a call; the rest is everything else. */
export function sequenceResult(latencies: readonly number[], kms: readonly number[] = []): SequenceResult {
  const rest = latencies.map((latency, index) => latency - (kms[index] ?? 0));
  return {
    requests: latencies.length,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    ...(kms.length === 0
      ? {}
      : { kms: percentile(kms, 0.5), withoutKms: { p50: percentile(rest, 0.5), p99: percentile(rest, 0.99) } }),
  };
}

function put(controlPlane: ControlPlane, shelf: Shelf, observer: Observer): Promise<void> {
  return release(controlPlane, shelf, () => observer.added());
}

function some({ names, entries }: Shelf, count: number): Shelf {
  return { names: names.slice(0, count), entries: entries.slice(0, count) };
}

async function rested({ restMilliseconds, patienceMilliseconds }: Plan): Promise<void> {
  await sleep(restMilliseconds);
  await quietMoment(patienceMilliseconds);
}

function apiServerSeconds({ apiServer }: ControlPlane): number {
  return usageOf(apiServer.pid).cpuSeconds;
}
