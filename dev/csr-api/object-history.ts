/** Named objects in memory, with a resourceVersion for each change and watches on the changes, like etcd. */
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: JsonObject;
  readonly version: number;
}

export interface ObjectHistory {
  /** The newest resourceVersion. */
  readonly version: () => number;
  readonly get: (name: string) => JsonObject | undefined;
  /** In the order of creation. */
  readonly names: () => readonly string[];
  /** The changes that are still known, in order. */
  readonly changes: readonly Change[];
  /** Adds or replaces the object of this name. Returns it with its resourceVersion. */
  readonly put: (object: JsonObject) => JsonObject;
  readonly delete: (name: string) => void;
  /** Every change after this version, now and later. `undefined` if some of them are no longer known, or if the version does not exist yet. */
  readonly watch: (version: number, each: (change: Change) => void) => (() => void) | undefined;
  /** Raises the version, as a change to an object of another kind does. */
  readonly pass: () => void;
  /** From now on no watch starts before this version. */
  readonly compact: (version: number) => void;
  /** The version before which no watch starts. */
  readonly compacted: () => number;
}

/** @param kept how many changes are known at most; older ones are compacted */
export function createObjectHistory(kept = Infinity): ObjectHistory {
  const objects = new Map<string, JsonObject>();
  const changes: Change[] = [];
  const watchers = new Set<(change: Change) => void>();
  let version = 1;
  let compacted = 0;

  function record(type: Change['type'], object: JsonObject): JsonObject {
    version += 1;
    const stored = { ...object, metadata: { ...objectOf(object['metadata']), resourceVersion: String(version) } };
    const change: Change = { type, object: stored, version };
    changes.push(change);
    if (changes.length > kept) compacted = changes.shift()?.version ?? compacted;
    for (const each of watchers) each(change);
    return stored;
  }

  return {
    version: () => version,
    get: (name) => objects.get(name),
    names: () => [...objects.keys()],
    changes,
    put(object) {
      const name = String(objectOf(object['metadata'])['name']);
      const stored = record(objects.has(name) ? 'MODIFIED' : 'ADDED', object);
      objects.set(name, stored);
      return stored;
    },
    delete(name) {
      const found = objects.get(name);
      objects.delete(name);
      if (found !== undefined) record('DELETED', found);
    },
    watch(from, each) {
      if (from > version || from < compacted) return undefined;
      for (const change of changes) if (change.version > from) each(change);
      watchers.add(each);
      return () => watchers.delete(each);
    },
    pass: () => void (version += 1),
    compact: (to) => void (compacted = Math.max(compacted, to)),
    compacted: () => compacted,
  };
}
