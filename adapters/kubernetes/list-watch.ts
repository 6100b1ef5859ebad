/** List and watch of one resource of an API server. */
import { isObject, objectOf } from '../../core/encoding/json-object.ts';
import { success } from '../../core/outcome/result.ts';
import type { JsonObject, ListWatch, ObjectPage, WatchEvent } from '../../core/ports/kubernetes-api.ts';
import { interpret, refusalOf } from './answer.ts';
import type { KubernetesTransport } from './transport.ts';
import { decodeWatch } from './watch.ts';

/**
 * Parsing a page takes about nine times its size in memory. 100 ordinary requests are 400 KiB; the relay asks for larger pages
 * again with fewer objects. One object is 1.5 MiB in etcd, and six times as much if it consists of control characters.
 */
const maxPageBytes = 4 * 1_048_576;
const maxObjectBytes = 12 * 1_048_576;
const listMilliseconds = 60_000;
/** The API server ends a watch after timeoutSeconds; if it does not, the relay ends it this much later. */
const watchSlackMilliseconds = 60_000;

export interface ListedResource {
  /** `/apis/<group>/<version>/…/<resource>`. */
  readonly path: string;
  /** Selectors. */
  readonly query?: Readonly<Record<string, string>>;
  /** apiVersion and kind, added to the items of a list, from which the API server leaves them out. */
  readonly itemType?: JsonObject;
  /** Only the metadata of each object is sent: PartialObjectMetadata of meta.k8s.io/v1. */
  readonly metadataOnly?: true;
}

export function listWatch(transport: KubernetesTransport, resource: ListedResource): ListWatch {
  const { path, query: selectors = {}, itemType = {}, metadataOnly } = resource;
  const accept = (kind: string) =>
    metadataOnly === undefined ? {} : { accept: `application/json;as=${kind};g=meta.k8s.io;v=v1` };
  return {
    async list({ limit, continue: token }, signal) {
      const query = { ...selectors, limit: String(limit), ...(token === undefined ? {} : { continue: token }) };
      const bounds = { maxBytes: limit === 1 ? maxObjectBytes : maxPageBytes, timeoutMilliseconds: listMilliseconds };
      const call = { method: 'GET', path, query, signal, ...bounds, ...accept('PartialObjectMetadataList') } as const;
      const answer = interpret(await transport.call(call));
      return answer.ok ? success(pageOf(answer.value, itemType)) : answer;
    },

    async watch({ resourceVersion, timeoutSeconds }, signal) {
      const query = {
        ...selectors,
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion,
        timeoutSeconds: String(timeoutSeconds),
      };
      const lifetime = timeoutSeconds * 1_000 + watchSlackMilliseconds;
      const call = { method: 'GET', path, query, signal, ...accept('PartialObjectMetadata') } as const;
      const answer = await transport.stream(call, lifetime);
      if (!('body' in answer)) {
        const refused = interpret(answer);
        if (refused.ok) throw new Error('the API server answered a watch without a stream');
        return refused;
      }
      const events: AsyncIterable<WatchEvent> = decodeWatch(answer.body, (status) => {
        const { why, message } = refusalOf(codeOf(status), status);
        return { why: why === 'Throttled' ? 'Unavailable' : why, message };
      });
      return success(events);
    },
  };
}

function codeOf(status: JsonObject): number {
  return typeof status['code'] === 'number' ? status['code'] : 500;
}

function pageOf(list: JsonObject, itemType: JsonObject): ObjectPage {
  const { resourceVersion, continue: token } = objectOf(list['metadata']);
  const items = list['items'] ?? [];
  if (typeof resourceVersion !== 'string' || resourceVersion === '' || !Array.isArray(items) || !items.every(isObject))
    throw new Error('a list without items or resourceVersion');
  return {
    items: items.map((item) => ({ ...itemType, ...item })),
    resourceVersion,
    ...(typeof token === 'string' && token !== '' ? { continue: token } : {}),
  };
}
