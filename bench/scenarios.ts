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
import type { Contender, ContenderName, RunningContender, StartOptions } from './contenders.ts';
import { observeRequests } from './observer.ts';
import type { Observer } from './observer.ts';
import { forgetPeak, startedAt, usageOf } from './process-usage.ts';
import { approve, checkCertificates, createApproved, createRequests } from './requests.ts';
import { release, shelve } from './shelf.ts';
import { percentile } from './statistics.ts';

export interface Plan {
  readonly warmUp: number;
  readonly backlog: number;
  readonly burst: number;
  readonly sequence: number;
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
  /** Of all processes of the contender: from t0 on; since their start, for the backlog. */
  readonly cpuSeconds: number;
  readonly peakMegabytes: number;
  /** What the API server spent from t0 on, without etcd: the work all contenders cause. */
  readonly apiServerSeconds: number;
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

/** The default token bucket of the reference holds 30 and is full again after 1.5 s: everybody begins rested. */
const restMilliseconds = 2_000;
const patienceMilliseconds = 60_000;

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

    say(`backlog of ${plan.backlog}`);
    const apiServerBefore = apiServerSeconds(controlPlane);
    running = await contender.start(controlPlane, options);
    const pids = running.processes.map(({ pid }) => pid);
    const spawned = Math.min(...pids.map(startedAt));
    const backlog = await massResult(trial, waiting, spawned, pids, 0, apiServerBefore);
    await checkCertificates(controlPlane, waiting, running.caPem);
    await sleep(restMilliseconds);

    say(`burst of ${plan.burst}`);
    forgetPeak(pids);
    const before = { own: usageOf(pids).cpuSeconds, apiServer: apiServerSeconds(controlPlane) };
    const released = performance.now();
    await release(controlPlane, shelf, observer.added);
    const burst = await massResult(trial, together, released, pids, before.own, before.apiServer);
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

/** Waits until all have their certificates. What was spent before t0 is taken off. */
async function massResult(
  { contender, controlPlane, observer }: Trial,
  names: readonly string[],
  t0: number,
  pids: readonly number[],
  ownBefore: number,
  apiServerBefore: number,
): Promise<MassResult> {
  await observer.allCertified(names, patience(contender, names.length));
  const { cpuSeconds, peakMegabytes } = usageOf(pids);
  const apiServerAfter = apiServerSeconds(controlPlane);
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
    cpuSeconds: cpuSeconds - ownBefore,
    peakMegabytes,
    apiServerSeconds: apiServerAfter - apiServerBefore,
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
    await observer.allCertified([name], patienceMilliseconds);
    latencies.push((observer.certifiedAt.get(name) ?? Number.NaN) - sent);
  }
  const [p50, p99] = [percentile(latencies, 0.5), percentile(latencies, 0.99)];
  return { contender: contender.name, requests: requests.length, p50, p99 };
}

function patience({ ceilingPerSecond }: Contender, count: number): number {
  return patienceMilliseconds + (ceilingPerSecond === undefined ? 0 : (count / ceilingPerSecond) * 1_500);
}

function apiServerSeconds({ apiServer }: ControlPlane): number {
  return usageOf([apiServer.pid]).cpuSeconds;
}
