/** An API server with the answers of a test, for commands: what it does not answer is 404. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export type Answers = Readonly<Record<string, readonly [status: number, body: object]>>;

/** `answers` by method and path, without the query. It lasts for the test. */
export async function startAnsweringServer(
  answers: Answers,
): Promise<{ readonly kubeconfig: string; readonly url: string }> {
  const server = createServer((request, response) => {
    const call = `${request.method} ${request.url?.split('?')[0]}`;
    request.resume();
    const [status, body] = answers[call] ?? [404, { kind: 'Status', message: 'not found' }];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
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
