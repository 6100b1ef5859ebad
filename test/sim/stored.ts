/** An object of the simulated API server, and one of its states. */
import type { JsonObject } from '../../core/ports.ts';

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

/** Of a signer's name, what tells it from others. */
export function short(signerName: string): string {
  return signerName.slice(signerName.indexOf('/') + 1);
}
