/** The API server of one cluster as the relay meets it: latency, priority and fairness, and one watch that tells all. */
import { failure } from '../../../core/outcome/result.ts';
import { ThrottledError } from '../../../core/ports/errors.ts';
import type { ApiAnswer, ApiProblem, JsonObject, RequestApi, WatchEvent } from '../../../core/ports/kubernetes-api.ts';
import type { Account, World } from './aws/account.ts';
import { apiServer } from './numbers.ts';

export interface ApiServer extends RequestApi {
  /** A request comes up now. */
  create(request: NewRequest): void;
}

export interface NewRequest {
  readonly name: string;
  readonly uid: string;
  readonly requester: string;
  readonly groups: readonly string[];
  readonly signerName: string;
  readonly usages: readonly string[];
  /** spec.request, in base64. */
  readonly request: string;
  /** By another approver, before the relay sees it. */
  readonly approved: boolean;
  /** Its certificate is stored, or it is denied. */
  readonly ended: (how: 'issued' | 'denied') => void;
}

export function createApiServer({ timeline }: World, account: Account): ApiServer {
  const objects = new Map<string, JsonObject>();
  const owners = new Map<string, NewRequest['ended']>();
  /** By signer: each reflector has a watch of its own. */
  const watches = new Map<string, { readonly untold: WatchEvent[]; wake: () => void }>();
  let version = 1;
  let seats = 0;
  const queue: (() => void)[] = [];

  function watchOf(signerName: string) {
    const known = watches.get(signerName) ?? { untold: [], wake: () => {} };
    watches.set(signerName, known);
    return known;
  }

  function tell(type: 'ADDED' | 'MODIFIED', object: JsonObject): void {
    const { signerName } = object['spec'] as { readonly signerName: string };
    const watch = watchOf(signerName);
    timeline.after(account.within(apiServer.watchMilliseconds), () => {
      watch.untold.push({ type, object, bytes: 1_500 });
      watch.wake();
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

  const missing = failure<ApiProblem>({ why: 'NotFound', message: '' });
  function end(name: string, how: 'issued' | 'denied'): void {
    objects.delete(name); // no client reads it again
    owners.get(name)?.(how);
    owners.delete(name);
  }

  return {
    create({ name, uid, requester, groups, signerName, usages, request, approved, ended }) {
      const conditions = approved ? [{ type: 'Approved', status: 'True', reason: 'Simulated', message: '' }] : [];
      const object = stamped({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name, uid },
        spec: { request, signerName, usages, username: requester, groups },
        status: { conditions },
      });
      objects.set(name, object);
      owners.set(name, ended);
      tell('ADDED', object);
    },
    list: () =>
      call(apiServer.readMilliseconds, () => ({
        ok: true,
        value: { items: [], resourceVersion: String(version) }, // all that comes up comes later
      })),
    async watch({ signerName }, signal) {
      const watch = watchOf(signerName);
      const bookmark = (): void => {
        watch.untold.push({ type: 'BOOKMARK', resourceVersion: String(version) });
        watch.wake();
      };
      return {
        ok: true,
        value: {
          async *[Symbol.asyncIterator]() {
            let cancel = timeline.after(60_000, function again() {
              bookmark();
              cancel = timeline.after(60_000, again);
            });
            signal.addEventListener('abort', () => watch.wake(), { once: true });
            try {
              while (!signal.aborted) {
                const events = watch.untold.splice(0);
                for (const event of events) yield event;
                if (events.length === 0) await new Promise<void>((resolve) => (watch.wake = resolve));
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
        const name = nameOf(sent);
        if (!objects.has(name)) return missing;
        const stored = stamped(sent);
        end(name, 'issued');
        tell('MODIFIED', stored);
        return { ok: true, value: stored };
      }),
    updateApproval: (sent) =>
      call(apiServer.writeMilliseconds, (): ApiAnswer<JsonObject> => {
        const name = nameOf(sent);
        if (!objects.has(name)) return missing;
        const stored = stamped(sent);
        objects.set(name, stored);
        const { conditions } = sent['status'] as { readonly conditions: readonly { readonly type: string }[] };
        if (conditions.some(({ type }) => type === 'Denied')) end(name, 'denied');
        tell('MODIFIED', stored);
        return { ok: true, value: stored };
      }),
    reviewAccess: () => call(apiServer.readMilliseconds, () => ({ ok: true, value: true })),
    createEvent: (event) => call(apiServer.writeMilliseconds, () => ({ ok: true, value: event })),
  };
}

function nameOf(object: JsonObject): string {
  return (object['metadata'] as { readonly name: string }).name;
}
