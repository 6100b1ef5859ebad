import { createCsrStore, type CsrStore } from '../../../dev/csr-api/csr-store.ts';
import { createObjectHistory } from '../../../dev/csr-api/object-history.ts';
import type { JsonObject, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import { createEventQueue } from '../kubernetes/event-queue.ts';
import { createRequestServer } from '../kubernetes/request-server.ts';

/**
 * The API server of in-process tests: the store of the stand-in (the rules of `npm run dev`) without a network, so that a
 * test decides when each call fails. It outlives the relays that use it.
 */
export interface InProcessApi {
  readonly store: CsrStore;
  readonly events: readonly JsonObject[];
  /** For one relay; its watches end when `alive` says no. */
  connect(): RequestApi;
}

export function createInProcessApi(now: () => number): InProcessApi {
  const history = createObjectHistory();
  const store = createCsrStore(now, history);
  const server = createRequestServer(now, Infinity, history);
  const events: JsonObject[] = [];
  return {
    store,
    events,
    connect: () => ({
      list: async (query) => server.list(query),
      async watch({ signerName, resourceVersion, timeoutSeconds }, signal) {
        const queue = createEventQueue(signal);
        const started = server.watch(resourceVersion, ({ type, object }) => {
          if (object.spec['signerName'] === signerName)
            queue.push({ type, object, bytes: JSON.stringify(object).length });
        });
        if (!started.ok) return started;
        const timeout = setTimeout(() => queue.end(), timeoutSeconds * 1_000).unref();
        queue.whenEnded(() => {
          clearTimeout(timeout);
          started.value();
        });
        return { ok: true, value: queue.events };
      },
      get: async (name) => server.get(name),
      updateStatus: async (object) => server.write(object, 'status'),
      updateApproval: async (object) => server.write(object, 'approval'),
      reviewAccess: async () => ({ ok: true, value: true }),
      async createEvent(event) {
        const answer = server.createEvent(event);
        if (answer.ok) events.push(event);
        return answer;
      },
    }),
  };
}

export function metadataOf(object: JsonObject): { name: string; uid: string; resourceVersion: string } {
  return object['metadata'] as { name: string; uid: string; resourceVersion: string };
}
