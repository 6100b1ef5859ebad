/** Which requests come up when, where and whose. */
import type { Random } from '../random.ts';
import type { Kind } from './arrivals.ts';
import type { Scenario } from './scenarios.ts';

export interface Wanted {
  readonly kind: Kind;
  readonly name: string;
  readonly cluster: number;
  readonly requester: string;
  /** Seconds after the beginning. */
  readonly at: number;
}

/** `count` of one kind, evenly over the clusters and their requesters, and over time as chance has it. */
export function evenly(
  { clusters, requesters }: Scenario,
  { kind, count, overSeconds }: { readonly kind: Kind; readonly count: number; readonly overSeconds: number },
  chance: Random,
): readonly Wanted[] {
  return Array.from({ length: count }, (_, number) => ({
    kind,
    name: `${kind}-${number}`,
    cluster: number % clusters,
    requester: `requester-${Math.floor(number / clusters) % requesters}`,
    at: chance.next() * overSeconds,
  }));
}

/** Those that are not to harm the others. */
export function flooding({ floods = [] }: Scenario, kind: Kind): readonly Wanted[] {
  return floods.flatMap(({ requests, from, cluster, requester }, flood) =>
    Array.from({ length: requests }, (_, number) => {
      return { kind, name: `${kind}-flood-${flood}-${number}`, cluster, requester, at: from };
    }),
  );
}
