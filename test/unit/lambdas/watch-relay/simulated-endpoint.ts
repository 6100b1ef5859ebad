import type { JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import type { AttestAnswer, SignAnswer, SigningEndpoint } from '../../../../core/ports/signing-endpoint.ts';
import { goodPem } from './fixtures.ts';
import type { VirtualClock } from '../../../harness/determinism/virtual-time.ts';

export interface SimulatedEndpointOptions {
  readonly clock: VirtualClock;
  readonly latency?: (name: string) => number;
  /** What to say; an Error is thrown, before or after the far side did its work makes no difference to us. */
  readonly answer?: (name: string, callOfThisRequest: number) => SignAnswer | Error;
  readonly attest?: (name: string, callOfThisRequest: number) => AttestAnswer | Error;
}

/** Sign and attest functions that count. */
export function createSimulatedEndpoint({
  clock,
  latency = () => 5,
  answer = () => issued,
  attest = () => approval,
}: SimulatedEndpointOptions) {
  const calls = new Map<string, number>();
  const attestCalls = new Map<string, number>();
  let underWay = 0;
  let mostAtOnce = 0;

  async function call<A>(
    counts: Map<string, number>,
    object: JsonObject,
    signal: AbortSignal,
    say: (name: string, call: number) => A | Error,
  ): Promise<A> {
    const name = String((object['metadata'] as JsonObject)['name']);
    const number = (counts.get(name) ?? 0) + 1;
    counts.set(name, number);
    underWay += 1;
    mostAtOnce = Math.max(mostAtOnce, underWay);
    try {
      await new Promise<void>((resolve, reject) => {
        const cancel = clock.after(latency(name), resolve);
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
    const said = say(name, number);
    if (said instanceof Error) throw said;
    return said;
  }

  const endpoint: SigningEndpoint = {
    sign: (object, signal) => call(calls, object, signal, answer),
    attest: (object, _context, signal) => call(attestCalls, object, signal, attest),
  };
  const sum = (counts: Map<string, number>) => [...counts.values()].reduce((total, count) => total + count, 0);
  return {
    endpoint,
    calls,
    attestCalls,
    total: () => sum(calls),
    attestTotal: () => sum(attestCalls),
    underWay: () => underWay,
    mostAtOnce: () => mostAtOnce,
  };
}

const approval: AttestAnswer = {
  kind: 'verdict',
  verdict: { decision: 'approve', message: '', annotations: {} },
};
export const issued: SignAnswer = { kind: 'issued', certificatePem: goodPem };
export const refusal: SignAnswer = {
  kind: 'refused',
  violations: [
    { code: 'SignerValidationFailure', message: 'subject organization is not system:nodes' },
    { code: 'KeyNotPermitted', message: 'RSA 1024 is too short' },
  ],
};
