import { Agent, request as httpsRequest } from 'node:https';
import type { IncomingHttpHeaders } from 'node:http';

/*
 * Plain HTTP to an API server, so that a test sees exactly what went over the wire. Global fetch cannot present a
 * client certificate, and a Kubernetes client library would hide statuses and retries.
 */
export interface ApiResponse {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  json: () => unknown;
}

export interface ApiClient {
  /** Any status is an answer; only a broken connection rejects. A body that is not a string is sent as JSON. */
  request(
    path: string,
    init?: { method?: string; headers?: Record<string, string>; body?: unknown },
  ): Promise<ApiResponse>;
  /** The same where only success makes sense: any status but 2xx is an error that shows the answer. */
  expectOk<T>(path: string, init?: { method?: string; headers?: Record<string, string>; body?: unknown }): Promise<T>;
  close(): void;
}

const REQUEST_TIMEOUT_MS = 30_000;

export function createApiClient(options: {
  url: string;
  caPem: string;
  login?: { certificatePem: string; keyPem: string } | { token: string } | undefined;
}): ApiClient {
  const { login } = options;
  const agent = new Agent({
    keepAlive: true,
    ca: options.caPem,
    ...(login && 'keyPem' in login ? { cert: login.certificatePem, key: login.keyPem } : {}),
  });
  const authorization = login && 'token' in login ? { authorization: `Bearer ${login.token}` } : {};

  const client: ApiClient = {
    request: (path, init = {}) =>
      new Promise((resolve, reject) => {
        const body = typeof init.body === 'string' || init.body === undefined ? init.body : JSON.stringify(init.body);
        const headers = {
          accept: 'application/json',
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
          ...authorization,
          ...init.headers,
        };
        const outgoing = httpsRequest(
          new URL(path, options.url),
          { agent, method: init.method ?? 'GET', headers, timeout: REQUEST_TIMEOUT_MS },
          (incoming) => {
            const chunks: Buffer[] = [];
            incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
            incoming.on('error', reject);
            incoming.on('end', () => {
              const text = Buffer.concat(chunks).toString('utf8');
              const { statusCode: status = 0, headers } = incoming;
              resolve({ status, headers, text, json: () => JSON.parse(text) as unknown });
            });
          },
        );
        outgoing.on('timeout', () =>
          outgoing.destroy(new Error(`${path}: no answer in ${REQUEST_TIMEOUT_MS / 1000} s`)),
        );
        outgoing.on('error', reject);
        outgoing.end(body);
      }),
    async expectOk<T>(path: string, init = {}) {
      const response = await client.request(path, init);
      if (response.status < 200 || response.status > 299) {
        throw new Error(`${path}: ${response.status} ${response.text}`);
      }
      return response.json() as T;
    },
    close: () => agent.destroy(),
  };
  return client;
}
