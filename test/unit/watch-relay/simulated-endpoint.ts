import type { JsonObject, SignAnswer, SigningEndpoint } from '../../../core/ports.ts';
import { goodPem } from './fixtures.ts';
import type { VirtualClock } from './virtual-clock.ts';

export interface SimulatedEndpointOptions {
  readonly clock: VirtualClock;
  readonly latency?: () => number;
  /** What to say; an Error is thrown, before or after the far side did its work makes no difference to us. */
  readonly answer?: (name: string, callOfThisRequest: number) => SignAnswer | Error;
}

/** A sign function that counts. */
export function createSimulatedEndpoint({ clock, latency = () => 5, answer = () => issued }: SimulatedEndpointOptions) {
  const calls = new Map<string, number>();
  let underWay = 0;
  let mostAtOnce = 0;
  let total = 0;
  const endpoint: SigningEndpoint = {
    async sign(object, signal) {
      const name = String((object['metadata'] as JsonObject)['name']);
      const call = (calls.get(name) ?? 0) + 1;
      calls.set(name, call);
      total += 1;
      underWay += 1;
      mostAtOnce = Math.max(mostAtOnce, underWay);
      try {
        await new Promise<void>((resolve, reject) => {
          const cancel = clock.after(latency(), resolve);
          const aborted = () => {
            cancel();
            reject(signal.reason as Error);
          };
          if (signal.aborted) aborted();
          signal.addEventListener('abort', aborted, { once: true });
        });
      } finally {
        underWay -= 1;
      }
      const said = answer(name, call);
      if (said instanceof Error) throw said;
      return said;
    },
  };
  return {
    endpoint,
    calls,
    total: () => total,
    underWay: () => underWay,
    mostAtOnce: () => mostAtOnce,
  };
}

export const issued: SignAnswer = { kind: 'issued', certificatePem: goodPem };
export const refusal: SignAnswer = {
  kind: 'refused',
  violations: [
    { code: 'SignerValidationFailure', message: 'subject organization is not system:nodes' },
    { code: 'KeyNotPermitted', message: 'RSA 1024 is too short' },
  ],
};
