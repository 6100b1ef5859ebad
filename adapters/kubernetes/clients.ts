/** The Kubernetes library's typed clients, for operators' commands. The relay does not use them. */
import {
  ApisApi,
  AppsV1Api,
  AuthenticationV1Api,
  AuthorizationV1Api,
  CertificatesV1Api,
  CoreV1Api,
  createConfiguration,
  CustomObjectsApi,
  RbacAuthorizationV1Api,
  ResponseContext,
  ServerConfiguration,
  wrapHttpLibrary,
} from '@kubernetes/client-node';
import type { Configuration, RequestContext } from '@kubernetes/client-node';
import { interpret } from './answer.ts';
import { connectTransport } from './login.ts';
import type { KubernetesLogin } from './login.ts';
import { ApiRefused } from './refused.ts';
import type { HttpCall, KubernetesTransport } from './transport.ts';

/**
 * A call rejects with ApiRefused for a definite "no" of the API server, with ThrottledError when it is busy, and with
 * another error when it did not answer.
 */
export interface ClusterClients {
  readonly apis: ApisApi;
  readonly apps: AppsV1Api;
  readonly authentication: AuthenticationV1Api;
  readonly authorization: AuthorizationV1Api;
  readonly certificates: CertificatesV1Api;
  readonly core: CoreV1Api;
  readonly custom: CustomObjectsApi;
  readonly rbac: RbacAuthorizationV1Api;
}

export interface ClusterConnection extends ClusterClients {
  readonly server: string;
  /** Names in the kubeconfig; empty if it has no such name. */
  readonly context: string;
  readonly user: string;
  /** GET of plain text, such as the log of a pod. Undefined if it is longer than an answer may be. */
  text(path: string, query: Readonly<Record<string, string>>): Promise<string | undefined>;
  close(): void;
}

const maxAnswerBytes = 32 * 1_048_576;

/** `signal` ends every call. Throws at once if the login cannot be read. */
export function connectClients(login: KubernetesLogin, signal: AbortSignal): ClusterConnection {
  const { transport, server, context, user } = connectTransport(login);
  const call = (request: HttpCall) => transport.call(request);
  return {
    ...clientsOver(call, signal),
    server,
    context,
    user,
    async text(path, query) {
      const result = await call({ method: 'GET', path, query, signal, maxBytes: maxAnswerBytes });
      if (result.status === 200) return result.text;
      const answer = interpret(result);
      if (!answer.ok) throw new ApiRefused(answer.problem);
      throw new Error(`HTTP ${result.status} instead of a text`);
    },
    close: () => transport.close(),
  };
}

/**
 * The library's own HTTP does not bound the size of an answer or the time of a login, and wraps each refusal in its own
 * text. So its clients call through the project's transport.
 */
export function clientsOver(call: KubernetesTransport['call'], signal: AbortSignal): ClusterClients {
  const httpApi = wrapHttpLibrary({
    async send(request) {
      const answer = interpret(await call(httpCall(request, signal)));
      if (!answer.ok) throw new ApiRefused(answer.problem);
      const text = JSON.stringify(answer.value);
      const body = { text: () => Promise.resolve(text), binary: () => Promise.resolve(Buffer.from(text)) };
      return new ResponseContext(200, { 'content-type': 'application/json' }, { ...body, stream: () => null });
    },
  });
  // The transport knows the server's address.
  const baseServer = new ServerConfiguration('http://api-server', {});
  const configuration = createConfiguration({ baseServer, httpApi });
  const client = <T>(kind: new (configuration: Configuration) => T): T => new kind(configuration);
  return {
    apis: client(ApisApi),
    apps: client(AppsV1Api),
    authentication: client(AuthenticationV1Api),
    authorization: client(AuthorizationV1Api),
    certificates: client(CertificatesV1Api),
    core: client(CoreV1Api),
    custom: client(CustomObjectsApi),
    rbac: client(RbacAuthorizationV1Api),
  };
}

function httpCall(request: RequestContext, signal: AbortSignal): HttpCall {
  const { pathname, searchParams } = new URL(request.getUrl());
  const body = request.getBody();
  const method = request.getHttpMethod() as HttpCall['method'];
  if (method === 'POST' || method === 'PUT') searchParams.set('fieldManager', 'countersign');
  return {
    method,
    path: pathname,
    query: Object.fromEntries(searchParams),
    ...(typeof body === 'string' ? { body: JSON.parse(body) as unknown } : {}),
    signal,
    maxBytes: maxAnswerBytes,
  };
}
