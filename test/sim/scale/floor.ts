/** What no client could beat: the fewest calls, and the time that the tightest quota takes for the requests. */
import type { Service } from './account.ts';
import { dynamodb, kms, lambda, networkMilliseconds } from './numbers.ts';
import type { Scenario } from './scenarios.ts';

/** docs/call-budget.md. Each environment that is started asks the key once and reads the two items of its CA. */
export function fewestCalls(requests: number, starts: number): Partial<Record<Service, number>> {
  return {
    frontDoor: requests,
    lambda: requests,
    kms: requests,
    kmsPublicKey: starts,
    dynamodb: 2 * requests + 2 * starts,
  };
}

/** Requests per second that each quota lets through, of all clusters together. */
export function quotasOf(scenario: Scenario): Readonly<Record<string, number>> {
  const { clusters, throttle, reservedConcurrency, tableWriteUnits, account } = scenario;
  const units = dynamodb.intentUnits + dynamodb.recordUnits;
  return {
    'KMS signatures': account.signaturesPerSecond,
    'front door': clusters * throttle.rate,
    'calls of the function': clusters * reservedConcurrency * lambda.callsPerSecondEach,
    'environments of the function': (clusters * reservedConcurrency * 1_000) / functionMilliseconds,
    'concurrency of the account': (account.concurrency * 1_000) / functionMilliseconds,
    "the table's partitions": (clusters * tableWriteUnits) / units,
    "the relay's concurrency":
      (clusters * Math.min(scenario.concurrency, scenario.requesters * scenario.inFlightPerRequester) * 1_000) /
      relayMilliseconds,
  };
}

const mean = ([least, most]: readonly [number, number]): number => (least + most) / 2;
/** A warm call without queues. */
const functionMilliseconds = mean(lambda.workMilliseconds) + mean(kms.milliseconds) + 2 * mean(dynamodb.milliseconds);
/** The same as the relay sees it, with what it does before and after. */
const relayMilliseconds = functionMilliseconds + 2 * mean(networkMilliseconds) + 12 + 5;

export function floorSeconds(scenario: Scenario): { readonly seconds: number; readonly quota: string } {
  const [tightest] = Object.entries(quotasOf(scenario)).sort(([, a], [, b]) => a - b);
  if (tightest === undefined) throw new Error('there are quotas');
  const [quota, perSecond] = tightest;
  // While nobody is answered nothing can be signed.
  const { outage: [from, to] = [0, 0], away = { from: 0, until: 0 } } = scenario;
  return { seconds: scenario.requests / perSecond + (to - from) + (away.until - away.from), quota };
}
