/** What no client could beat: the fewest calls, and the time that the tightest quota takes for the requests. */
import type { Service } from './account.ts';
import { attestation, dynamodb, ec2, kms, lambda, networkMilliseconds, sts } from './numbers.ts';
import type { Scenario } from './scenarios.ts';

/**
 * docs/call-budget.md. Each environment that is started asks the key once and reads the two items of its CA. `proofs` of
 * the requests are of nodes that join, `judged` are shown to attest and prove nothing.
 */
export function fewestCalls(
  requests: number,
  starts: number,
  { proofs, judged }: { readonly proofs: number; readonly judged: number } = { proofs: 0, judged: 0 },
): Partial<Record<Service, number>> {
  const calls = requests + proofs + judged;
  return {
    frontDoor: calls,
    lambda: calls,
    kms: requests,
    kmsPublicKey: starts,
    dynamodb: 2 * requests + 2 * starts + 5 * proofs,
    ...(proofs === 0 ? {} : { sts: proofs, ec2: proofs }),
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

/** A node that joins asks both functions, one after the other, and EC2 in between. */
export function joinQuotasOf(scenario: Scenario): Readonly<Record<string, number>> {
  const { clusters, throttle, reservedConcurrency, tableWriteUnits, account } = scenario;
  return {
    ...quotasOf(scenario),
    'EC2 DescribeInstances': account.describes.perSecond,
    STS: sts.callsPerSecond,
    'front door': (clusters * throttle.rate) / 2,
    'environments of attest': (clusters * reservedConcurrency * 1_000) / attestMilliseconds,
    'concurrency of the account': (account.concurrency * 1_000) / (functionMilliseconds + attestMilliseconds),
    "the attestations' partitions": (clusters * tableWriteUnits) / (attestation.claimItems * attestation.itemUnits),
  };
}

const attestMilliseconds =
  mean(lambda.workMilliseconds) + 3 * mean(dynamodb.milliseconds) + mean(sts.milliseconds) + mean(ec2.milliseconds);

export function floorSeconds(scenario: Scenario): { readonly seconds: number; readonly quota: string } {
  const quotas = scenario.joins === true ? joinQuotasOf(scenario) : quotasOf(scenario);
  const [tightest] = Object.entries(quotas).sort(([, a], [, b]) => a - b);
  if (tightest === undefined) throw new Error('there are quotas');
  const [quota, perSecond] = tightest;
  // While nobody is answered nothing can be signed.
  const { outage: [from, to] = [0, 0], away = { from: 0, until: 0 } } = scenario;
  // What the bucket holds at first goes at once: with so slow a quota that is more than a detail.
  const atOnce = quota === 'EC2 DescribeInstances' ? scenario.account.describes.atOnce : 0;
  const requests = Math.max(0, scenario.requests - atOnce);
  return { seconds: requests / perSecond + (to - from) + (away.until - away.from), quota };
}
