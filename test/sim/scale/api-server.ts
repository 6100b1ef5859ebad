/** The API server of one cluster as the relay meets it: latency, priority and fairness, and one watch that tells all. */
import { ThrottledError } from '../../../core/ports.ts';
import type { ApiAnswer, JsonObject, RequestApi, WatchEvent } from '../../../core/ports.ts';
import type { Account, World } from './account.ts';
import { apiServer } from './numbers.ts';

export interface ApiServer extends RequestApi {
  /** An approved request comes up now. */
  create(name: string, uid: string, requester: string): void;
  readonly waiting: number;
  /** By name: when it came up and when its certificate was stored. */
  readonly lives: ReadonlyMap<string, Life>;
}

export interface Life {
  readonly requester: string;
  readonly from: number;
  until?: number;
}

export interface ApiServerOptions {
  readonly signerName: string;
  /** spec.request, in base64. */
  readonly request: string;
}

export function createApiServer({ timeline }: World, account: Account, options: ApiServerOptions): ApiServer {
  const objects = new Map<string, JsonObject>();
  const lives = new Map<string, Life>();
  const untold: WatchEvent[] = [];
  let wake = (): void => {};
  let version = 1;
  let waiting = 0;
  let seats = 0;
  const queue: (() => void)[] = [];

  function tell(type: 'ADDED' | 'MODIFIED', object: JsonObject): void {
    timeline.after(account.within(apiServer.watchMilliseconds), () => {
      untold.push({ type, object, bytes: 1_500 });
      wake();
    });
  }

  function stamped(object: JsonObject): JsonObject {
    version += 1;
    const metadata = { ...(object['metadata'] as JsonObject), resourceVersion: String(version) };
    return { ...object, metadata };
  }

  async function call<T>(milliseconds: readonly [number, number], act: () => ApiAnswer<T>): Promise<ApiAnswer<T>> {
    account.counts.apiServer.calls += 1;
    if (seats >= apiServer.seats) {
      if (queue.length >= apiServer.queued) {
        account.counts.apiServer.throttled += 1;
        throw new ThrottledError('too many requests');
      }
      await new Promise<void>((resolve) => queue.push(resolve));
    }
    seats += 1;
    await account.wait(account.within(milliseconds));
    const answer = act();
    seats -= 1;
    queue.shift()?.();
    return answer;
  }

  const missing = { ok: false, why: 'NotFound', message: '' } as const;
  const bookmark = (): void => {
    untold.push({ type: 'BOOKMARK', resourceVersion: String(version) });
    wake();
  };

  return {
    lives,
    get waiting() {
      return waiting;
    },
    create(name, uid, requester) {
      const object = stamped({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name, uid },
        spec: {
          request: options.request,
          signerName: options.signerName,
          usages: ['client auth'],
          username: requester,
          groups: ['system:authenticated'],
        },
        status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Simulated', message: '' }] },
      });
      objects.set(name, object);
      lives.set(name, { requester, from: timeline.now() });
      waiting += 1;
      tell('ADDED', object);
    },
    list: () =>
      call(apiServer.readMilliseconds, () => ({
        ok: true,
        value: { items: [...objects.values()], resourceVersion: String(version) },
      })),
    async watch(_query, signal) {
      return {
        ok: true,
        value: {
          async *[Symbol.asyncIterator]() {
            let cancel = timeline.after(60_000, function again() {
              bookmark();
              cancel = timeline.after(60_000, again);
            });
            signal.addEventListener('abort', () => wake(), { once: true });
            try {
              while (!signal.aborted) {
                const events = untold.splice(0);
                for (const event of events) yield event;
                if (events.length === 0) await new Promise<void>((resolve) => (wake = resolve));
              }
            } finally {
              cancel();
            }
          },
        },
      };
    },
    get: (name) =>
      call(apiServer.readMilliseconds, (): ApiAnswer<JsonObject> => {
        const value = objects.get(name);
        return value === undefined ? missing : { ok: true, value };
      }),
    updateStatus: (sent) =>
      call(apiServer.writeMilliseconds, (): ApiAnswer<JsonObject> => {
        const { name } = sent['metadata'] as { readonly name: string };
        const life = lives.get(name);
        if (life === undefined) return missing;
        const stored = stamped(sent);
        objects.delete(name); // for nobody here reads it again
        if (life.until === undefined) waiting -= 1;
        life.until ??= timeline.now();
        tell('MODIFIED', stored);
        return { ok: true, value: stored };
      }),
    updateApproval: async () => missing,
    reviewAccess: async () => ({ ok: true, value: true }),
    createEvent: (event) => call(apiServer.writeMilliseconds, () => ({ ok: true, value: event })),
  };
}
