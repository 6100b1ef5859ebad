/** Helpers of scenarios: post a request, wait for its answer. They fail with one sentence. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesApi } from '../../adapters/kubernetes/api.ts';
import type { ApiAnswer, JsonObject } from '../../core/ports/kubernetes-api.ts';
import { approved, conditionIn, nameOf } from '../csr-api/csr-object.ts';
import type { DemoStack } from './stack.ts';
import type { AskedCertificate, CertificateQuestion } from './kubelet.ts';
import { DemoFailure } from './scenario.ts';
import type { DemoWorld } from './scenario.ts';

/** Posts the request as the user of `api`, and prints it. */
export async function postRequest(
  asked: AskedCertificate,
  { organization, commonName }: CertificateQuestion,
  api: KubernetesApi,
  { terminal, signal }: DemoWorld,
): Promise<JsonObject> {
  const object = present(await api.create(asked.object, signal), 'the request could not be created');
  const { username } = object['spec'] as { username: string };
  terminal.step('request', `${nameOf(object)}, by ${username}`);
  terminal.step('', `O=${organization}, CN=${commonName}`);
  return object;
}

export async function approve(object: JsonObject, stack: DemoStack, { terminal, signal }: DemoWorld): Promise<void> {
  const answer = await stack.cluster.requests.updateApproval(approved(object), signal);
  present(answer, 'the request could not be approved');
  terminal.step('approved', `as \`kubectl certificate approve ${nameOf(object)}\` does it`);
}

export function failureIn(object: JsonObject): string | undefined {
  const failed = conditionIn(object, 'Failed');
  return failed === undefined ? undefined : `${failed.reason ?? ''}: ${failed.message ?? ''}`;
}

/** Reads the request repeatedly until `look` finds something or the time of the demo is over. */
export async function waitFor(
  name: string,
  look: (object: JsonObject) => unknown,
  stack: DemoStack,
  { signal }: DemoWorld,
): Promise<JsonObject> {
  try {
    for (;;) {
      const object = present(await stack.cluster.requests.get(name, signal), 'the request cannot be read');
      if (look(object) !== undefined) return object;
      await sleep(20, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  throw new DemoFailure(['the request was not answered in time. Last messages:', ...stack.complaints()].join('\n    '));
}

export function present(answer: ApiAnswer<JsonObject>, otherwise: string): JsonObject {
  if (answer.ok) return answer.value;
  throw new DemoFailure(`${otherwise}: ${answer.problem.why}, ${answer.problem.message}`);
}
