/** The attest handler over a world of tests: what is posted, what is answered, what is logged. */
import { randomBytes } from 'node:crypto';
import type { HttpAnswer, HttpHandler } from '../../../../adapters/lambda/http.ts';
import type { CallLogEntry } from '../../../../adapters/lambda/log.ts';
import { loopbackCaller } from '../../../../dev/serve/loopback-caller.ts';
import { createAttestHandler } from '../../../../lambdas/attest/handler.ts';
import type { AttestHandler, AttestHandlerPorts } from '../../../../lambdas/attest/handler.ts';
import { eventFixture } from '../sign/stack.ts';
import type { EventSpec } from '../sign/stack.ts';
import type { World } from './world.ts';

export interface Endpoint {
  readonly handler: HttpHandler;
  /** Sign's own way. */
  readonly call: AttestHandler['call'];
  readonly log: CallLogEntry[];
  /** `call` is the whole body. */
  readonly post: (call: unknown, change?: Partial<EventSpec>) => Promise<HttpAnswer>;
}

export const attestPath = '/v1/clusters/demo/attest';

export function endpointOf(
  { cluster, store, platform, clock }: Pick<World, 'cluster' | 'store' | 'platform' | 'clock'>,
  change: Partial<AttestHandlerPorts> = {},
): Endpoint {
  const log: CallLogEntry[] = [];
  const { http: handler, call: called } = createAttestHandler({
    caller: loopbackCaller,
    cluster: (name) => (name === cluster.name ? cluster : undefined),
    attestation: async () => ({ store, providers: new Map([[platform.provider.name, platform.provider]]) }),
    now: () => clock.now,
    randomBytes,
    log: (entry) => log.push(entry),
    ...change,
  });
  return {
    handler,
    call: called,
    log,
    post: (call, eventChange = {}) =>
      handler(
        eventFixture({
          method: 'POST',
          path: attestPath,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(call),
          ...eventChange,
        }),
      ),
  };
}

export interface VerdictBody {
  readonly decision: string;
  readonly reason: string;
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export function verdictIn(answer: HttpAnswer): VerdictBody {
  return JSON.parse(answer.body) as VerdictBody;
}
