import type { ApiAnswer, JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import type { KubernetesLease } from '../../../../adapters/kubernetes/api.ts';
import type { VirtualClock } from '../../../harness/determinism/virtual-time.ts';

export type LeaseFault = 'before' | 'after' | 'Forbidden' | 'hang';

/** One Lease in memory, and as many ways to it as there are replicas: each can be cut off by itself. */
export function createSimulatedLease(clock: VirtualClock) {
  let lease: JsonObject | undefined;
  let version = 0;

  function store(spec: unknown): JsonObject {
    version += 1;
    // The real one refuses an empty holder and keeps only what it knows.
    lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'relay', namespace: 'ns', resourceVersion: String(version), labels: { kept: 'yes' } },
      spec: structuredClone(spec) as JsonObject,
    };
    return lease;
  }

  return {
    holder: () => (lease?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity,
    lease: () => lease,
    remove() {
      lease = undefined;
    },
    access(fault: () => LeaseFault | undefined = () => undefined): KubernetesLease {
      async function arrive(signal: AbortSignal, act: () => ApiAnswer<JsonObject>): Promise<ApiAnswer<JsonObject>> {
        const planned = fault();
        await new Promise<void>((resolve, reject) => {
          const cancel = planned === 'hang' ? () => {} : clock.after(5, resolve);
          const aborted = () => {
            cancel();
            reject(signal.reason as Error);
          };
          if (signal.aborted) aborted();
          signal.addEventListener('abort', aborted, { once: true });
        });
        if (planned === 'before') throw new Error('connection lost');
        if (planned === 'Forbidden') return { ok: false, problem: { why: 'Forbidden', message: '' } };
        const answer = act();
        if (planned === 'after') throw new Error('connection lost');
        return answer;
      }
      const conflict: ApiAnswer<JsonObject> = { ok: false, problem: { why: 'Conflict', message: '' } };
      return {
        get: (signal) =>
          arrive(signal, () =>
            lease === undefined ? { ok: false, problem: { why: 'NotFound', message: '' } } : { ok: true, value: lease },
          ),
        create: (spec, signal) =>
          arrive(signal, () => (lease === undefined ? { ok: true, value: store(spec) } : conflict)),
        update: (changed, signal) =>
          arrive(signal, () => {
            const { resourceVersion } = changed['metadata'] as JsonObject;
            const current = (lease?.['metadata'] as JsonObject | undefined)?.['resourceVersion'];
            if (current === undefined) return { ok: false, problem: { why: 'NotFound', message: '' } };
            return current === resourceVersion ? { ok: true, value: store(changed['spec']) } : conflict;
          }),
      };
    },
  };
}
