/** What actors and oracles read of an object of the simulated API server. */
import type { JsonObject } from '../../../core/ports/kubernetes-api.ts';

export function types(object: JsonObject): readonly unknown[] {
  return conditionsOf(object).map((condition) => condition['type']);
}

function conditionsOf(object: JsonObject): readonly JsonObject[] {
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
