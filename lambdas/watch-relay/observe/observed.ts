import { objectOf } from '../../../core/encoding/json-object.ts';
import { ThrottledError } from '../../../core/ports/errors.ts';
import type { ApiAnswer, JsonObject, ListWatch, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import type { SigningEndpoint } from '../../../core/ports/signing-endpoint.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Health } from './health.ts';
import type { RelayMetrics } from './metrics.ts';

/** Counts each refusal and error, and reports each 401 and 403 to `/readyz`. */
export function observedApi(api: RequestApi, health: Health, metrics: RelayMetrics): RequestApi {
  const observe = observer(health, metrics);

  return {
    list: (query, signal) => observe('list', query.signerName, signal, () => api.list(query, signal)),
    watch: (query, signal) => observe('watch', query.signerName, signal, () => api.watch(query, signal)),
    get: (name, signal) => observe('get', 'certificatesigningrequests', signal, () => api.get(name, signal)),
    // RBAC permits writes for each signer (verb `sign` on `signers`).
    updateStatus: (object, signal) =>
      observe('update', `status for ${signerNameOf(object)}`, signal, () => api.updateStatus(object, signal)),
    updateApproval: (object, signal) =>
      observe('update', `approval for ${signerNameOf(object)}`, signal, () => api.updateApproval(object, signal)),
    reviewAccess: (question, signal) =>
      observe('create', 'subjectaccessreviews', signal, () => api.reviewAccess(question, signal)),
    // Events are optional: the relay is ready without the permission to create them.
    createEvent: async (event, signal) => {
      const answer = await api.createEvent(event, signal);
      if (!answer.ok && answer.problem.why !== 'Conflict') metrics.apiError('create', answer.problem.why);
      return answer;
    },
  };
}

/** The same for list and watch of one resource. */
export function observedSource(resource: string, source: ListWatch, health: Health, metrics: RelayMetrics): ListWatch {
  const observe = observer(health, metrics);
  return {
    list: (query, signal) => observe('list', resource, signal, () => source.list(query, signal)),
    watch: (query, signal) => observe('watch', resource, signal, () => source.watch(query, signal)),
  };
}

function observer(health: Health, metrics: RelayMetrics) {
  return async function observe<T>(
    verb: string,
    subject: string,
    signal: AbortSignal,
    call: () => Promise<ApiAnswer<T>>,
  ): Promise<ApiAnswer<T>> {
    const name = `${verb} ${subject}`;
    try {
      const answer = await call();
      if (!answer.ok) metrics.apiError(verb, answer.problem.why);
      if (!answer.ok && ['Unauthorized', 'Forbidden'].includes(answer.problem.why)) health.unauthorized(name);
      // The API server refuses for other reasons only after the authorization.
      else health.authorized(name);
      return answer;
    } catch (error) {
      if (!signal.aborted) metrics.apiError(verb, error instanceof ThrottledError ? 'Throttled' : 'Unavailable');
      throw error;
    }
  };
}

/** Measures the time of each call, by the kind of its answer, and reports a refused caller to `/readyz`. */
export function observedEndpoint(
  endpoint: SigningEndpoint,
  clock: Clock,
  health: Health,
  metrics: RelayMetrics,
): SigningEndpoint {
  async function observe<A extends { readonly kind: string }>(
    name: string,
    signal: AbortSignal,
    count: (outcome: string, seconds: number) => void,
    call: () => Promise<A>,
  ): Promise<A> {
    const begun = clock.monotonic();
    const seconds = (): number => (clock.monotonic() - begun) / 1_000;
    try {
      const answer = await call();
      count(answer.kind, seconds());
      if (answer.kind === 'unauthorized') health.unauthorized(name);
      else health.authorized(name);
      return answer;
    } catch (error) {
      if (!signal.aborted) count('none', seconds());
      throw error;
    }
  }

  return {
    sign: (object, signal) => observe('sign endpoint', signal, metrics.signed, () => endpoint.sign(object, signal)),
    attest: (object, context, signal) =>
      observe('attest endpoint', signal, metrics.attested, () => endpoint.attest(object, context, signal)),
  };
}

function signerNameOf(object: JsonObject): string {
  const { signerName } = objectOf(object['spec']);
  return typeof signerName === 'string' ? signerName : '?';
}
