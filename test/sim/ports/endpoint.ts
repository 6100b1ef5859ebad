/** The way from a client to the functions: calls that are lost, repeated and answered by a proxy between them. */
import { interpretAttest, interpretSign } from '../../../adapters/signing-api/answers.ts';
import { encodeContext } from '../../../adapters/signing-api/context.ts';
import type { WholeAnswer } from '../../../adapters/http/exchange.ts';
import { ThrottledError } from '../../../core/ports/errors.ts';
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import { call, within } from '../call.ts';
import { nameOf } from './function-ports.ts';
import type { Part } from './function-ports.ts';
import type { Invoke } from './functions.ts';
import type { Process, Runtime } from '../runtime.ts';

/** For one client. */
export type Connect = (client: Process) => SigningEndpoint;

/** adapters/signing-api/client.ts */
const clientMilliseconds = 29_000;

export function createEndpoint(runtime: Runtime, invoke: Invoke): Connect {
  /** Somewhere on the way the call is repeated: soon, or when all parts have forgotten it. */
  function again(part: Part, object: JsonObject, body: JsonObject): void {
    runtime.timeline.after(runtime.random.between(0, 40_000), () => {
      runtime.count(`trouble: http repeats ${part}`);
      runtime.tell(() => `http repeats ${part} ${nameOf(object)}`);
      invoke(part, object, body).catch(() => {});
    });
  }

  async function post(
    client: Process,
    part: Part,
    object: JsonObject,
    body: JsonObject,
    signal: AbortSignal,
  ): Promise<WholeAnswer> {
    try {
      return await within(client, clientMilliseconds, () =>
        call(runtime, client, {
          port: 'http',
          method: part,
          about: nameOf(object),
          signal,
          told: ({ status }) => String(status),
          act: () => {
            if (runtime.troubled() && runtime.random.chance(runtime.rates.duplicate)) again(part, object, body);
            return invoke(part, object, body).catch(() => failed(runtime.random.pick([500, 502, 504])));
          },
        }),
      );
    } catch (error) {
      if (error instanceof ThrottledError) return failed(429);
      throw error;
    }
  }

  return (client) => ({
    sign: async (object, signal) => interpretSign(await post(client, 'sign', object, object, signal)),
    attest: async (object, context, signal) => {
      const encoded = encodeContext(context);
      const body = { request: object, ...(encoded === undefined ? {} : { context: encoded }) };
      return interpretAttest(await post(client, 'attest', object, body, signal));
    },
  });
}

/** What a front door says when it is not us who speak. */
function failed(status: number): WholeAnswer {
  return { status, headers: {}, body: Buffer.from('{"message":"Internal Server Error"}') };
}
