import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseConfiguration } from '../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../core/configuration/model/cluster.ts';
import type { AwsPorts } from '../../../core/attestation/aws/endpoints.ts';
import type { HttpAnswer, HttpEvent } from '../../../adapters/lambda/http.ts';
import { serveHttp } from '../../../dev/csr-api/node-http.ts';
import { openSignService, type SignService } from '../../../dev/serve/sign-service.ts';
import type { ApiClient } from '../kubernetes/api-client.ts';
import { startControlPlane, type ControlPlane, type ControlPlaneOptions } from '../kubernetes/control-plane.ts';
import { makeRequest, newKey, type MadeRequest, type RequestSpec } from '../x509/requests.ts';
import {
  approverManifest,
  installRelay,
  manifestObjects,
  startRelay,
  type Relay,
  type RelayIdentity,
} from './stack.ts';
import { csrPath, readRequest, type CsrObject } from './requests.ts';

/*
 * A relay that approves, on a real API server: sign and attest handlers in this process, where a test can hold their
 * calls, and relays that are processes of their own. Nodes come with bootstrap tokens that the API server knows.
 */

export interface ApprovalStack {
  readonly plane: ControlPlane;
  readonly identity: RelayIdentity;
  /** Where the handlers are served, without path. */
  readonly endpoint: string;
  /** PEM of the CA under test. */
  readonly trustBundle: string;
  /** Calls that reached the handlers, as `attest <name>` and `sign <name>`, in order. */
  readonly calls: readonly string[];
  /** From now on calls of this sort wait until `release`. */
  hold(sort: 'sign' | 'attest'): void;
  release(): void;
  relay(...args: readonly string[]): Promise<Relay>;
  /** Logs in with a new bootstrap token: user `system:bootstrap:<id>`, group `system:bootstrappers`. */
  bootstrap(id: string): Promise<ApiClient>;
  /** Gives a group the right to do what a ClusterRole of Kubernetes names; the answer takes it back. */
  bind(role: string, group: string): Promise<() => Promise<void>>;
  /** What the relay did to one request, in order: `verb subresource status`. Reviews name no request. */
  writes(name: string): string[];
  stop(): Promise<void>;
}

/** Both handlers behind one front; over the embedded stores and key unless a test brings others. */
export type OpenHandlers = (cluster: ClusterConfiguration) => Promise<Pick<SignService, 'handler' | 'close'>>;

/** `configuration` is a countersign.yaml with a cluster `demo`. The API server believes kubelets that its CA certified. */
export async function startApprovalStack(
  configuration: string,
  aws?: AwsPorts,
  planeOptions: ControlPlaneOptions = {},
  openHandlers: OpenHandlers = (cluster) =>
    openSignService({ clusters: [cluster], log: () => {}, ...(aws === undefined ? {} : { aws }) }),
): Promise<ApprovalStack> {
  const cleanups: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  };
  try {
    const parsed = parseConfiguration(configuration, 'countersign.yaml');
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
    const service = await openHandlers(parsed.value.configuration.clusters.get('demo')!);
    cleanups.push(service.close);
    const calls: string[] = [];
    let held: 'sign' | 'attest' | undefined;
    const waiting: (() => void)[] = [];
    const release = (): void => {
      held = undefined;
      for (const go of waiting.splice(0)) go();
    };
    cleanups.push(release);
    const handler = async (event: HttpEvent): Promise<HttpAnswer> => {
      const sort = event.rawPath.split('/').at(-1);
      if (sort !== 'attest' && sort !== 'sign') return service.handler(event);
      calls.push(`${sort} ${nameIn(event)}`);
      if (held === sort) await new Promise<void>((resolve) => waiting.push(resolve));
      return service.handler(event);
    };
    const http = await serveHttp(handler, {
      port: 0,
      maxBodyBytes: 2_000_000,
      tooLarge: { statusCode: 413, headers: {}, body: '' },
      onError: () => {},
    });
    cleanups.push(http.close);

    const trusted = await fetch(`${http.url}/v1/clusters/demo/trust-bundle`);
    const trustBundle = await trusted.text();
    const plane = await startControlPlane({ ...planeOptions, clientCaPem: trustBundle, kubeletCaPem: trustBundle });
    cleanups.push(() => plane.stop());
    const file = join(plane.dir, 'countersign.yaml');
    writeFileSync(file, configuration);
    const identity = await installRelay(plane, approverManifest);
    const { profiles, approval } = parsed.value.configuration.clusters.get('demo')!;
    await grantSigners(plane, identity, [...profiles.keys()], (name) => approval.get(name) === 'approve');
    const kubeconfig = identity.kubeconfig();

    const bind: ApprovalStack['bind'] = async (role, group) => {
      const apiGroup = 'rbac.authorization.k8s.io';
      const path = `/apis/${apiGroup}/v1/clusterrolebindings`;
      const name = `test:${group}:${role.split(':').at(-1)}`;
      const body = {
        apiVersion: `${apiGroup}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name },
        roleRef: { apiGroup, kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup, kind: 'Group', name: group }],
      };
      await plane.admin.expectOk(path, { method: 'POST', body });
      return async () => void (await plane.admin.expectOk(`${path}/${name}`, { method: 'DELETE' }));
    };
    // As `kubeadm init` does: joining and joined nodes may create requests. Each test binds who is approved.
    for (const group of ['system:bootstrappers', 'system:nodes']) await bind('system:node-bootstrapper', group);

    return {
      plane,
      identity,
      endpoint: http.url,
      trustBundle,
      calls,
      hold: (sort) => void (held = sort),
      release,
      async relay(...args) {
        const relay = await startRelay({ kubeconfig, endpoint: http.url, args: ['--config', file, ...args] });
        cleanups.push(() => relay.stop());
        return relay;
      },
      async bootstrap(id) {
        const secret = '0123456789abcdef';
        await plane.admin.expectOk('/api/v1/namespaces/kube-system/secrets', {
          method: 'POST',
          body: {
            apiVersion: 'v1',
            kind: 'Secret',
            type: 'bootstrap.kubernetes.io/token',
            metadata: { name: `bootstrap-token-${id}` },
            stringData: { 'token-id': id, 'token-secret': secret, 'usage-bootstrap-authentication': 'true' },
          },
        });
        const client = await plane.client({ token: `${id}.${secret}` });
        cleanups.push(() => client.close());
        return client;
      },
      bind,
      writes: (name) =>
        plane
          .auditEvents({ user: identity.user })
          .filter(({ objectRef, verb }) => objectRef?.name === name && !['get', 'list', 'watch'].includes(verb))
          .map(({ verb, objectRef, responseStatus }) => `${verb} ${objectRef?.subresource} ${responseStatus?.code}`),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Of signers that the manifest does not name, as the chart would give it from that configuration. */
async function grantSigners(
  plane: ControlPlane,
  identity: RelayIdentity,
  names: readonly string[],
  approves: (name: string) => boolean,
): Promise<void> {
  const known = new Set(
    manifestObjects(approverManifest)
      .flatMap(({ rules = [] }) => rules)
      .flatMap(({ resourceNames = [] }) => resourceNames),
  );
  const more = names.filter((name) => !known.has(name));
  if (more.length === 0) return;
  const apiGroup = 'rbac.authorization.k8s.io';
  const metadata = { name: 'test:more-signers' };
  const rule = (verb: string, resourceNames: readonly string[]) => ({
    apiGroups: ['certificates.k8s.io'],
    resources: ['signers'],
    resourceNames,
    verbs: [verb],
  });
  const rules = [rule('sign', more), rule('approve', more.filter(approves))].filter(
    ({ resourceNames }) => resourceNames.length > 0,
  );
  const create = (kind: string, content: object) =>
    plane.admin.expectOk(`/apis/${apiGroup}/v1/${kind.toLowerCase()}s`, {
      method: 'POST',
      body: { apiVersion: `${apiGroup}/v1`, kind, metadata, ...content },
    });
  await create('ClusterRole', { rules });
  await create('ClusterRoleBinding', {
    roleRef: { apiGroup, kind: 'ClusterRole', name: metadata.name },
    subjects: [{ kind: 'ServiceAccount', name: identity.name, namespace: identity.namespace }],
  });
}

function nameIn({ body = '', isBase64Encoded }: HttpEvent): string {
  const text = isBase64Encoded ? Buffer.from(body, 'base64').toString('utf8') : body;
  const json = JSON.parse(text === '' ? '{}' : text) as { request?: CsrObject } & Partial<CsrObject>;
  return (json.request ?? json).metadata?.name ?? '';
}

export const clientSigner = 'kubernetes.io/kube-apiserver-client-kubelet';

/** Posts a node's request as that client. `pem` instead of what `spec` makes. */
export async function postNodeRequest(
  client: ApiClient,
  name: string,
  nodeName: string,
  options: {
    readonly spec?: RequestSpec;
    readonly pem?: string;
    readonly signerName?: string;
    readonly usage?: string;
  } = {},
): Promise<{ readonly name: string; readonly made: MadeRequest; readonly object: CsrObject }> {
  const made = makeRequest({
    key: newKey('P-256'),
    subject: { O: 'system:nodes', CN: `system:node:${nodeName}` },
    ...options.spec,
  });
  const object = await client.expectOk<CsrObject>(csrPath, {
    method: 'POST',
    body: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name },
      spec: {
        signerName: options.signerName ?? clientSigner,
        request: Buffer.from(options.pem ?? made.pem).toString('base64'),
        usages: ['digital signature', options.usage ?? 'client auth'],
      },
    },
  });
  return { name, made, object };
}

/** What has been decided and done, as `Approved, issued`. */
export async function stateOf(plane: ControlPlane, name: string): Promise<string> {
  return stateIn(await readRequest(plane, name));
}

export function stateIn({ status }: CsrObject): string {
  const conditions = (status.conditions ?? []).map(({ type }) => type);
  return [...conditions, ...(status.certificate === undefined ? [] : ['issued'])].join(', ');
}
