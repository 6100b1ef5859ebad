import { ThrottledError } from '../../../../core/ports/errors.ts';
import type {
  AccessQuestion,
  ApiAnswer,
  ApiRefusal,
  JsonObject,
  RequestApi,
  WatchEvent,
} from '../../../../core/ports/kubernetes-api.ts';
import { sizeOf, withoutManagedFields } from '../../../../lambdas/watch-relay/objects/request-phase.ts';
import { createEventQueue } from '../../../harness/kubernetes/event-queue.ts';
import type { EventQueue } from '../../../harness/kubernetes/event-queue.ts';
import { createRequestServer, refused } from '../../../harness/kubernetes/request-server.ts';
import type { Change, Stored } from '../../../harness/kubernetes/request-server.ts';
import type { VirtualClock } from '../../../harness/determinism/virtual-time.ts';

/** What can go wrong with one call. The first two look alike from outside; the write of `after` has been done. */
export type Fault = 'before' | 'after' | 'throttled' | ApiRefusal;
export type Verb = 'list' | 'watch' | 'get' | 'updateStatus' | 'updateApproval' | 'reviewAccess' | 'createEvent';

interface Watcher extends EventQueue {
  readonly signerName: string;
}

export interface SimulatedApiOptions {
  readonly clock: VirtualClock;
  /** Milliseconds each call takes. */
  readonly latency?: (verb: Verb) => number;
  /** How late watches tell what happened. */
  readonly watchLag?: number;
  /** Asked once per call, when it arrives. */
  readonly fault?: (verb: Verb, subject: string) => Fault | undefined;
  readonly allows?: (question: AccessQuestion) => boolean;
}

/**
 * An API server in memory, as strict as the real one where the relay could go wrong, and stricter where the real one
 * is careless: it complains about a certificate on a request that is not approved.
 */
export function createSimulatedApi({
  clock,
  latency = () => 1,
  watchLag = 0,
  fault = () => undefined,
  allows = () => true,
}: SimulatedApiOptions) {
  const server = createRequestServer(() => clock.now());
  const watchers = new Set<Watcher>();
  const events = new Map<string, JsonObject>();
  const calls: { verb: Verb; subject: string; fault?: Fault }[] = [];
  const crimes: string[] = [];
  const reviews: AccessQuestion[] = [];

  function deliver(watcher: Watcher, { type, object }: Change): void {
    if (object.spec['signerName'] !== watcher.signerName) return;
    const event: WatchEvent = { type, object, bytes: sizeOf(object) };
    if (watchLag === 0) watcher.push(event);
    else clock.after(watchLag, () => watcher.push(event));
  }

  async function arrive<T>(
    verb: Verb,
    subject: string,
    signal: AbortSignal,
    act: () => ApiAnswer<T>,
  ): Promise<ApiAnswer<T>> {
    const planned = fault(verb, subject);
    calls.push({ verb, subject, ...(planned === undefined ? {} : { fault: planned }) });
    await pass(latency(verb) / 2, signal);
    if (planned === 'before') throw new Error('connection lost');
    if (planned === 'throttled') throw new ThrottledError('HTTP 429');
    if (planned !== undefined && planned !== 'after') return refused(planned);
    const answer = act();
    await pass(latency(verb) / 2, signal);
    if (planned === 'after') throw new Error('connection lost');
    return answer;
  }

  function pass(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const aborted = (): void => {
        cancel();
        reject(signal.reason as Error);
      };
      const cancel = clock.after(milliseconds, () => {
        signal.removeEventListener('abort', aborted);
        resolve();
      });
      if (signal.aborted) aborted();
      signal.addEventListener('abort', aborted, { once: true });
    });
  }

  const api: RequestApi = {
    list: (query, signal) => arrive('list', query.signerName, signal, () => server.list(query)),

    watch: (query, signal) =>
      arrive<AsyncIterable<WatchEvent>>('watch', query.signerName, signal, () => {
        if (!(Number(query.resourceVersion) <= server.version())) crimes.push(`watch from ${query.resourceVersion}`);
        const watcher: Watcher = { ...createEventQueue(signal), signerName: query.signerName };
        const started = server.watch(query.resourceVersion, (change) => deliver(watcher, change));
        if (!started.ok) return started;
        watchers.add(watcher);
        watcher.whenEnded(() => {
          started.value();
          watchers.delete(watcher);
        });
        clock.after(query.timeoutSeconds * 1_000, () => watcher.end());
        return yes(watcher.events);
      }),

    get: (name, signal) => arrive('get', name, signal, () => server.get(name)),

    updateStatus: (sent, signal) =>
      write(sent as Stored, 'status', signal, (old, before, after) => {
        const { name } = old.metadata;
        const { certificate } = (sent as Stored).status;
        const types = before.map((condition) => condition['type']);
        if (certificate !== old.status['certificate'] && (!types.includes('Approved') || types.includes('Denied')))
          crimes.push(`certificate on ${name}, which is ${types.join('+') || 'pending'}`);
        if (certificate !== undefined && after.some((condition) => condition['type'] === 'Failed'))
          crimes.push(`certificate and Failed on ${name}`);
        const unchanged = (object: Stored) => JSON.stringify({ ...withoutManagedFields(object), status: 0 });
        if (unchanged(sent as Stored) !== unchanged(old)) crimes.push(`${name}: more than its status was changed`);
      }),

    updateApproval: (sent, signal) =>
      write(sent as Stored, 'approval', signal, (old, before) => {
        const { name } = old.metadata;
        if (before.length > 0 || old.status['certificate'] !== undefined) crimes.push(`decided ${name} a second time`);
        const unchanged = ({ metadata, ...object }: Stored) =>
          JSON.stringify(withoutManagedFields({ ...object, metadata: { ...metadata, annotations: 0 }, status: 0 }));
        if (unchanged(sent as Stored) !== unchanged(old))
          crimes.push(`${name}: more than its conditions and annotations was changed`);
        const annotations = { ...(old.metadata['annotations'] as JsonObject) };
        const sentAnnotations = ((sent as Stored).metadata['annotations'] ?? {}) as JsonObject;
        if (Object.entries(annotations).some(([key, value]) => sentAnnotations[key] !== value))
          crimes.push(`${name}: an annotation was changed or lost`);
      }),

    reviewAccess: (question, signal) =>
      arrive('reviewAccess', question.user, signal, () => {
        reviews.push(question);
        return yes(allows(question));
      }),

    createEvent: (event, signal) => {
      const name = String((event['metadata'] as JsonObject)['name']);
      return arrive('createEvent', name, signal, () => {
        const answer = server.createEvent(event);
        if (answer.ok) events.set(name, event);
        return answer;
      });
    },
  };

  /** `judge` sees each write that the API server accepts, with the object before it and both lists of conditions. */
  function write(
    sent: Stored,
    subresource: 'status' | 'approval',
    signal: AbortSignal,
    judge: (old: Stored, before: readonly JsonObject[], after: readonly JsonObject[]) => void,
  ): Promise<ApiAnswer<JsonObject>> {
    const { name } = sent.metadata;
    return arrive(subresource === 'status' ? 'updateStatus' : 'updateApproval', name, signal, () => {
      const old = server.find(name);
      const answer = server.write(sent, subresource);
      if (old === undefined || !answer.ok) return answer;
      const [before, after] = [conditionsOf(old), conditionsOf(sent)];
      if (before.some((condition) => !after.some((kept) => JSON.stringify(kept) === JSON.stringify(condition))))
        crimes.push(`${name}: a condition was changed or lost`);
      judge(old, before, after);
      return answer;
    });
  }

  return {
    api,
    events,
    calls,
    /** Things no client may do, whatever the API server lets pass. */
    crimes,
    reviews,
    count: (verb: Verb) => calls.filter((call) => call.verb === verb).length,
    watching: () => watchers.size,
    get version() {
      return String(server.version());
    },
    find: server.find,
    names: () => server.names(),
    create: server.create,
    change: server.change,
    delete: server.delete,
    addCondition(name: string, condition: JsonObject) {
      this.change(name, (old) => ({
        ...old,
        status: { ...old.status, conditions: [...conditionsOf(old), condition] },
      }));
    },
    /** As a restart or a broken proxy does it. */
    dropWatches(how: 'broken' | 'in good order' = 'broken') {
      for (const watcher of watchers) watcher.end(how === 'broken' ? new Error('connection reset') : undefined);
    },
    sendToWatches(event: WatchEvent) {
      for (const watcher of watchers) watcher.push(event);
    },
    bookmark() {
      this.sendToWatches({ type: 'BOOKMARK', resourceVersion: String(server.version()) });
    },
    /** Something elsewhere in etcd changes. */
    pass: server.pass,
    compact: () => server.compact(server.version()),
  };
}

function conditionsOf(object: Stored): readonly JsonObject[] {
  return (object.status['conditions'] ?? []) as readonly JsonObject[];
}

function yes<T>(value: T): ApiAnswer<T> {
  return { ok: true, value };
}
