/** An API server with objects by path. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../../../harness/processes/processes.ts';

export interface FakeApi {
  readonly kubeconfig: string;
  readonly objects: Map<string, object>;
  readonly forbidden: RegExp[];
  readonly asked: string[];
}

export async function startFakeApi(): Promise<FakeApi> {
  const { path: folder, remove } = temporaryFolder('rotation-api');
  const fake: FakeApi = { kubeconfig: join(folder, 'kubeconfig'), objects: new Map(), forbidden: [], asked: [] };
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://fake');
    fake.asked.push(`${request.method} ${pathname}`);
    request.resume();
    const found = fake.objects.get(pathname);
    const status = fake.forbidden.some((path) => path.test(pathname)) ? 403 : found === undefined ? 404 : 200;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(status === 200 ? found : { kind: 'Status', message: `no ${pathname}` }));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    remove();
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

export const paths = {
  authentication: '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication',
  root: '/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt',
  info: '/api/v1/namespaces/kube-public/configmaps/cluster-info',
  pods: '/api/v1/namespaces/kube-system/pods',
  bundles: '/apis/certificates.k8s.io/v1beta1/clustertrustbundles',
  deployments: '/apis/apps/v1/deployments',
  kept: '/api/v1/namespaces/web/configmaps/serving-ca',
  validating: '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
  mutating: '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  services: '/apis/apiregistration.k8s.io/v1/apiservices',
  definitions: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
} as const;
