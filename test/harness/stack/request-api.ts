import { createCsrStore, type CsrStore, type Stored } from '../../../dev/csr-api/csr-store.ts';
import type { ApiAnswer, JsonObject, RequestApi, WatchEvent } from '../../../core/ports/kubernetes-api.ts';

/**
 * The API server of in-process tests: the stand-in's own store (same rules as under `npm run dev`), asked without a
 * network between, so that a test decides when each call fails. It outlives the relays that use it.
 */
export interface InProcessApi {
  readonly store: CsrStore;
  readonly events: readonly JsonObject[];
  /** For one relay; its watches end when `alive` says no. */
  connect(): RequestApi;
}

export function createInProcessApi(now: () => number): InProcessApi {
  const store = createCsrStore(now);
  const events = new Map<string, JsonObject>();
  return {
    store,
    get events() {
      return [...events.values()];
    },
    connect: () => ({
      async list({ signerName }) {
        const items = store.list('').filter((object) => signerNameOf(object) === signerName);
        return { ok: true, value: { items, resourceVersion: String(store.version()) } };
      },
      async watch({ signerName, resourceVersion }, signal) {
        return { ok: true, value: watchStore(store, signerName, Number(resourceVersion), signal) };
      },
      async get(name) {
        return answerOf(store.get(name));
      },
      async updateStatus(object) {
        return answerOf(store.update(metadataOf(object).name, 'status', object));
      },
      async updateApproval(object) {
        return answerOf(store.update(metadataOf(object).name, 'approval', object));
      },
      async reviewAccess() {
        return { ok: true, value: true };
      },
      async createEvent(event) {
        const { name } = metadataOf(event);
        if (events.has(name)) return { ok: false, why: 'Conflict', message: 'it exists' };
        events.set(name, event);
        return { ok: true, value: event };
      },
    }),
  };
}

async function* watchStore(
  store: CsrStore,
  signerName: string,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent> {
  const waiting: WatchEvent[] = [];
  let wake = (): void => {};
  const stop = store.watch(from, ({ type, object }) => {
    if (signerNameOf(object) === signerName) waiting.push({ type, object, bytes: JSON.stringify(object).length });
    wake();
  });
  if (stop === undefined) {
    yield { type: 'ERROR', why: 'Expired', message: 'too old resource version' };
    return;
  }
  signal.addEventListener('abort', () => wake());
  try {
    while (!signal.aborted) {
      const event = waiting.shift();
      if (event !== undefined) yield event;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    stop();
  }
}

function answerOf(stored: Stored): ApiAnswer<JsonObject> {
  if (stored.ok) return { ok: true, value: stored.object };
  const { code, message } = stored.problem;
  return { ok: false, why: code === 404 ? 'NotFound' : code === 409 ? 'Conflict' : 'Invalid', message };
}

export function metadataOf(object: JsonObject): { name: string; uid: string; resourceVersion: string } {
  return object['metadata'] as { name: string; uid: string; resourceVersion: string };
}

function signerNameOf(object: JsonObject): unknown {
  return (object['spec'] as JsonObject)['signerName'];
}
