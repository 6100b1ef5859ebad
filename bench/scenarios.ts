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
    running = await contender.start(controlPlane, options);
    const pids = running.processes.map(({ pid }) => pid);
    const spawned = Math.min(...pids.map(startedAt));
    await observer.allCertified(waiting, patience(contender, plan.backlog));
    const backlog = massResult(contender, observer, waiting, spawned, usageOf(pids));
    await checkCertificates(controlPlane, waiting, running.caPem);
    await sleep(restMilliseconds);

    say(`burst of ${plan.burst}`);
    forgetPeak(pids);
    const before = usageOf(pids);
    const released = performance.now();
    await release(controlPlane, shelf);
    await observer.allCertified(together, patience(contender, plan.burst));
    const after = usageOf(pids);
    const usage = { ...after, cpuSeconds: after.cpuSeconds - before.cpuSeconds };
    const burst = massResult(contender, observer, together, released, usage);
    await checkCertificates(controlPlane, together, running.caPem);
    await sleep(restMilliseconds);

    if (sequence.length === 0) return { backlog, burst };
    say(`sequence of ${plan.sequence}`);
    const latencies: number[] = [];
    for (const request of sequence) {
      const sent = performance.now();
      await approve(controlPlane, request);
      const { name } = request.metadata;
      await observer.allCertified([name], patienceMilliseconds);
      latencies.push((observer.certifiedAt.get(name) ?? Number.NaN) - sent);
    }
    const shape = { contender: contender.name, requests: sequence.length };
    return {
      backlog,
      burst,
      sequence: { ...shape, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) },
    };
  } catch (error) {
    const logs = running?.processes.map((process) => `${process.name}:\n${process.logTail(8)}`) ?? [];
    throw new Error(`${contender.label}: ${String(error)}\n${logs.join('\n')}`, { cause: error });
  } finally {
    observer.close();
    await running?.stop();
    await shelve(controlPlane); // away with them: each contender finds the API server as empty as the one before
  }
}

function patience({ ceilingPerSecond }: Contender, count: number): number {
  return patienceMilliseconds + (ceilingPerSecond === undefined ? 0 : (count / ceilingPerSecond) * 1_500);
}

function massResult(
  { name }: Contender,
  { certifiedAt }: Observer,
  names: readonly string[],
  t0: number,
  { cpuSeconds, peakMegabytes }: { cpuSeconds: number; peakMegabytes: number },
): MassResult {
  const seconds = names.map((request) => ((certifiedAt.get(request) ?? Number.NaN) - t0) / 1_000);
  const all = Math.max(...seconds);
  return {
    contender: name,
    requests: names.length,
    first: Math.min(...seconds),
    all,
    perSecond: names.length / all,
    p50: percentile(seconds, 0.5),
    p99: percentile(seconds, 0.99),
    cpuSeconds,
    peakMegabytes,
  };
}
