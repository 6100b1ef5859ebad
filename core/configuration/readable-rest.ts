/**
 * What a file says besides its values of a wrong form, so that one run shows both these and the values that do not fit together.
 * Where a value of a wrong form decides about others, nothing is said about these.
 */
import { isObject } from '../encoding/json-object.ts';
import type { Path } from './fields/place.ts';

export interface Rest {
  /** A copy of the file without the values at the paths, and without clusters that mean nothing without them. */
  readonly value: unknown;
  /** Below these paths a problem may only be the consequence of another one. */
  readonly unsure: readonly Path[];
}

/** `value`: the whole file. `wrong`: the paths of all values of a wrong form. `undefined`: nothing is left. */
export function readableRest(value: unknown, wrong: readonly Path[]): Rest | undefined {
  const file = structuredClone(value);
  if (!isObject(file) || !isObject(file['clusters'])) return undefined;
  const unsure: Path[] = [];
  for (const path of wrong) {
    const [top, cluster, section] = path;
    if (top === 'version' && path.length === 1) {
      (file as Record<string, unknown>)['version'] = 1;
      continue;
    }
    // What is wrong in `defaults` concerns every cluster.
    if (top !== 'clusters' || typeof cluster !== 'string') return undefined;
    const named = section === 'cas' || section === 'profiles';
    // A list is left out as a whole.
    const end = path.findIndex((part) => typeof part === 'number');
    const key = end < 0 ? path : path.slice(0, end);
    // A CA or a signer as a whole, or a key of the cluster: other parts of the cluster refer to it.
    if (key.length < (named ? 5 : 4)) remove(file, ['clusters', cluster]);
    else {
      remove(file, key);
      unsure.push(key.slice(0, -1));
    }
  }
  return Object.keys(file['clusters']).length === 0 ? undefined : { value: file, unsure };
}

function remove(from: unknown, path: Path): void {
  const [key, ...more] = path;
  if (!isObject(from) || key === undefined) return;
  if (more.length > 0) remove(from[key], more);
  else delete (from as Record<string, unknown>)[key];
}
