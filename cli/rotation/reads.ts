/** Reads of objects for which a login may lack the right. */
import type { ClusterConnection } from '../../adapters/kubernetes/clients.ts';
import { ApiRefused } from '../../adapters/kubernetes/refused.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import type { JsonObject } from '../../core/encoding/json-object.ts';
import type { Consumer } from '../../core/rotation/consumers.ts';

export type Cluster = Pick<ClusterConnection, 'apps' | 'core' | 'custom'>;

type Read<T> = { readonly ok: true; readonly value: T | undefined } | { readonly ok: false; readonly why: string };

/** Undefined: it does not exist. A login without the right to read one object still shows the others. */
export async function readOr<T>(answer: Promise<T>): Promise<Read<T>> {
  try {
    return { ok: true, value: await answer };
  } catch (error) {
    if (!(error instanceof ApiRefused)) throw error;
    return error.why === 'NotFound' ? { ok: true, value: undefined } : { ok: false, why: error.message };
  }
}

interface ReadConfigMap {
  /** Undefined if it does not exist. */
  readonly data?: Readonly<Record<string, string>>;
  readonly unread?: string;
}

export async function readConfigMap({ core }: Cluster, namespace: string, name: string): Promise<ReadConfigMap> {
  const read = await readOr(core.readNamespacedConfigMap({ namespace, name }));
  return read.ok ? { data: read.value?.data ?? {} } : { unread: read.why };
}

/** Of a ConfigMap that does not exist nothing is trusted. */
export function bundleOf({ data, unread }: ReadConfigMap, key: string): Pick<Consumer, 'bundle' | 'unread'> {
  return unread === undefined ? { bundle: data?.[key] ?? '' } : { unread };
}

/** CustomResourceDefinitions may have a megabyte each. */
const pageSize = 25;

export async function listAll(
  { custom }: Cluster,
  group: string,
  version: string,
  plural: string,
): Promise<readonly JsonObject[]> {
  const items: JsonObject[] = [];
  let from = '';
  do {
    const page = objectOf(
      await custom.listClusterCustomObject({
        group,
        version,
        plural,
        limit: pageSize,
        ...(from === '' ? {} : { _continue: from }),
      }),
    );
    if (Array.isArray(page['items'])) items.push(...(page['items'] as readonly unknown[]).map(objectOf));
    from = text(objectOf(page['metadata'])['continue']);
  } while (from !== '');
  return items;
}

export function nameOf(item: JsonObject): string {
  return text(objectOf(item['metadata'])['name']);
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
