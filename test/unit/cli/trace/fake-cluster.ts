/** An API server with requests, Events, and pods of a relay with their logs. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export interface FakeCluster {
  readonly kubeconfig: string;
  /** CertificateSigningRequests by name. */
  readonly requests: Map<string, object>;
  readonly events: { readonly involvedObject: { readonly uid: string }; readonly [field: string]: unknown }[];
  /** Logs by `namespace/name` of pods with the labels of the relay. */
  readonly logs: Map<string, string>;
  /** Paths that are answered 403. */
  readonly forbidden: RegExp[];
  readonly asked: string[];
}

const labels = 'app.kubernetes.io/part-of=countersign,app.kubernetes.io/component=watch-relay';

export async function startFakeCluster(): Promise<FakeCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-trace-'));
  const fake: FakeCluster = {
    kubeconfig: join(folder, 'kubeconfig'),
    requests: new Map(),
    events: [],
    logs: new Map(),
    forbidden: [],
    asked: [],
  };
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://fake');
    fake.asked.push(pathname);
    request.resume();
    const [status, body] = fake.forbidden.some((path) => path.test(pathname))
      ? [403, { kind: 'Status', message: 'is forbidden: User "ada" cannot do this' }]
      : answer(pathname, searchParams, fake);
    response.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: url } }],
    users: [{ name: 'ada', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'ada' } }],
    'current-context': 'x',
  };
  writeFileSync(fake.kubeconfig, JSON.stringify(config));
  return fake;
}

function answer(path: string, query: URLSearchParams, fake: FakeCluster): [number, object | string] {
  const missing: [number, object] = [404, { kind: 'Status', message: 'not found' }];
  const [, name] = /^\/apis\/certificates\.k8s\.io\/v1\/certificatesigningrequests\/([^/]+)$/.exec(path) ?? [];
  if (name !== undefined) {
    const object = fake.requests.get(decodeURIComponent(name));
    return object === undefined ? missing : [200, object];
  }
  if (path === '/api/v1/namespaces/default/events') {
    const [, uid] = /^involvedObject\.uid=(.+)$/.exec(query.get('fieldSelector') ?? '') ?? [];
    return [200, { items: fake.events.filter(({ involvedObject }) => involvedObject.uid === uid), metadata: {} }];
  }
  if (path === '/api/v1/pods' && query.get('labelSelector') === labels) {
    const items = [...fake.logs.keys()].map((pod) => {
      const [namespace, podName] = pod.split('/');
      return { metadata: { namespace, name: podName } };
    });
    return [200, { items, metadata: {} }];
  }
  const [, namespace, pod] = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/log$/.exec(path) ?? [];
  const log = fake.logs.get(`${namespace}/${pod}`);
  if (log === undefined || query.get('container') !== 'watch-relay' || !query.has('sinceTime')) return missing;
  return [200, log.slice(0, Number(query.get('limitBytes')))];
}
