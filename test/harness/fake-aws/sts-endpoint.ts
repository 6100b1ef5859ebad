/**
 * What stands for the product's adapter in tests of the core: sends each request to the fake on loopback, under the host
 * it was made for. GET only, follows nothing, and throws what is temporary (contract of the attest function's STS port).
 */
import { request as httpRequest } from 'node:http';
import type { Service } from './service.ts';

export interface StsRequest {
  readonly host: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface StsResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export function connectSts({ port }: Pick<Service, 'port'>): (request: StsRequest) => Promise<StsResponse> {
  return async (request) => {
    const response = await sendTo(port, { method: 'GET', ...request });
    if (response.status >= 500 || response.status === 429) throw new Error(`STS answered ${response.status}`);
    return response;
  };
}

/** One request to a fake, whatever host it is addressed to. Rejects when the connection ends without a whole answer. */
export function sendTo(
  port: number,
  { method, host, path, headers, body }: StsRequest & { readonly method: string; readonly body?: string },
): Promise<StsResponse & { readonly headers: Readonly<Record<string, string>> }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method, path, headers: { ...headers, host }, agent: false };
    const sent = httpRequest(options, (message) => {
      const chunks: Buffer[] = [];
      message.on('data', (chunk: Buffer) => chunks.push(chunk));
      message.on('error', reject);
      message.on('end', () => {
        const received = message.headers as Record<string, string>;
        const text = Buffer.concat(chunks).toString('utf8');
        const contentType = received['content-type'] ?? '';
        resolve({ status: message.statusCode ?? 0, contentType, headers: received, body: text });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
