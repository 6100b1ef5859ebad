/**
 * What every contender goes through, one after the other, on the same control plane:
 *
 *   warm-up   started once with 100 requests waiting, and thrown away: programs and libraries are in the page cache
 *   backlog   N approved requests wait; the contender is started. t0 is when its first process was started
 *   burst     the same process, now warm and idle; N approved requests come up at once. t0 is when they were put there
 *   sequence  the same process; one request after the other is approved once the one before has its certificate
 *
 * Ended by a watch of the benchmark's own seeing the last certificate.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ControlPlane } from '../test/harness/control-plane.ts';
import type { RunningProcess } from '../test/harness/processes.ts';
import type { Contender, ContenderName, RunningContender, StartOptions } from './contenders.ts';
import { observeRequests } from './observer.ts';
import type { Observer } from './observer.ts';
import { forgetPeak, quietMoment, quietShare, startedAt, usageOf, watchForOthers } from './process-usage.ts';
import type { Usage } from './process-usage.ts';
import { approve, checkCertificates, createApproved, createRequests } from './requests.ts';
import { release, shelve } from './shelf.ts';
import { percentile } from './statistics.ts';

export interface Plan {
  readonly warmUp: number;
  readonly backlog: number;
  readonly burst: number;
  readonly sequence: number;
  /** How long to wait for a quiet moment before backlog and burst. */
  readonly patienceMilliseconds: number;
}

/** Times in seconds. */
export interface MassResult {
  readonly contender: ContenderName;
  readonly requests: number;
  /** From t0 until the benchmark saw the first, and the last, certificate. */
  readonly first: number;
  readonly all: number;
  readonly perSecond: number;
  /** Of (certificate seen − t0) over all requests. */
  readonly p50: number;
  readonly p99: number;
  /** Of each process of the contender: from t0 on; since its start, for the backlog. */
  readonly processes: readonly ProcessResult[];
  /** What the API server spent from t0 on, without etcd: the work all contenders cause. */
  readonly apiServerSeconds: number;
  /** Which share of all processors others took meanwhile, none of the above and not the benchmark. */
  readonly othersShare: number;
}

export interface ProcessResult extends Usage {
  readonly name: string;
}

export interface SequenceResult {
  readonly contender: ContenderName;
  readonly requests: number;
  /** From sending the approval until the certificate was seen, in milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

export interface ContenderResults {
  readonly backlog: MassResult;
  readonly burst: MassResult;
  readonly sequence?: SequenceResult;
}

/** Were all processors there for the measurement? A contender below its own ceiling would not have used them. */
export function wasQuiet({ backlog, burst }: ContenderResults, { ceilingPerSecond }: Contender): boolean {
  return ceilingPerSecond !== undefined || Math.max(backlog.othersShare, burst.othersShare) <= quietShare;
}

/** The default token bucket of the reference holds 30 and is full again after 1.5 s: everybody begins rested. */
const restMilliseconds = 2_000;
const giveUpMilliseconds = 60_000;

export async function measure(
  contender: Contender,
  plan: Plan,
  controlPlane: ControlPlane,
  options: StartOptions,
  say: (what: string) => void,
): Promise<ContenderResults> {
  const observer = await observeRequests(controlPlane);
  const trial: Trial = { contender, controlPlane, observer };
  let running: RunningContender | undefined;
  try {
    say('warm-up');
    const throwAway = await createApproved(controlPlane, `${contender.name}-warm-up`, plan.warmUp);
    running = await contender.start(controlPlane, {});
    await observer.allCertified(throwAway, patience(contender, plan.warmUp));
    await running.stop();
    await shelve(controlPlane);

    say('preparing requests');
    const together = await createApproved(controlPlane, `${contender.name}-burst`, plan.burst);
    const shelf = await shelve(controlPlane);
    const sequence = await createRequests(controlPlane, `${contender.name}-sequence`, plan.sequence);
    const waiting = await createApproved(controlPlane, `${contender.name}-backlog`, plan.backlog);
    await sleep(restMilliseconds);
    await quietMoment(plan.patienceMilliseconds);

    say(`backlog of ${plan.backlog}`);
    const atRest = { apiServer: apiServerSeconds(controlPlane), own: [], others: watchForOthers() };
    running = await contender.start(controlPlane, options);
    const { processes } = running;
    const spawned = Math.min(...processes.map(({ pid }) => startedAt(pid)));
    const backlog = await massResult(trial, waiting, spawned, processes, atRest);
    await checkCertificates(controlPlane, waiting, running.caPem);
    await sleep(restMilliseconds);
    await quietMoment(plan.patienceMilliseconds);

    say(`burst of ${plan.burst}`);
    for (const { pid } of processes) forgetPeak(pid);
    const own = processes.map(({ pid }) => usageOf(pid).cpuSeconds);
    const before = { apiServer: apiServerSeconds(controlPlane), own, others: watchForOthers() };
    const released = performance.now();
    await release(controlPlane, shelf, () => observer.added());
    const burst = await massResult(trial, together, released, processes, before);
    await checkCertificates(controlPlane, together, running.caPem);
    await sleep(restMilliseconds);

    if (sequence.length === 0) return { backlog, burst };
    say(`sequence of ${plan.sequence}`);
    return { backlog, burst, sequence: await oneAfterTheOther(trial, sequence) };
  } catch (error) {
    const logs = running?.processes.map((process) => `${process.name}:\n${process.logTail(8)}`) ?? [];
    throw new Error(`${contender.label}: ${String(error)}\n${logs.join('\n')}`, { cause: error });
  } finally {
    observer.close();
    await running?.stop();
    await shelve(controlPlane); // away with them: each contender finds the API server as empty as the one before
  }
}

interface Trial {
  readonly contender: Contender;
  readonly controlPlane: ControlPlane;
  readonly observer: Observer;
}

/** Waits until all have their certificates. `before` is the CPU time spent before t0. */
async function massResult(
  { contender, controlPlane, observer }: Trial,
  names: readonly string[],
  t0: number,
  processes: readonly RunningProcess[],
  before: { readonly apiServer: number; readonly own: readonly number[]; readonly others: () => number },
): Promise<MassResult> {
  await observer.allCertified(names, patience(contender, names.length));
  const othersShare = before.others();
  const spent = processes.map(({ name, pid }, index) => {
    const { cpuSeconds, peakMegabytes } = usageOf(pid);
    return { name, cpuSeconds: cpuSeconds - (before.own[index] ?? 0), peakMegabytes };
  });
  const apiServer = apiServerSeconds(controlPlane) - before.apiServer;
  const seconds = names.map((name) => ((observer.certifiedAt.get(name) ?? Number.NaN) - t0) / 1_000);
  const all = Math.max(...seconds);
  return {
    contender: contender.name,
    requests: names.length,
    first: Math.min(...seconds),
    all,
    perSecond: names.length / all,
    p50: percentile(seconds, 0.5),
    p99: percentile(seconds, 0.99),
    processes: spent,
    apiServerSeconds: apiServer,
    othersShare,
  };
}

async function oneAfterTheOther(
  { contender, controlPlane, observer }: Trial,
  requests: Awaited<ReturnType<typeof createRequests>>,
): Promise<SequenceResult> {
  const latencies: number[] = [];
  for (const request of requests) {
    const { name } = request.metadata;
    const sent = performance.now();
    await approve(controlPlane, request);
    await observer.allCertified([name], giveUpMilliseconds);
    latencies.push((observer.certifiedAt.get(name) ?? Number.NaN) - sent);
  }
  const [p50, p99] = [percentile(latencies, 0.5), percentile(latencies, 0.99)];
  return { contender: contender.name, requests: requests.length, p50, p99 };
}

function patience({ ceilingPerSecond }: Contender, count: number): number {
  return giveUpMilliseconds + (ceilingPerSecond === undefined ? 0 : (count / ceilingPerSecond) * 1_500);
}

function apiServerSeconds({ apiServer }: ControlPlane): number {
  return usageOf(apiServer.pid).cpuSeconds;
}
