/**
 * A small stand-in for the part of a Kubernetes API server that the relay uses: list, watch, approval and status of
 * CertificateSigningRequests, and SubjectAccessReviews, on loopback, in memory. Not an emulator: no RBAC, Events, Leases
 * or discovery (404). The caller is the impersonated user (Impersonate-User and -Group), otherwise an administrator.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../core/ports/kubernetes-api.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { success } from '../../core/outcome/result.ts';
import { problem } from './csr-rules.ts';
import type { ApiProblem, Stored } from './csr-rules.ts';
import { createCsrStore } from './csr-store.ts';
import type { CsrStore } from './csr-store.ts';
import { isLoopbackName } from './node-http.ts';
import { allowedByKubeadm, requesterOf, reviewed } from './requesters.ts';
import type { Review } from './requesters.ts';

export interface CsrApi {
  readonly url: string;
  /** A kubeconfig for this server, in JSON; without `user`, the administrator's. */
  readonly kubeconfig: (user?: string) => string;
  readonly close: () => Promise<void>;
}

const collection = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const maxBodyBytes = 3 * 1024 * 1024;
const bookmarkMilliseconds = 5_000;

export async function startCsrApi(
  options: {
    readonly port?: number;
    /** Answers SubjectAccessReviews; system:masters is always allowed. */
    readonly allows?: (review: Review) => boolean;
  } = {},
): Promise<CsrApi> {
  const allows = options.allows ?? allowedByKubeadm;
  const store = createCsrStore(Date.now);
  const server = createServer({ keepAliveTimeout: 30_000 }, (request, response) => {
    answer(store, allows, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: options.port ?? 0, host: '127.0.0.1' }, resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    kubeconfig: (user) =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'stand-in', cluster: { server: url } }],
        users: [{ name: user ?? 'kubernetes-admin', user: user === undefined ? {} : { as: user } }],
        contexts: [{ name: 'stand-in', context: { cluster: 'stand-in', user: user ?? 'kubernetes-admin' } }],
        'current-context': 'stand-in',
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  store: CsrStore,
  allows: (review: Review) => boolean,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // A web page may neither read under a host name of its own, nor write without a CORS preflight, which is not answered.
  if (
    !isLoopbackName(request.headers.host) ||
    /^(text|multipart)\/|urlencoded/i.test(request.headers['content-type'] ?? '')
  )
    return send(response, problem(400, 'BadRequest', 'send application/json to 127.0.0.1 or localhost'));
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
  if (pathname === reviews && request.method === 'POST') {
    const body = await readObject(request, 'authorization.k8s.io/v1', 'SubjectAccessReview');
    return send(response, body.ok ? reviewed(body.value, allows) : body, 201);
  }
  const rest = pathname.startsWith(collection) ? pathname.slice(collection.length).split('/').slice(1) : undefined;
  const [name, subresource, ...more] = rest ?? [];
  if (rest === undefined || more.length > 0)
    return send(response, problem(404, 'NotFound', 'the server could not find the requested resource'));

  if (name === undefined && request.method === 'GET') {
    if (searchParams.get('watch') === 'true' || searchParams.get('watch') === '1')
      return watch(store, searchParams, response);
    return send(response, list(store, searchParams));
  }
  if (name === undefined && request.method === 'POST') {
    const body = await readObject(request, 'certificates.k8s.io/v1', 'CertificateSigningRequest');
    return send(response, body.ok ? store.create(body.value, requesterOf(request)) : body, 201);
  }
  if (name !== undefined && subresource === undefined && request.method === 'GET')
    return send(response, store.get(name));
  if (name !== undefined && (subresource === 'approval' || subresource === 'status') && request.method === 'PUT') {
    const body = await readObject(request, 'certificates.k8s.io/v1', 'CertificateSigningRequest');
    return send(response, body.ok ? store.update(name, subresource, body.value) : body);
  }
  return send(
    response,
    problem(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource'),
  );
}

/** Sorted by name. The continue token holds the last name of the page and the resourceVersion of the first page. */
function list(store: CsrStore, query: URLSearchParams): Stored {
  const { after, version } = decodeContinue(query.get('continue')) ?? { after: '', version: String(store.version()) };
  const limit = Number(query.get('limit') ?? 0) || Number.POSITIVE_INFINITY;
  const matching = store.list(after).filter(selectorOf(query));
  const items = matching.slice(0, limit);
  const last = objectOf(items.at(-1)?.['metadata'])['name'];
  const token = Buffer.from(JSON.stringify({ after: last, version })).toString('base64url');
  return success({
    kind: 'CertificateSigningRequestList',
    apiVersion: 'certificates.k8s.io/v1',
    metadata: { resourceVersion: version, ...(matching.length > items.length ? { continue: token } : {}) },
    // The real server leaves kind and apiVersion out of list items.
    items: items.map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item),
  });
}

function decodeContinue(token: string | null): { after: string; version: string } | undefined {
  return token === null || token === ''
    ? undefined
    : (JSON.parse(Buffer.from(token, 'base64url').toString()) as { after: string; version: string });
}

/** `spec.signerName=…` and `metadata.name=…`, the field selectors that the real server supports. */
function selectorOf(query: URLSearchParams): (object: JsonObject) => boolean {
  const wanted = (query.get('fieldSelector') ?? '').split(',').map((part) => part.split('='));
  const value = (key: string): string | undefined => wanted.find(([name]) => name === key)?.at(-1);
  const [signerName, name] = [value('spec.signerName'), value('metadata.name')];
  return (object) =>
    (signerName === undefined || objectOf(object['spec'])['signerName'] === signerName) &&
    (name === undefined || objectOf(object['metadata'])['name'] === name);
}

/** Writes one JSON event per line until the client disconnects or `timeoutSeconds` are over, with bookmarks if requested. */
function watch(store: CsrStore, query: URLSearchParams, response: ServerResponse): void {
  const selected = selectorOf(query);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  const write = (type: string, object: object): void => void response.write(`${JSON.stringify({ type, object })}\n`);

  const since = query.get('resourceVersion') ?? '';
  // Without a version, or with 0, a watch begins with all existing objects.
  if (since === '' || since === '0') for (const object of store.list('').filter(selected)) write('ADDED', object);
  const from = since === '' || since === '0' ? store.version() : Number(since);
  const stop = store.watch(from, ({ type, object }) => {
    if (selected(object)) write(type, object);
  });
  if (stop === undefined) {
    write(
      'ERROR',
      statusOf({ code: 410, reason: 'Expired', message: `too old resource version: ${since} (${store.version()})` }),
    );
    response.end();
    return;
  }
  const bookmark = (): void => {
    if (query.get('allowWatchBookmarks') === 'true')
      write('BOOKMARK', {
        kind: 'CertificateSigningRequest',
        apiVersion: 'certificates.k8s.io/v1',
        metadata: { resourceVersion: String(store.version()), creationTimestamp: null },
      });
  };
  const every = setInterval(bookmark, bookmarkMilliseconds);
  const seconds = Number(query.get('timeoutSeconds') ?? 0) || 1_800;
  // A slow client keeps the response open after its end, so all writers must stop.
  const stopWriting = (): void => {
    stop();
    clearInterval(every);
    clearTimeout(end);
  };
  const end = setTimeout(() => {
    bookmark();
    stopWriting();
    response.end();
  }, seconds * 1_000);
  response.on('close', stopWriting);
}

async function readObject(request: IncomingMessage, apiVersion: string, kind: string): Promise<Stored> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) return problem(413, 'RequestEntityTooLarge', 'limit is 3145728');
    chunks.push(chunk);
  }
  try {
    const object = objectOf(JSON.parse(Buffer.concat(chunks).toString('utf8')));
    if (object['kind'] !== kind || object['apiVersion'] !== apiVersion)
      return problem(400, 'BadRequest', `the object is not a ${apiVersion} ${kind}`);
    return success(object);
  } catch {
    return problem(400, 'BadRequest', 'the body is not JSON');
  }
}

function send(response: ServerResponse, stored: Stored, okCode = 200): void {
  const [code, body] = stored.ok ? [okCode, stored.value] : [stored.problem.code, statusOf(stored.problem)];
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function statusOf({ code, reason, message }: ApiProblem): object {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
}
