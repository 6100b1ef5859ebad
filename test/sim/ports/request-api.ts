/**
 * The API server of a simulation: one truth with a history, as many watches on it as there are replicas, and somebody
 * who says who may do what. Lists are stale, and the past is compacted.
 */
import type {
  AccessQuestion,
  ApiAnswer,
  ApiRefusal,
  JsonObject,
  RequestApi,
} from '../../../core/ports/kubernetes-api.ts';
import { call } from '../call.ts';
import type { PortCall } from '../call.ts';
import type { Process, Runtime } from '../runtime.ts';
import { bytesOf, conditionsOf, etcdBytes, short, types } from './stored.ts';
import type { Change, Stored } from './stored.ts';
import { createWatcher } from './watcher.ts';
import type { Watcher } from './watcher.ts';

export interface SimulatedRequests {
  connect(process: Process): RequestApi;
  create(object: JsonObject & { readonly metadata: JsonObject }): void;
  /** By somebody else, now. */
  change(name: string, change: (object: Stored) => JsonObject): void;
  delete(name: string): void;
  find(name: string): Stored | undefined;
  objects(): readonly Stored[];
  /** Every state any object ever had. */
  readonly history: readonly Change[];
  approvedEver(uid: string): boolean;
}

export interface RequestEvents {
  /** After each write of a client. */
  changed(before: Stored, after: Stored, writer: Process): void;
  /** A write of a client did not fit into etcd. */
  tooLarge(object: Stored, writer: Process): void;
  /** Somebody was told whether that user may. */
  reviewed(process: Process, question: AccessQuestion, allowed: boolean): void;
  /** What no client may do, whatever an API server lets pass. */
  crime(what: string): void;
}

/** What the authorizer says now. */
export type Permits = (question: AccessQuestion) => boolean;

export function createRequests(
  runtime: Runtime,
  events: RequestEvents,
  permits: Permits,
  pageSize: number,
): SimulatedRequests {
  let version = 10;
  /** No watch or list goes on from before this. */
  let compacted = 0;
  const objects = new Map<string, Stored>();
  const history: Change[] = [];
  const watchers = new Set<Watcher>();
  const approved = new Set<string>();
  const lists = new Map<string, { readonly version: number; readonly rest: readonly Stored[] }>();
  const posted = new Set<string>();

  function record(type: Change['type'], object: JsonObject): Stored {
    version += 1;
    const metadata = { ...(object['metadata'] as JsonObject), resourceVersion: String(version) };
    const stored = { ...object, metadata } as unknown as Stored;
    history.push({ version, type, object: stored });
    if (types(stored).includes('Approved')) approved.add(stored.metadata.uid);
    for (const watcher of watchers) watcher.push({ version, type, object: stored });
    if (runtime.troubled() && runtime.random.chance(runtime.rates.watch / 4)) {
      runtime.count('trouble: the past is compacted');
      compacted = version - runtime.random.below(3);
    }
    return stored;
  }

  function write(
    sent: JsonObject,
    subresource: 'status' | 'approval',
    writer: Process,
    apply: (old: Stored) => JsonObject | undefined,
  ): ApiAnswer<JsonObject> {
    const { name, uid, resourceVersion } = (sent as Stored).metadata;
    const old = objects.get(name);
    if (old === undefined) return no('NotFound');
    if (uid !== old.metadata.uid || resourceVersion !== old.metadata.resourceVersion) return no('Conflict');
    const kept = new Set(conditionsOf(sent).map((condition) => JSON.stringify(condition)));
    if (!conditionsOf(old).every((condition) => kept.has(JSON.stringify(condition)))) return no('Invalid');
    if (types(sent).includes('Approved') && types(sent).includes('Denied')) return no('Invalid');
    const next = apply(old);
    if (next === undefined) return no('Invalid');
    if (bytesOf(next) > etcdBytes) {
      runtime.count('step: padded: does not fit');
      events.tooLarge(old, writer);
      return no('TooLarge');
    }
    if (JSON.stringify((sent as Stored).spec) !== JSON.stringify(old.spec))
      events.crime(`${writer.name} changes the spec of ${name} by /${subresource}`);
    const stored = record('MODIFIED', next);
    objects.set(name, stored);
    events.changed(old, stored, writer);
    return { ok: true, value: stored };
  }

  /** All of one signer as they were at that version. */
  function stateAt(signerName: string, at: number): Stored[] {
    const then = new Map<string, Stored>();
    for (const { version: changed, type, object } of history) {
      if (changed > at) break;
      if (type === 'DELETED') then.delete(object.metadata.name);
      else then.set(object.metadata.name, object);
    }
    return [...then.values()].filter(({ spec }) => spec['signerName'] === signerName);
  }

  function list(query: Parameters<RequestApi['list']>[0]) {
    const token = query.continue;
    const begun = token === undefined ? undefined : lists.get(token);
    if (token !== undefined && (begun === undefined || begun.version < compacted)) return no('Expired');
    const stale = runtime.troubled() && runtime.random.chance(runtime.rates.staleList) ? runtime.random.below(8) : 0;
    const from = Math.max(compacted, version - stale);
    if (from < version && begun === undefined) runtime.count('trouble: a stale list');
    const { version: at, rest } = begun ?? { version: from, rest: stateAt(query.signerName, from) };
    const limit = Math.min(query.limit, pageSize);
    const next = `token-${lists.size}`;
    const more = rest.length > limit;
    if (more) lists.set(next, { version: at, rest: rest.slice(limit) });
    const items = rest.slice(0, limit);
    return { ok: true, value: { items, resourceVersion: String(at), ...(more ? { continue: next } : {}) } } as const;
  }

  function watch({ signerName, resourceVersion, timeoutSeconds }: Parameters<RequestApi['watch']>[0]) {
    const from = Number(resourceVersion);
    if (!Number.isInteger(from) || from > version) events.crime(`a watch from ${resourceVersion}, which never was`);
    if (from < compacted) return no('Expired');
    const watcher = createWatcher(
      runtime,
      signerName,
      () => watchers.delete(watcher),
      () => String(version),
    );
    watchers.add(watcher);
    for (const change of history) if (change.version > from) watcher.push(change);
    runtime.timeline.after(timeoutSeconds * 1_000, () => watcher.expire());
    return { ok: true, value: watcher } as const;
  }

  return {
    connect: (process) => {
      const ask = <T>(asked: Omit<PortCall<ApiAnswer<T>>, 'port'>): Promise<ApiAnswer<T>> => {
        const forbidden = runtime.troubled() && runtime.random.chance(runtime.rates.forbidden);
        const refuse = (): ApiAnswer<T> => {
          runtime.count(`trouble: forbidden: api.${asked.method}`);
          return no('Forbidden');
        };
        const act = forbidden ? refuse : asked.act;
        return call(runtime, process, {
          told: (answer) => (answer.ok ? 'ok' : answer.why),
          ...asked,
          port: 'api',
          act,
        });
      };
      return {
        list: (query, signal) =>
          ask({
            method: 'list',
            about: short(query.signerName),
            act: () => list(query),
            told: (answer) =>
              answer.ok ? `${answer.value.items.length} as of ${answer.value.resourceVersion}` : answer.why,
            signal,
          }),
        watch: async (query, signal) => {
          const about = `${short(query.signerName)} from ${query.resourceVersion}`;
          const answer = await ask({ method: 'watch', about, act: () => watch(query), signal });
          return answer.ok ? { ok: true, value: answer.value.listen(process, signal) } : answer;
        },
        get: (name, signal) =>
          ask({
            method: 'get',
            about: name,
            act: (): ApiAnswer<JsonObject> => {
              const value = objects.get(name);
              return value === undefined ? no('NotFound') : { ok: true, value };
            },
            signal,
          }),
        updateStatus: (sent, signal) =>
          ask({
            method: 'updateStatus',
            about: describe(sent),
            act: () =>
              write(sent, 'status', process, (old) => {
                const certificate = old.status['certificate'];
                if (certificate !== undefined && certificate !== (sent as Stored).status['certificate'])
                  return undefined;
                return { ...old, status: (sent as Stored).status };
              }),
            signal,
          }),
        updateApproval: (sent, signal) =>
          ask({
            method: 'updateApproval',
            about: describe(sent),
            act: () =>
              write(sent, 'approval', process, (old) => ({
                ...old,
                metadata: { ...old.metadata, annotations: (sent as Stored).metadata['annotations'] ?? {} },
                status: { ...old.status, conditions: conditionsOf(sent) },
              })),
            signal,
          }),
        reviewAccess: (question: AccessQuestion, signal) =>
          ask({
            method: 'reviewAccess',
            about: `${question.user} ${question.subresource}`,
            act: () => {
              const value = permits(question);
              runtime.count(`step: review: ${value ? 'yes' : 'no'}`);
              events.reviewed(process, question, value);
              return { ok: true, value };
            },
            told: (answer) => (answer.ok ? (answer.value ? 'yes' : 'no') : answer.why),
            signal,
          }),
        createEvent: (event, signal) => {
          const name = String((event['metadata'] as JsonObject)['name']);
          return ask<JsonObject>({
            method: 'createEvent',
            about: String(event['reason']),
            act: () => (posted.has(name) ? no('Conflict') : (posted.add(name), { ok: true, value: event })),
            signal,
          });
        },
      };
    },
    create(object) {
      const stored = record('ADDED', object);
      objects.set(stored.metadata.name, stored);
    },
    change(name, change) {
      const found = objects.get(name);
      if (found !== undefined) objects.set(name, record('MODIFIED', change(found)));
    },
    delete(name) {
      const found = objects.get(name);
      objects.delete(name);
      if (found !== undefined) record('DELETED', found);
    },
    find: (name) => objects.get(name),
    objects: () => [...objects.values()],
    history,
    approvedEver: (uid) => approved.has(uid),
  };
}

/** `csr-3 with Failed`: what a write would make of it. */
function describe(object: JsonObject): string {
  const { metadata, status } = object as Stored;
  const what = status['certificate'] === undefined ? types(object).at(-1) : 'a certificate';
  return `${metadata.name} with ${String(what)} on ${metadata.resourceVersion}`;
}

function no(why: ApiRefusal): { readonly ok: false; readonly why: ApiRefusal; readonly message: string } {
  return { ok: false, why, message: why };
}
