/**
 * The API server of a simulation: an object history that all replicas watch, and an authorizer. Lists
 * may be stale, watches lag and break, and the history is compacted.
 */
import type { AccessQuestion, ApiAnswer, JsonObject, RequestApi } from '../../../core/ports/kubernetes-api.ts';
import { call } from '../call.ts';
import type { PortCall } from '../call.ts';
import { epoch } from '../runtime.ts';
import type { Process, Runtime } from '../runtime.ts';
import { createRequestServer, refused } from '../../harness/kubernetes/request-server.ts';
import type { Change, Stored } from '../../harness/kubernetes/request-server.ts';
import { etcdBytes, short, types } from './stored.ts';
import { createWatcher } from './watcher.ts';

export interface SimulatedRequests {
  connect(process: Process): RequestApi;
  create(object: JsonObject & { readonly metadata: JsonObject }): void;
  /** A write of another client, now. */
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
  /** The authorizer has answered a client. */
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
  const server = createRequestServer(() => epoch + runtime.timeline.now(), etcdBytes);
  const approved = new Set<string>();
  const newest = (): string => String(server.version());

  const first = server.watch(newest(), (change) => {
    if (types(change.object).includes('Approved')) approved.add(change.object.metadata.uid);
    if (!runtime.troubled() || !runtime.random.chance(runtime.rates.watch / 4)) return;
    runtime.count('trouble: the past is compacted');
    server.compact(change.version - runtime.random.below(3));
  });
  if (!first.ok) throw new Error(first.problem.message);

  function write(sent: JsonObject, subresource: 'status' | 'approval', writer: Process): ApiAnswer<JsonObject> {
    const before = server.find((sent as Stored).metadata.name);
    const answer = server.write(sent, subresource);
    if (before === undefined) return answer;
    if (!answer.ok) {
      if (answer.problem.why === 'TooLarge') {
        runtime.count('step: padded: does not fit');
        events.tooLarge(before, writer);
      }
      return answer;
    }
    if (JSON.stringify((sent as Stored).spec) !== JSON.stringify(before.spec))
      events.crime(`${writer.name} changes the spec of ${before.metadata.name} by /${subresource}`);
    if (answer.value !== before) events.changed(before, answer.value, writer);
    return answer;
  }

  function list(query: Parameters<RequestApi['list']>[0]) {
    const stale = runtime.troubled() && runtime.random.chance(runtime.rates.staleList) ? runtime.random.below(8) : 0;
    const from = Math.max(server.compacted(), server.version() - stale);
    if (from < server.version() && query.continue === undefined) runtime.count('trouble: a stale list');
    return server.list({ ...query, limit: Math.min(query.limit, pageSize) }, from);
  }

  function watch({ signerName, resourceVersion, timeoutSeconds }: Parameters<RequestApi['watch']>[0]) {
    if (!(Number(resourceVersion) <= server.version()))
      events.crime(`a watch from ${resourceVersion}, which never was`);
    let stop = (): void => {};
    const watcher = createWatcher(runtime, signerName, () => stop(), newest);
    const started = server.watch(resourceVersion, (change) => watcher.push(change));
    if (!started.ok) {
      watcher.expire();
      return started;
    }
    stop = started.value;
    runtime.timeline.after(timeoutSeconds * 1_000, () => watcher.expire());
    return { ok: true, value: watcher } as const;
  }

  return {
    connect: (process) => {
      const ask = <T>(asked: Omit<PortCall<ApiAnswer<T>>, 'port'>): Promise<ApiAnswer<T>> => {
        const forbidden = runtime.troubled() && runtime.random.chance(runtime.rates.forbidden);
        const refuse = (): ApiAnswer<T> => {
          runtime.count(`trouble: forbidden: api.${asked.method}`);
          return refused('Forbidden');
        };
        const act = forbidden ? refuse : asked.act;
        return call(runtime, process, {
          told: (answer) => (answer.ok ? 'ok' : answer.problem.why),
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
              answer.ok ? `${answer.value.items.length} as of ${answer.value.resourceVersion}` : answer.problem.why,
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
            act: (): ApiAnswer<JsonObject> => server.get(name),
            signal,
          }),
        updateStatus: (sent, signal) =>
          ask({
            method: 'updateStatus',
            about: describe(sent),
            act: () => write(sent, 'status', process),
            signal,
          }),
        updateApproval: (sent, signal) =>
          ask({
            method: 'updateApproval',
            about: describe(sent),
            act: () => write(sent, 'approval', process),
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
            told: (answer) => (answer.ok ? (answer.value ? 'yes' : 'no') : answer.problem.why),
            signal,
          }),
        createEvent: (event, signal) =>
          ask<JsonObject>({
            method: 'createEvent',
            about: String(event['reason']),
            act: () => server.createEvent(event),
            signal,
          }),
      };
    },
    create: server.create,
    change: server.change,
    delete: server.delete,
    find: server.find,
    objects: server.objects,
    history: server.history,
    approvedEver: (uid) => approved.has(uid),
  };
}

/** `csr-3 with Failed`: what a write would make of it. */
function describe(object: JsonObject): string {
  const { metadata, status } = object as Stored;
  const what = status['certificate'] === undefined ? types(object).at(-1) : 'a certificate';
  return `${metadata.name} with ${String(what)} on ${metadata.resourceVersion}`;
}
