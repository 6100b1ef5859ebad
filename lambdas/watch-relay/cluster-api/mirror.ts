/** A copy in memory of the objects that a reflector delivers, reduced to what the relay needs of each. */
import type { ApiRefusal, JsonObject } from '../../../core/ports/kubernetes-api.ts';
import type { ReflectorHandlers } from '../cluster/reflector.ts';
import type { Clock } from '../runtime/clock.ts';

/** Bookmarks arrive about every minute. A copy of which nothing was heard for longer may lack changes of this time. */
export const staleMilliseconds = 300_000;

export interface MirrorOptions<T> {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Undefined: an object without a name, which the API server does not have. */
  readonly keyOf: (object: JsonObject) => string | undefined;
  readonly decode: (object: JsonObject) => T;
  /** Called for each object that is new, changed (with both) or gone. */
  readonly changed?: (before: T | undefined, after: T | undefined) => void;
  /** Called for an object that is gone since the first list, with its value. */
  readonly gone?: (value: T) => void;
}

export type MirrorHandlers = Required<
  Pick<ReflectorHandlers, 'seen' | 'deleted' | 'synced' | 'listing' | 'heard' | 'listRefused'>
>;

export interface Mirror<T> {
  readonly handlers: MirrorHandlers;
  /** A list is complete, and the API server was heard within `staleMilliseconds`. */
  isCurrent(): boolean;
  /** A list is complete. */
  isSynced(): boolean;
  values(): Iterable<T>;
  size(): number;
  /** Since the API server was last heard; 0 before. */
  ageSeconds(): number;
}

/** `optional`: a resource that the API server need not serve. It then has no objects. */
export function createMirror<T>(
  { clock, keyOf, decode, changed, gone }: MirrorOptions<T>,
  { optional = false } = {},
): Mirror<T> {
  const entries = new Map<string, { readonly value: T; generation: number }>();
  let generation = 0;
  let synced = false;
  let heardAt: number | undefined;

  function put(object: JsonObject): void {
    const key = keyOf(object);
    if (key === undefined) return;
    const value = decode(object);
    const before = entries.get(key)?.value;
    entries.set(key, { value, generation });
    changed?.(before, value);
  }

  function drop(key: string): void {
    const entry = entries.get(key);
    if (entry === undefined) return;
    entries.delete(key);
    changed?.(entry.value, undefined);
    gone?.(entry.value);
  }

  function finishList(): void {
    for (const [key, entry] of entries) if (entry.generation !== generation) drop(key);
    synced = true;
  }

  function heard(): void {
    heardAt = clock.monotonic();
  }

  const age = (): number => (heardAt === undefined ? 0 : clock.monotonic() - heardAt);
  return {
    handlers: {
      listing: () => void (generation += 1),
      heard,
      seen: put,
      deleted(object) {
        const key = keyOf(object);
        if (key !== undefined) drop(key);
      },
      synced: finishList,
      listRefused(why: ApiRefusal) {
        if (!optional || why !== 'NotFound') return;
        heard();
        finishList();
      },
    },
    isCurrent: () => synced && age() <= staleMilliseconds,
    isSynced: () => synced,
    *values() {
      for (const { value } of entries.values()) yield value;
    },
    size: () => entries.size,
    ageSeconds: () => age() / 1_000,
  };
}
