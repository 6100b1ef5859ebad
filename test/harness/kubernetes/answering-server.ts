/** An API server with the answers of a test, for commands: what it does not answer is 404. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
}
/** A text is answered as it is, for logs. */
export type Answer = readonly [status: number, body: object | string];

/** By method and path, without the query. */
export type Answers = Readonly<Record<string, Answer>>;

/** It lasts for the test. */
export function startAnsweringServer(answers: Answers): Promise<AnsweringServer> {
  return answerWith(({ method, path }) => answers[`${method} ${path}`] ?? notFound);
}

export const notFound: Answer = [404, { kind: 'Status', message: 'not found' }];

export interface AnsweringServer {
  readonly kubeconfig: string;
  readonly url: string;
}

/** It lasts for the test. */
export async function answerWith(answer: (call: Call) => Answer): Promise<AnsweringServer> {
  const server = createServer((request, response) => {
    const { pathname: path, searchParams: query } = new URL(request.url ?? '', 'http://fake');
    request.resume();
    const [status, body] = answer({ method: request.method ?? '', path, query });
    response.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const folder = mkdtempSync(join(tmpdir(), 'countersign-answers-'));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = join(folder, 'kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: url } }],
    users: [{ name: 'ada', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'ada' } }],
    'current-context': 'x',
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  return { kubeconfig, url };
}
