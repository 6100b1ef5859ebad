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
import type { VirtualClock } from '../../../harness/determinism/virtual-time.ts';

/** What can go wrong with one call. The first two look alike from outside; the write of `after` has been done. */
export type Fault = 'before' | 'after' | 'throttled' | ApiRefusal;
export type Verb = 'list' | 'watch' | 'get' | 'updateStatus' | 'updateApproval' | 'reviewAccess' | 'createEvent';

type Stored = JsonObject & { metadata: JsonObject; spec: JsonObject; status: JsonObject };
interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: Stored;
}
interface Watcher {
  readonly signerName: string;
  push(event: WatchEvent): void;
  end(error?: Error): void;
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
  let version = 10;
  /** No history before this: watches and continue tokens from earlier are Expired. */
  let compacted = 0;
  const objects = new Map<string, Stored>();
  const history: Change[] = [];
  const watchers = new Set<Watcher>();
  const events = new Map<string, JsonObject>();
  const calls: { verb: Verb; subject: string; fault?: Fault }[] = [];
  const crimes: string[] = [];
  const reviews: AccessQuestion[] = [];
  /** Consistent snapshots that lists page through. */
  const lists = new Map<string, { version: number; rest: Stored[] }>();

  function record(type: Change['type'], object: Stored): Stored {
    version += 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    const change: Change = { version, type, object: stored };
    history.push(change);
    for (const watcher of watchers) deliver(watcher, change);
    return stored;
  }

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
    if (planned !== undefined && planned !== 'after') return no(planned);
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
    list: (query, signal) =>
      arrive('list', query.signerName, signal, () => {
        const token = query.continue;
        const begun = token === undefined ? undefined : lists.get(token);
        if (token !== undefined && (begun === undefined || begun.version < compacted)) return no('Expired');
        const list = begun ?? {
          version,
          rest: [...objects.values()].filter(({ spec }) => spec['signerName'] === query.signerName),
        };
        const items = list.rest.slice(0, query.limit);
        const rest = list.rest.slice(query.limit);
        const next = `token-${calls.length}`;
        if (rest.length > 0) lists.set(next, { version: list.version, rest });
        return yes({
          items,
          resourceVersion: String(list.version),
          ...(rest.length > 0 ? { continue: next } : {}),
        });
      }),

    watch: (query, signal) =>
      arrive<AsyncIterable<WatchEvent>>('watch', query.signerName, signal, () => {
        const from = Number(query.resourceVersion);
        if (!Number.isInteger(from) || from > version) crimes.push(`watch from ${query.resourceVersion}`);
        if (from < compacted) return no('Expired');
        const { watcher, events } = createWatcher(query.signerName, signal);
        for (const change of history) if (change.version > from) deliver(watcher, change);
        watchers.add(watcher);
        clock.after(query.timeoutSeconds * 1_000, () => watcher.end());
        return yes(events);
      }),

    get: (name, signal) =>
      arrive('get', name, signal, () => {
        const found = objects.get(name);
        return found === undefined ? no('NotFound') : yes<JsonObject>(found);
      }),

    updateStatus: (sent, signal) => {
      const { metadata, status } = sent as Stored;
      const name = String(metadata['name']);
      return arrive('updateStatus', name, signal, () => {
        const old = objects.get(name);
        if (old === undefined) return no('NotFound');
        if (metadata['uid'] !== old.metadata['uid']) return no('Conflict');
        if (metadata['resourceVersion'] !== old.metadata['resourceVersion']) return no('Conflict');
        const before = conditionsOf(old);
        const after = conditionsOf(sent as Stored);
        if (before.some((condition) => !after.some((kept) => JSON.stringify(kept) === JSON.stringify(condition))))
          return no('Invalid');
        const certificate = status['certificate'];
        if (old.status['certificate'] !== undefined && old.status['certificate'] !== certificate) return no('Invalid');
        const types = before.map((condition) => condition['type']);
        if (certificate !== old.status['certificate'] && (!types.includes('Approved') || types.includes('Denied')))
          crimes.push(`certificate on ${name}, which is ${types.join('+') || 'pending'}`);
        if (certificate !== undefined && after.some((condition) => condition['type'] === 'Failed'))
          crimes.push(`certificate and Failed on ${name}`);
        const unchanged = (object: Stored) => JSON.stringify({ ...withoutManagedFields(object), status: 0 });
        if (unchanged(sent as Stored) !== unchanged(old)) crimes.push(`${name}: more than its status was changed`);
        // Updating /status keeps everything else.
        const stored = record('MODIFIED', { ...old, status: { ...status } });
        objects.set(name, stored);
        return yes<JsonObject>(stored);
      });
    },

    updateApproval: (sent, signal) => {
      const { metadata } = sent as Stored;
      const name = String(metadata['name']);
      return arrive('updateApproval', name, signal, () => {
        const old = objects.get(name);
        if (old === undefined) return no('NotFound');
        if (metadata['uid'] !== old.metadata['uid']) return no('Conflict');
        if (metadata['resourceVersion'] !== old.metadata['resourceVersion']) return no('Conflict');
        const before = conditionsOf(old);
        const after = conditionsOf(sent as Stored);
        const types = new Set(after.map((condition) => condition['type']));
        if (before.some((condition) => !after.some((kept) => JSON.stringify(kept) === JSON.stringify(condition))))
          return no('Invalid');
        if (types.has('Approved') && types.has('Denied')) return no('Invalid');
        if (after.some(({ type, status }) => (type === 'Approved' || type === 'Denied') && status !== 'True'))
          return no('Invalid');
        if (before.length > 0 || old.status['certificate'] !== undefined) crimes.push(`decided ${name} a second time`);
        const unchanged = ({ metadata, ...object }: Stored) =>
          JSON.stringify(withoutManagedFields({ ...object, metadata: { ...metadata, annotations: 0 }, status: 0 }));
        if (unchanged(sent as Stored) !== unchanged(old))
          crimes.push(`${name}: more than its conditions and annotations was changed`);
        const annotations = { ...(old.metadata['annotations'] as JsonObject) };
        const sentAnnotations = (metadata['annotations'] ?? {}) as JsonObject;
        if (Object.entries(annotations).some(([key, value]) => sentAnnotations[key] !== value))
          crimes.push(`${name}: an annotation was changed or lost`);
        const stored = record('MODIFIED', {
          ...old,
          metadata: { ...old.metadata, annotations: sentAnnotations },
          status: { ...old.status, conditions: after },
        });
        objects.set(name, stored);
        return yes<JsonObject>(stored);
      });
    },

    reviewAccess: (question, signal) =>
      arrive('reviewAccess', question.user, signal, () => {
        reviews.push(question);
        return yes(allows(question));
      }),

    createEvent: (event, signal) => {
      const name = String((event['metadata'] as JsonObject)['name']);
      return arrive('createEvent', name, signal, () => {
        if (events.has(name)) return no('Conflict');
        events.set(name, event);
        return yes(event);
      });
    },
  };

  function createWatcher(
    signerName: string,
    signal: AbortSignal,
  ): { watcher: Watcher; events: AsyncIterable<WatchEvent> } {
    const waiting: WatchEvent[] = [];
    let ended: { error?: Error } | undefined;
    let wake = (): void => {};
    const watcher: Watcher = {
      signerName,
      push(event) {
        if (ended !== undefined) return;
        waiting.push(event);
        wake();
      },
      end(error) {
        ended ??= error === undefined ? {} : { error };
        watchers.delete(watcher);
        wake();
      },
    };
    signal.addEventListener('abort', () => watcher.end(signal.reason as Error), { once: true });
    async function* deliverAll(): AsyncGenerator<WatchEvent, void, undefined> {
      try {
        for (;;) {
          const event = waiting.shift();
          if (event !== undefined) yield event;
          else if (ended === undefined) await new Promise<void>((resolve) => (wake = resolve));
          else if (ended.error !== undefined) throw ended.error;
          else return;
        }
      } finally {
        watchers.delete(watcher);
      }
    }
    return { watcher, events: deliverAll() };
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
      return String(version);
    },
    find: (name: string): Stored | undefined => objects.get(name),
    names: () => [...objects.keys()],
    create(object: JsonObject) {
      const { name } = (object as Stored).metadata;
      objects.set(String(name), record('ADDED', object as Stored));
    },
    change(name: string, change: (object: Stored) => JsonObject) {
      const found = objects.get(name);
      if (found !== undefined) objects.set(name, record('MODIFIED', change(found) as Stored));
    },
    delete(name: string) {
      const found = objects.get(name);
      objects.delete(name);
      if (found !== undefined) record('DELETED', found);
    },
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
      this.sendToWatches({ type: 'BOOKMARK', resourceVersion: String(version) });
    },
    /** Something elsewhere in etcd changes. */
    pass: () => void (version += 1),
    compact() {
      compacted = version;
    },
  };
}

export type SimulatedApi = ReturnType<typeof createSimulatedApi>;

function conditionsOf(object: Stored): readonly JsonObject[] {
  return (object.status['conditions'] ?? []) as readonly JsonObject[];
}

function yes<T>(value: T): ApiAnswer<T> {
  return { ok: true, value };
}

function no<T>(why: ApiRefusal): ApiAnswer<T> {
  return { ok: false, why, message: why };
}
