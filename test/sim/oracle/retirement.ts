/** The oracle of retirement: only what its platform terminated is retired, after two looks, and its name is free after the grace. */
import type { Claim, IdentityRecord } from '../../../core/ports/attestation-store.ts';
import { epoch } from '../runtime.ts';
import type { Bench } from './oracle.ts';

/** How long a name stays with a retired machine: docs/attestation.md, Machines that end. */
const graceMilliseconds = 3_600_000;

export interface RetirementOracle {
  /** A run has retired this machine. `looked`: whether an earlier look, long enough ago, found it terminated or unknown. */
  readonly retired: (record: IdentityRecord, nameFreeAt: number, looked: boolean) => void;
  /** A machine was let in under a name. */
  readonly claimed: (claim: Claim) => void;
  /** Of each machine that is recorded as retired: its platform has terminated it. */
  readonly registered: () => void;
}

export function createRetirementOracle({ runtime, attestations, facts, broken }: Bench): RetirementOracle {
  const { timeline, rates } = runtime;
  /** By name: who had it, and from when on it is free. Virtual. */
  const held = new Map<string, { readonly identity: string; readonly freeAt: number }>();

  return {
    retired({ identity, nodeName }, nameFreeAt, looked) {
      const now = timeline.now();
      const gone = facts.get(identity)?.gone;
      if (gone === undefined || gone > now) return broken(`${identity} is retired, and it runs`);
      if (!looked) return broken(`${identity} is retired without a second look`);
      const freeAt = nameFreeAt - epoch;
      // The clock of the run is off by its skew, and the run is over before its time is.
      if (freeAt > now + graceMilliseconds + rates.skew + 1 || freeAt < now + graceMilliseconds - rates.skew - 70_000)
        return broken(
          `${nodeName} of ${identity} is free ${Math.round((freeAt - now) / 1_000)} s after its retirement`,
        );
      runtime.count('step: retired: by two looks');
      held.set(nodeName, { identity, freeAt });
    },
    claimed({ identity: write, retire }) {
      if (write.kind !== 'create') return;
      const { nodeName, identity } = write.record;
      const before = held.get(nodeName);
      held.delete(nodeName);
      if (before === undefined || !attestations.identities.has(before.identity)) return;
      const left = before.freeAt - timeline.now();
      if (retire?.identity === before.identity) return runtime.count('step: retired: its name is taken over');
      if (left > rates.skew)
        broken(`${identity} has ${nodeName}, which ${before.identity} keeps ${Math.round(left / 1_000)} s more`);
      else runtime.count('step: retired: its name is free');
    },
    registered() {
      for (const { identity, state } of attestations.identities.values()) {
        const gone = facts.get(identity)?.gone;
        if (state === 'retired' && (gone === undefined || gone > timeline.now()))
          broken(`${identity} is on record as retired, and it runs`);
      }
    },
  };
}
