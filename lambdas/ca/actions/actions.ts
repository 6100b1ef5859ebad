/** The closed list of what operators may ask of the ca function. Who may ask has `lambda:InvokeFunction`. */
import { objectOf } from '../../../core/encoding/json-object.ts';
import type { JsonObject } from '../../../core/encoding/json-object.ts';
import type { CaPorts } from './ports.ts';
import type { CallReport } from '../../../adapters/lambda/operator-call.ts';
import type { CaAction, ClusterAnswer } from './action.ts';
import { crl } from './crl.ts';
import { csr } from './csr.ts';
import { importCertificate } from './import.ts';
import { init } from './init.ts';
import { plan } from './plan.ts';
import { rotation } from './rotation.ts';
import { show } from './show.ts';

/** By the field `action` of the event that `countersign ca` sends. */
const actions = {
  crl: asked(crl),
  csr: asked(csr),
  import: asked(importCertificate),
  init: asked(init),
  plan: asked(plan),
  rotation: asked(rotation),
  show: asked(show),
} as const;

export interface Done<Answer> {
  readonly answer: Answer;
  readonly log: CallReport;
}

/** An action with its checked request. */
export interface AskedAction {
  readonly name: string;
  readonly run: (ports: CaPorts) => Promise<Done<ClusterAnswer>>;
}

/** `undefined`: the event asks for nothing of this list. */
export function askedAction(event: unknown): AskedAction | undefined {
  const { action: name, ...fields } = objectOf(event);
  if (typeof name !== 'string' || !Object.hasOwn(actions, name)) return undefined;
  const run = actions[name as keyof typeof actions](fields);
  return run === undefined ? undefined : { name, run };
}

/** Hides the types of its request and its answer: a request goes only to the action that decoded it. */
function asked<Request, Answer extends ClusterAnswer>(
  action: CaAction<Request, Answer>,
): (fields: JsonObject) => AskedAction['run'] | undefined {
  return (fields) => {
    const request = action.decode(fields);
    return request === undefined ? undefined : (ports) => perform(action, request, ports);
  };
}

export async function perform<Request, Answer>(
  action: CaAction<Request, Answer>,
  request: Request,
  ports: CaPorts,
): Promise<Done<Answer>> {
  const answer = await action.run(request, ports);
  return { answer, log: action.logged(answer, ports) };
}
