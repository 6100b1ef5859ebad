import type { KubernetesLease } from '../../../adapters/kubernetes/api.ts';
import { objectOf } from '../../../core/encoding/json-object.ts';
import type { ApiProblem, JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { Instant } from '../../../core/ports/instant.ts';
import { deadline, sleep } from '../runtime/clock.ts';
import type { Clock, Random } from '../runtime/clock.ts';
import type { Log } from '../runtime/log.ts';
import { errorMessage } from '../../../core/outcome/error-message.ts';
import { microTime } from '../objects/status.ts';

/** client-go's defaults. A leader gives up 5 s before another replica may take over. */
export const leaseMilliseconds = 15_000;
export const renewDeadlineMilliseconds = 10_000;
const retryMilliseconds = 2_000;
const jitterFactor = 1.2;

export interface LeaderPorts {
  readonly store: KubernetesLease;
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/**
 * Runs `lead` each time this replica gets the lease, until `stop`. One leader saves calls; correctness does not depend on
 * it, since two working relays get the same certificate, and one of their two PUTs is refused.
 *
 * After `lost` is aborted, `lead` must do nothing more. After `stop` it should finish requests in flight; the lease is
 * held until then and released, so that the next replica need not wait for it to expire.
 */
export async function runAsLeader(
  lead: (lost: AbortSignal) => Promise<void>,
  ports: LeaderPorts,
  stop: AbortSignal,
): Promise<void> {
  const { clock, random, log } = ports;
  const never = new AbortController().signal;
  const lease = createLeaseHolder(ports);
  while (!stop.aborted) {
    if (!(await lease.tryToHold(renewDeadlineMilliseconds, stop))) {
      await sleep(clock, retryMilliseconds * (1 + jitterFactor * random()), stop);
      continue;
    }
    log.info({ identity: ports.identity }, 'leading');
    const lost = new AbortController();
    const finished = new AbortController();
    const leading = lead(lost.signal).finally(() => finished.abort());
    // The lease is renewed during a drain too.
    while (!finished.signal.aborted) {
      await sleep(clock, retryMilliseconds, finished.signal);
      if (finished.signal.aborted) break;
      const left = lease.renewedAt() + renewDeadlineMilliseconds - clock.monotonic();
      const held = left > 0 && (await lease.tryToHold(left, finished.signal));
      const late = clock.monotonic() >= lease.renewedAt() + renewDeadlineMilliseconds;
      if (finished.signal.aborted || (held && !late)) continue;
      if (late || lease.heldByOther()) {
        log.error({ identity: ports.identity }, 'leadership lost');
        lost.abort(new Error('leadership lost'));
        break;
      }
    }
    await leading;
    if (!lost.signal.aborted) await lease.release(never);
  }
}

/** The lease as this replica sees it. It trusts no other clock: a lease expires by the local monotonic clock. */
function createLeaseHolder({ store, identity, clock, log }: LeaderPorts) {
  /** The lease as last read or written, and the monotonic time at which its spec last changed. */
  let observed: JsonObject | undefined;
  let observedSpec = '';
  let observedAt = 0;
  /** The start of the last successful renewal. Other replicas see it later, so this one stops before they start. */
  let renewedAt = Number.NEGATIVE_INFINITY;

  function observe(lease: JsonObject): void {
    const spec = JSON.stringify(lease['spec']);
    observed = lease;
    if (spec === observedSpec) return;
    observedSpec = spec;
    observedAt = clock.monotonic();
  }

  function holder(): string {
    const value = specOf(observed)['holderIdentity'];
    return typeof value === 'string' ? value : '';
  }

  function runsUntil(): number {
    const seconds = specOf(observed)['leaseDurationSeconds'];
    return observedAt + (typeof seconds === 'number' ? seconds * 1_000 : leaseMilliseconds);
  }

  function heldByOther(): boolean {
    return observed !== undefined && holder() !== '' && holder() !== identity && clock.monotonic() < runsUntil();
  }

  function nextSpec(now: Instant): JsonObject {
    const old = specOf(observed);
    const mine = holder() === identity;
    const transitions = typeof old['leaseTransitions'] === 'number' ? old['leaseTransitions'] : 0;
    return {
      ...old,
      holderIdentity: identity,
      leaseDurationSeconds: leaseMilliseconds / 1_000,
      acquireTime: mine ? old['acquireTime'] : microTime(now),
      renewTime: microTime(now),
      leaseTransitions: mine || observed === undefined ? transitions : transitions + 1,
    };
  }

  async function write(signal: AbortSignal): Promise<boolean> {
    const begun = clock.monotonic();
    const spec = nextSpec(clock.now());
    const answer =
      observed === undefined ? await store.create(spec, signal) : await store.update({ ...observed, spec }, signal);
    if (!answer.ok) {
      if (answer.problem.why !== 'Conflict') log.warn(logged(answer.problem), 'lease cannot be written');
      return false;
    }
    observe(answer.value);
    renewedAt = begun;
    return true;
  }

  async function refresh(signal: AbortSignal): Promise<boolean> {
    const answer = await store.get(signal);
    if (answer.ok) observe(answer.value);
    else if (answer.problem.why === 'NotFound') observed = undefined;
    else log.warn(logged(answer.problem), 'lease cannot be read');
    return answer.ok || answer.problem.why === 'NotFound';
  }

  return {
    renewedAt: () => renewedAt,
    heldByOther,

    /** Takes or renews the lease. A holder's usual renewal is one PUT. */
    async tryToHold(withinMilliseconds: number, parent: AbortSignal): Promise<boolean> {
      const { signal, cancel } = deadline(clock, withinMilliseconds, parent);
      try {
        // If the write fails or its answer is lost, the next read shows the result.
        if (holder() === identity && (await write(signal).catch(() => false))) return true;
        if (!(await refresh(signal)) || heldByOther()) return false;
        return await write(signal);
      } catch (error) {
        if (!parent.aborted) log.warn({ detail: errorMessage(error) }, 'lease call failed');
        return false;
      } finally {
        cancel();
      }
    },

    /** Best effort: a lease that is not released expires. */
    async release(parent: AbortSignal): Promise<void> {
      const { signal, cancel } = deadline(clock, renewDeadlineMilliseconds, parent);
      try {
        if (!(await refresh(signal)) || observed === undefined || holder() !== identity) return;
        const { holderIdentity: _removed, ...spec } = nextSpec(clock.now());
        const answer = await store.update({ ...observed, spec: { ...spec, leaseDurationSeconds: 1 } }, signal);
        if (answer.ok) observe(answer.value);
      } catch (error) {
        log.warn({ detail: errorMessage(error) }, 'lease not released');
      } finally {
        cancel();
      }
    },
  };
}

function specOf(lease: JsonObject | undefined): JsonObject {
  return objectOf(lease?.['spec']);
}

function logged({ why, message }: ApiProblem): object {
  return { why, detail: message };
}
