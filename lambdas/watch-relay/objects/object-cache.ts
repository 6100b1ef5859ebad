import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';

/**
 * Objects that just came by, for the worker that takes their key next: it saves the GET in the common case and is
 * never needed. Bounded by the bytes of their JSON. When full it takes in nothing new rather than throw out the old:
 * the old ones are the next in line.
 */
export interface ObjectCache {
  put(uid: string, object: JsonObject, bytes: number): void;
  /** Gives it away. */
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
      drop(uid); // an older state must not stay, whether the new one fits or not
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
