/** Any object of a cluster by its path, for operators' commands; the relay has no use and no rights for this. */
import type { ApiAnswer, JsonObject } from '../../core/ports/kubernetes-api.ts';
import { interpret } from './answer.ts';
import { connectTransport } from './api.ts';
import type { KubernetesLogin } from './api.ts';
import type { HttpCall } from './transport.ts';

export interface ObjectApi {
  get(path: string, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Every object under a path, over all pages. `query` narrows: labelSelector, fieldSelector. */
  list(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<ApiAnswer<readonly JsonObject[]>>;
  create(path: string, object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** Only if the object still has the resourceVersion it carries. */
  replace(path: string, object: JsonObject, signal: AbortSignal): Promise<ApiAnswer<JsonObject>>;
  /** With `uid` and `resourceVersion` only the object that was looked at, as it was then. */
  remove(
    path: string,
    only: { readonly uid?: string; readonly resourceVersion?: string },
    signal: AbortSignal,
  ): Promise<ApiAnswer<JsonObject>>;
  readonly server: string;
  /** Names in the kubeconfig; empty where it has none. */
  readonly context: string;
  readonly user: string;
  close(): void;
}

const fieldManager = 'countersign';
const maxPageBytes = 32 * 1_048_576;

/** Throws at once if the login cannot be read. */
export function connectObjects(login: KubernetesLogin): ObjectApi {
  const { transport, server, context, user } = connectTransport(login);
  const ask = async (call: HttpCall) => interpret(await transport.call(call));
  return {
    server,
    context,
    user,
    close: () => transport.close(),
    get: (path, signal) => ask({ method: 'GET', path, signal }),
    create: (path, body, signal) => ask({ method: 'POST', path, query: { fieldManager }, body, signal }),
    replace: (path, body, signal) => ask({ method: 'PUT', path, query: { fieldManager }, body, signal }),
    remove(path, preconditions, signal) {
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
      return ask({ method: 'DELETE', path, body, signal });
    },
    async list(path, given, signal) {
      const items: JsonObject[] = [];
      let token = '';
      do {
        const query = { ...given, limit: '250', ...(token === '' ? {} : { continue: token }) };
        const page = await ask({ method: 'GET', path, query, signal, maxBytes: maxPageBytes });
        if (!page.ok) return page;
        const { items: more, metadata } = page.value;
        if (!Array.isArray(more)) throw new Error('a list without items');
        items.push(...(more as JsonObject[]));
        const next = (metadata as { readonly continue?: unknown } | undefined)?.continue;
        token = typeof next === 'string' ? next : '';
      } while (token !== '');
      return { ok: true, value: items };
    },
  };
}
