/** Creates the request object in the cluster, or finds the one that an earlier run created. */
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import type { Login } from '../request/login.ts';
import { requestObject } from '../request/request.ts';
import { update } from './attempt.ts';
import type { Attempt } from './attempt.ts';
import type { PendingRequest } from './work.ts';

type Submitted =
  | { readonly kind: 'created'; readonly request: PendingRequest; readonly object: JsonObject }
  /** The cluster does not have this request, and sending it again would not help: the node must make a new one. */
  | { readonly kind: 'lost' }
  /** The API server refuses the login, so another login may succeed. */
  | { readonly kind: 'loginRefused'; readonly message: string }
  | { readonly kind: 'invalid'; readonly message: string };

export async function submitRequest(
  attempt: Attempt,
  request: PendingRequest,
  resumed: boolean,
  until: number,
): Promise<Submitted> {
  const { spec, login, cluster } = attempt;
  const { settings, slot, wanted, dependencies } = spec;
  let answer = resumed
    ? await cluster.get(request.name, until)
    : await cluster.create(requestObject(request, wanted), until);
  // The last run died before it sent the request, or the object was deleted: in both cases the same bytes are sent again.
  if (resumed && !answer.ok && answer.problem.why === 'NotFound') {
    if (dependencies.now() >= request.staleAt) return { kind: 'lost' };
    answer = await cluster.create(requestObject(request, wanted), until);
  }
  // The object exists: for example, an earlier create took effect, but its answer was lost.
  if (!answer.ok && answer.problem.why === 'Conflict') answer = await cluster.get(request.name, until);

  if (answer.ok) {
    if (!isOurs(answer.value, request, wanted.signerName, login)) {
      dependencies.log(`request ${request.name} exists, but this node did not create it; sending another request`);
      return { kind: 'lost' };
    }
    if (!resumed)
      dependencies.log(`requested the ${slot.name} certificate of ${settings.nodeName}: request ${request.name}`);
    return { kind: 'created', request: recordUsername(attempt, request, answer.value), object: answer.value };
  }
  const { why, message } = answer.problem;
  if (why === 'NotFound') return { kind: 'lost' };
  if (why === 'Unauthorized')
    return { kind: 'loginRefused', message: `${describeLogin(login)} is not accepted (${message})` };
  if (why === 'Forbidden')
    return { kind: 'loginRefused', message: `${describeLogin(login)} may not request certificates (${message})` };
  return { kind: 'invalid', message: `the request is not accepted: ${message}` };
}

/**
 * Whether this node created the object. Another user who may create requests could have taken its name first, and the
 * approver decides by the creator's user name.
 */
function isOurs(object: JsonObject, request: PendingRequest, signerName: string, login: Login): boolean {
  const spec = objectOf(object['spec']);
  const username = request.username ?? login.username;
  return (
    spec['request'] === Buffer.from(request.text, 'utf8').toString('base64') &&
    spec['signerName'] === signerName &&
    (username === undefined || spec['username'] === username)
  );
}

/** Records the user name that the API server has for this node. A later run checks that the object still has it. */
function recordUsername(attempt: Attempt, request: PendingRequest, object: JsonObject): PendingRequest {
  const { username } = objectOf(object['spec']);
  if (request.username !== undefined || typeof username !== 'string' || username === '') return request;
  const withUsername = { ...request, username };
  update(attempt, { request: withUsername });
  return withUsername;
}

function describeLogin({ as, username }: Login): string {
  return `${as === 'node' ? 'the certificate in use' : 'the bootstrap credential'}${username === undefined ? '' : ` (${username})`}`;
}
