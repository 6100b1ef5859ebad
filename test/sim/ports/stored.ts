/** An object of the simulated API server, and one of its states. */
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';

export type Stored = JsonObject & {
  readonly metadata: JsonObject & { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly spec: JsonObject;
  readonly status: JsonObject;
};

export interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: Stored;
}

export function types(object: JsonObject): readonly unknown[] {
  return conditionsOf(object).map((condition) => condition['type']);
}

export function conditionsOf(object: JsonObject): readonly JsonObject[] {
  const status = object['status'] as JsonObject | undefined;
  return (status?.['conditions'] ?? []) as readonly JsonObject[];
}

/** As padding in labels makes it. The simulated etcd takes less than a real one, since all of this is written often. */
export const etcdBytes = 260_000;

export function bytesOf(object: JsonObject): number {
  return JSON.stringify(object).length;
}

/** Of a signer's name, what tells it from others. */
export function short(signerName: string): string {
  return signerName.slice(signerName.indexOf('/') + 1);
}
