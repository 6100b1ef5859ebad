import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';

/**
 * Objects from the watch or list, so that the worker usually needs no GET. Bounded by the bytes of their JSON. A full cache
 * keeps the old objects and takes no new ones, since the old ones are needed first.
 */
export interface ObjectCache {
  put(uid: string, object: JsonObject, bytes: number): void;
  /** Removes the object and returns it. */
  take(uid: string): JsonObject | undefined;
  drop(uid: string): void;
  bytes(): number;
}

export function createObjectCache(capacityBytes: number): ObjectCache {
  const held = new Map<string, { readonly object: JsonObject; readonly bytes: number }>();
  let total = 0;

  function drop(uid: string): void {
    total -= held.get(uid)?.bytes ?? 0;
    held.delete(uid);
  }

  return {
    put(uid, object, bytes) {
      drop(uid); // an older state must not stay, even if the new one does not fit
      if (total + bytes > capacityBytes) return;
      held.set(uid, { object, bytes });
      total += bytes;
    },
    take(uid) {
      const object = held.get(uid)?.object;
      drop(uid);
      return object;
    },
    drop,
    bytes: () => total,
  };
}
