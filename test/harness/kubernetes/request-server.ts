/**
 * The CertificateSigningRequests of an API server in memory, without a network: the rules and the history of the
 * stand-in (dev/csr-api), lists at a version, and objects that a test writes as it likes. test/contract/request-api.ts
 * holds it, and the real kube-apiserver, to the port.
 */
import { failure } from '../../../core/outcome/result.ts';
import { written } from '../../../dev/csr-api/csr-rules.ts';
import {
  createObjectHistory,
  type Change as ObjectChange,
  type ObjectHistory,
} from '../../../dev/csr-api/object-history.ts';
import type {
  ApiAnswer,
  ApiProblem,
  ApiRefusal,
  JsonObject,
  RequestApi,
  ObjectPage,
} from '../../../core/ports/kubernetes-api.ts';

export type Stored = JsonObject & {
  readonly metadata: JsonObject & { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly spec: JsonObject;
  readonly status: JsonObject;
};
export type Change = ObjectChange & { readonly object: Stored };

export interface RequestServer {
  readonly version: () => number;
  /** Every state that any object ever had. */
  readonly history: readonly Change[];
  readonly find: (name: string) => Stored | undefined;
  readonly names: () => readonly string[];
  readonly objects: () => readonly Stored[];
  /** Stores the object as it is. */
  readonly create: (object: JsonObject) => void;
  /** Replaces the object of this name, if there is one; no rule is checked. */
  readonly change: (name: string, change: (object: Stored) => JsonObject) => void;
  readonly delete: (name: string) => void;
  /** A change to an object of another kind. */
  readonly pass: () => void;
  /** From now on no watch and no list goes on from before this version. */
  readonly compact: (version: number) => void;
  readonly compacted: () => number;

  get(name: string): ApiAnswer<Stored>;
  /** `asOf`: the version that a new list shows, the newest unless given. */
  list(query: Parameters<RequestApi['list']>[0], asOf?: number): ApiAnswer<ObjectPage>;
  /** Calls `each` with the changes of every signer. */
  watch(resourceVersion: string, each: (change: Change) => void): ApiAnswer<() => void>;
  write(sent: JsonObject, subresource: 'status' | 'approval'): ApiAnswer<Stored>;
  createEvent(event: JsonObject): ApiAnswer<JsonObject>;
}

/** @param maxBytes of JSON: what etcd takes */
export function createRequestServer(
  now: () => number,
  maxBytes = Infinity,
  history: ObjectHistory = createObjectHistory(),
): RequestServer {
  const lists = new Map<string, { readonly version: number; readonly rest: readonly Stored[] }>();
  const events = new Set<string>();
  const find = (name: string) => history.get(name) as Stored | undefined;

  /** All of one signer as they were at that version. */
  function stateAt(signerName: string, at: number): Stored[] {
    const then = new Map<string, Stored>();
    for (const { version, type, object } of history.changes as readonly Change[]) {
      if (version > at) break;
      if (type === 'DELETED') then.delete(object.metadata.name);
      else then.set(object.metadata.name, object);
    }
    return [...then.values()].filter(({ spec }) => spec['signerName'] === signerName);
  }

  return {
    version: history.version,
    history: history.changes as readonly Change[],
    find,
    names: history.names,
    objects: () => history.names().map((name) => find(name) as Stored),
    create: (object) => void history.put(object),
    change(name, change) {
      const found = find(name);
      if (found !== undefined) history.put(change(found));
    },
    delete: history.delete,
    pass: history.pass,
    compact: history.compact,
    compacted: history.compacted,

    get(name) {
      const value = find(name);
      return value === undefined ? refused('NotFound') : { ok: true, value };
    },
    list({ signerName, limit, continue: token }, asOf = history.version()) {
      const begun = token === undefined ? undefined : lists.get(token);
      if (token !== undefined && (begun === undefined || begun.version < history.compacted()))
        return refused('Expired');
      const { version, rest } = begun ?? { version: asOf, rest: stateAt(signerName, asOf) };
      const value = { items: rest.slice(0, limit), resourceVersion: String(version) };
      if (rest.length <= limit) return { ok: true, value };
      const next = `token-${lists.size}`;
      lists.set(next, { version, rest: rest.slice(limit) });
      return { ok: true, value: { ...value, continue: next } };
    },
    watch(resourceVersion, each) {
      const stop = history.watch(Number(resourceVersion), (change) => each(change as Change));
      return stop === undefined ? refused('Expired') : { ok: true, value: stop };
    },
    write(sent, subresource) {
      const { name } = (sent as Stored).metadata;
      const old = find(name);
      if (old === undefined) return refused('NotFound');
      const updated = written(old, subresource, sent, now());
      if (!updated.ok) return refused(updated.problem.code === 409 ? 'Conflict' : 'Invalid', updated.problem.message);
      if (updated.value === old) return { ok: true, value: old };
      if (maxBytes < Infinity && JSON.stringify(updated.value).length > maxBytes) return refused('TooLarge');
      return { ok: true, value: history.put(updated.value) as Stored };
    },
    createEvent(event) {
      const name = String((event['metadata'] as JsonObject)['name']);
      if (events.has(name)) return refused('Conflict');
      events.add(name);
      return { ok: true, value: event };
    },
  };
}

export function refused(why: ApiRefusal, message: string = why): { readonly ok: false; readonly problem: ApiProblem } {
  return failure({ why, message });
}
