/** How much of everything is measured, by the options. */
import { approvers } from './approving.ts';
import type { Approver, ApprovingPlan } from './approving.ts';
import type { Contender } from './contenders.ts';
import type { BenchOptions } from './options.ts';
import type { Plan } from './scenarios.ts';

/** A second burst has so many times the requests of the first. */
const largeBurst = 5;

/** A throttled contender answers one by one at the rate of its throttle, which says nothing about its latency. */
export function planFor(
  { name, ceilingPerSecond }: Contender,
  { quick, requests, patienceSeconds }: BenchOptions,
): Plan {
  const throttled = ceilingPerSecond !== undefined;
  const mass = quick && throttled ? Math.min(100, requests) : requests;
  return {
    // LocalStack's functions are there before the relay: no start to measure from. A throttle's is the burst once more.
    backlog: quick || throttled || name === 'localstack' ? 0 : mass,
    bursts: quick || throttled ? [mass] : [mass, mass * largeBurst],
    steady: { perSecond: 50, seconds: quick ? (throttled ? 0 : 5) : 20 },
    sequence: throttled ? 0 : quick ? 50 : 200,
    // The default token bucket of the reference holds 30 and is full again after 1.5 s.
    restMilliseconds: quick && !throttled ? 500 : 2_000,
    patienceMilliseconds: throttled ? 0 : patienceSeconds * 1_000,
  };
}

export function warmUpFor({ quick }: BenchOptions): number {
  return quick ? 50 : 100;
}

/** All where none was named; in a minute, who has to prove himself and who is fastest. */
export function approversFor({ contenders: named, chosen, quick }: BenchOptions): readonly Approver[] {
  if (chosen && named.length > 0) return approvers.filter(({ name }) => named.some((each) => name.startsWith(each)));
  return quick ? approvers.filter(({ name }) => name === 'countersign' || name === 'kcm-unthrottled') : approvers;
}

export function approvingPlan(options: BenchOptions): ApprovingPlan {
  const { quick, requests, patienceSeconds } = options;
  return {
    warmUp: quick ? 20 : 100,
    burst: quick ? Math.min(100, requests) : requests,
    sequence: quick ? 20 : 100,
    restMilliseconds: quick ? 500 : 2_000,
    patienceMilliseconds: patienceSeconds * 1_000,
    attempts: attemptsFor(options),
  };
}

export function attemptsFor({ patienceSeconds }: BenchOptions): number {
  return patienceSeconds > 0 ? 3 : 1;
}
