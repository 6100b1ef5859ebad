/**
 * The little that a node asks of the API server: create a request, look at it, wait for it to change. What the ClusterRole
 * `system:node-bootstrapper` allows, and no more.
 */
import { createTransport } from '../../adapters/kubernetes/transport.ts';
import type { HttpResult } from '../../adapters/kubernetes/transport.ts';
import { decodeWatch } from '../../adapters/kubernetes/watch.ts';
import type { ApiAnswer, ApiRefusal, JsonObject } from '../../core/ports/kubernetes-api.ts';
import { version } from '../../core/version.ts';
import { whyUnread } from '../files/cache.ts';
import { LoginError } from './login.ts';
import type { Login } from './login.ts';
import { readOwnFile } from '../files/own-files.ts';

/** Every call ends by `until`, or in ten seconds. Throws for whatever leaves open what happened. */
export interface ClusterApi {
  create(object: object, until: number): Promise<ApiAnswer<JsonObject>>;
  get(name: string, until: number): Promise<ApiAnswer<JsonObject>>;
  /** Returns when the object may have changed since `resourceVersion`, or at `until`. */
  change(name: string, resourceVersion: string, until: number): Promise<void>;
  close(): void;
}

export interface ClusterPlace {
  readonly server: string;
  readonly certificateAuthorityFile: string;
}

const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const callMilliseconds = 10_000;
/** The server ends a watch by itself after that. */
const watchSeconds = 60;

export function connectCluster(place: ClusterPlace, login: Login, now: () => number): ClusterApi {
  const { certificatePem: cert, keyPem: key, headers } = login;
  const ca = readAuthority(place.certificateAuthorityFile);
  const transport = createTransport(new URL(place.server), () =>
    Promise.resolve({
      ca,
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      headers: { ...headers, 'user-agent': `kubelet-authenticator/${version}` },
    }),
  );
  const limits = (until: number) => {
    const left = Math.max(1, until - now());
    return { signal: AbortSignal.timeout(left), timeoutMilliseconds: Math.min(left, callMilliseconds) };
  };

  return {
    create: async (object, until) =>
      interpret(await transport.call({ method: 'POST', path, body: object, ...limits(until) })),

    get: async (name, until) =>
      interpret(await transport.call({ method: 'GET', path: `${path}/${encodeURIComponent(name)}`, ...limits(until) })),

    async change(name, resourceVersion, until) {
      const query = {
        fieldSelector: `metadata.name=${name}`,
        watch: 'true',
        resourceVersion,
        timeoutSeconds: String(watchSeconds),
      };
      const lifetime = Math.max(1, Math.min(until - now(), watchSeconds * 1_000));
      try {
        const stream = await transport.stream({ method: 'GET', path, query, ...limits(until) }, lifetime);
        if (!('body' in stream)) {
          interpret(stream); // a 410, a 403 …: looking again tells more
          await pause(Math.min(1_000, until - now()));
          return;
        }
        const refusal = () => ({ why: 'Unavailable' as const, message: 'the watch ended' });
        for await (const { type } of decodeWatch(stream.body, refusal)) {
          if (type === 'BOOKMARK') continue;
          stream.body.destroy();
          return;
        }
      } catch {
        // Whatever cut the watch off, the object is looked at again, and that call says what is wrong.
        await pause(Math.min(1_000, until - now()));
      }
    },

    close: () => transport.close(),
  };
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, milliseconds)));
}

function readAuthority(file: string): string {
  try {
    return readOwnFile(file);
  } catch (error) {
    throw new LoginError(`the API server's CA: ${whyUnread(file, error)}`);
  }
}

const refusals: ReadonlyMap<number, ApiRefusal> = new Map([
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'NotFound'],
  [409, 'Conflict'],
  [410, 'Expired'],
]);

function interpret({ status, text }: HttpResult): ApiAnswer<JsonObject> {
  const body = parse(text);
  if (status >= 200 && status <= 299) {
    if (body === undefined) throw new Error(`the API server answers with status ${status} and no JSON object`);
    return { ok: true, value: body };
  }
  const said = typeof body?.['message'] === 'string' ? `: ${body['message'].slice(0, 500)}` : '';
  const message = `the API server answers with status ${status}${said}`;
  const why = refusals.get(status);
  if (why !== undefined) return { ok: false, why, message };
  // 408 and 429 ask to try again; 3xx comes from something that is not the API server.
  if (status < 400 || status >= 500 || status === 408 || status === 429) throw new Error(message);
  return { ok: false, why: 'Invalid', message };
}

function parse(text: string | undefined): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '');
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
