/**
 * The node's calls to the API server: create a request, get it, wait for it to change. The ClusterRole
 * `system:node-bootstrapper` permits these and no others.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { interpret } from '../../adapters/kubernetes/answer.ts';
import { createTransport } from '../../adapters/kubernetes/transport.ts';
import { decodeWatch } from '../../adapters/kubernetes/watch.ts';
import type { ApiAnswer, JsonObject } from '../../core/ports/kubernetes-api.ts';
import { version } from '../../core/version.ts';
import { whyUnread } from '../files/cache.ts';
import { LoginError } from './login.ts';
import type { Login } from './login.ts';
import { readOwnFile } from '../files/own-files.ts';

/** `create` and `get` end after ten seconds, or at `until` if that is earlier. They throw if the effect of the call is unknown. */
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
/** The API server ends the watch after this time. */
const watchSeconds = 60;

export function connectCluster(place: ClusterPlace, login: Login, now: () => number): ClusterApi {
  const { certificatePem: cert, keyPem: key, headers } = login;
  const ca = readAuthority(place.certificateAuthorityFile);
  const transport = createTransport(new URL(place.server), () =>
    Promise.resolve({ ca, cert, key, headers: { ...headers, 'user-agent': `kubelet-authenticator/${version}` } }),
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
        if ('body' in stream) {
          const refusal = () => ({ why: 'Unavailable' as const, message: 'the watch ended' });
          for await (const { type } of decodeWatch(stream.body, refusal)) if (type !== 'BOOKMARK') break;
          stream.body.destroy();
          return;
        }
      } catch {
        // The next get reports it.
      }
      // The caller gets the object again after this pause. If an error such as 410 or 403 persists, the get reports it.
      await sleep(Math.max(0, Math.min(1_000, until - now())));
    },

    close: () => transport.close(),
  };
}

function readAuthority(file: string): string {
  try {
    return readOwnFile(file);
  } catch (error) {
    throw new LoginError(`the API server's CA: ${whyUnread(file, error)}`);
  }
}
