import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectKubernetes } from '../../../../adapters/kubernetes/api.ts';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import type { AuditEvent } from '../../../harness/kubernetes/audit-log.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import {
  approverManifest,
  installRelay,
  manifestObjects,
  rbacManifest,
  startDevServer,
  startRelay,
  type DevServer,
  type Relay,
  type RelayIdentity,
} from '../../../harness/stack/stack.ts';
import {
  approve,
  conditionOf,
  createClientRequests,
  createRequest,
  csrPath,
  eventually,
  readRequest,
  settled,
} from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

/** One right, as the manifest grants it and as the audit log shows its use. */
function right(verb: string, group: string, resource: string): string {
  return `${verb} ${resource}${group === '' ? '' : `.${group}`}`;
}

function grantedRights(): string[] {
  const rules = manifestObjects()
    .filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')
    .flatMap(({ rules = [] }) => rules);
  return rules.flatMap(({ apiGroups = [], resources = [], verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => right(verb, group, resource)))),
  );
}

function usedRight({ verb, objectRef, requestURI }: AuditEvent): string {
  if (objectRef === undefined) return `${verb} ${requestURI}`;
  const { apiGroup = '', resource, subresource } = objectRef;
  // As RBAC writes it: resource.group/subresource is resource/subresource in the group.
  return right(verb, apiGroup, subresource === undefined ? resource : `${resource}/${subresource}`);
}

const signVerb = 'sign signers.certificates.k8s.io';

describe.skipIf(skip)('the rights of the relay', () => {
  let signer: DevServer;
  let plane: ControlPlane;
  let identity: RelayIdentity;
  let relay: Relay;
  let asRelay: ApiClient;

  beforeAll(async () => {
    signer = await startDevServer();
    plane = await startControlPlane({ clientCaPem: await signer.caPem() });
    identity = await installRelay(plane);
    const login = JSON.parse(
      await plane.kubectl(['config', 'view', '--raw', '-o', 'json'], { kubeconfig: identity.kubeconfig() }),
    ) as { users: { user: { token: string } }[] };
    asRelay = await plane.client({ token: login.users[0]!.user.token });
    relay = await startRelay({
      kubeconfig: identity.kubeconfig(),
      endpoint: signer.url,
      args: ['--leader-elect', '--lease-namespace', identity.namespace],
    });
  });

  afterAll(async () => {
    asRelay?.close();
    await relay?.stop();
    await plane?.stop();
    await signer?.stop();
  });

  const used = (): AuditEvent[] => plane.auditEvents({ user: identity.user });

  test('the manifest gives no more than verbs by name, and the lease and the signers by name too', () => {
    const rules = manifestObjects().flatMap(({ rules = [] }) => rules);
    expect(
      rules.flatMap(({ verbs, resources = [], apiGroups = [] }) => [...verbs, ...resources, ...apiGroups]),
    ).not.toContain('*');
    const named = (resource: string) => rules.filter(({ resources }) => resources?.includes(resource));
    for (const rule of named('signers')) {
      expect(rule.verbs).toEqual(['sign']);
      expect(rule.resourceNames?.toSorted()).toEqual([
        'kubernetes.io/kube-apiserver-client',
        'kubernetes.io/kube-apiserver-client-kubelet',
        'kubernetes.io/kubelet-serving',
      ]);
    }
    // A create cannot be limited to a name; what follows it can.
    for (const { verbs, resourceNames } of named('leases'))
      expect(verbs.includes('create') ? verbs : (resourceNames ?? [])).toHaveLength(1);
  });

  test('without ClusterTrustBundles in the API server the relay finds out that there are none', async () => {
    // Not as the relay, whose calls the test below counts: without the flag it does not ask.
    const api = connectKubernetes({ kind: 'kubeconfig', path: plane.adminKubeconfig });
    const version = await api.trust.clusterTrustBundleVersion(AbortSignal.timeout(10_000));
    api.close();
    expect(version).toEqual({ ok: true, value: undefined });
  });

  test('kubectl takes the manifests of both relays as they are', async () => {
    const files = [rbacManifest, approverManifest].flatMap((file) => ['-f', file]);
    const answer = await plane.kubectl(['apply', '--dry-run=server', '--validate=strict', ...files]);
    const all = [...manifestObjects(rbacManifest), ...manifestObjects(approverManifest)];
    expect(answer.trim().split('\n')).toHaveLength(all.length);
  });

  test('without the right to sign the write is 403, the relay says so, and the request waits until it is given back', async () => {
    const role = manifestObjects().find(({ rules }) => rules?.some(({ verbs }) => verbs.includes('sign')))!;
    const kind = role.kind.toLowerCase();
    const without = JSON.stringify({
      rules: role.rules!.filter(({ verbs }) => !verbs.includes('sign')),
    });
    await plane.kubectl(['patch', kind, role.metadata.name, '--type=merge', '-p', without]);

    const [posted] = await createClientRequests(plane, 'unwritable', 1);
    await approve(plane, posted!.name);
    const forbidden = (): AuditEvent[] =>
      used().filter(
        ({ objectRef, responseStatus }) => objectRef?.name === posted!.name && responseStatus?.code === 403,
      );
    await eventually(() => forbidden().length >= 2, 'two writes were refused');
    expect(new Set(forbidden().map(usedRight))).toEqual(
      new Set(['update certificatesigningrequests/status.certificates.k8s.io']),
    );
    const refused = await readRequest(plane, posted!.name);
    expect(Object.keys(refused.status)).toEqual(['conditions']);
    expect(refused.status.conditions?.map(({ type }) => type)).toEqual(['Approved']);

    await expect
      .poll(() => relay.metric('api_errors_total', 'verb="update"', 'code="Forbidden"'))
      .toBeGreaterThanOrEqual(2);
    const ready = await relay.ready();
    expect(ready).toMatchObject({
      status: 503,
      text: expect.stringContaining('update status for kubernetes.io/kube-apiserver-client') as unknown,
    });
    await expect.poll(() => relay.logged('request tried again')[0]).toMatchObject({ cause: 'ApiForbidden' });

    await plane.kubectl([
      'patch',
      kind,
      role.metadata.name,
      '--type=merge',
      '-p',
      JSON.stringify({ rules: role.rules }),
    ]);
    const issued = (await settled(plane, [posted!.name])).get(posted!.name)!;
    expect(issued.status.certificate).toBeDefined();
    expect(conditionOf(issued, 'Failed')).toBeUndefined();
    await eventually(async () => (await relay.ready()).status === 200, 'ready again');
  });

  test('are exactly what it uses: nothing is granted in vain, and nothing else is tried', async () => {
    // A request of each kind, one of them with the endpoint away for a moment: its next try reads it anew.
    const [posted] = await createClientRequests(plane, 'ordinary', 1);
    await createRequest(plane.admin, {
      name: 'refused',
      signer: 'kubelet-serving',
      request: { subject: { CN: 'nobody' } },
    });
    await signer.kill();
    const retries = await relay.metric('retries_total');
    await approve(plane, posted!.name, 'refused');
    await eventually(async () => (await relay.metric('retries_total')) >= retries + 2, 'the endpoint was missed');
    await signer.restart();
    const ends = await settled(plane, [posted!.name, 'refused']);
    expect(conditionOf(ends.get('refused')!, 'Failed')).toBeDefined();
    const uses = (resource: string, verb: string): boolean =>
      used().some((event) => event.objectRef?.resource === resource && event.verb === verb);
    await eventually(() => uses('events', 'create'), 'the Event was written');
    await eventually(() => uses('leases', 'update'), 'the lease was renewed');

    const granted = grantedRights();
    expect(granted).toContain(signVerb);
    expect(new Set(granted).size).toBe(granted.length);
    // The API server asks for `sign` itself, in an admission plugin: no request shows it. Its removal did, above.
    expect([...new Set(used().map(usedRight))].toSorted()).toEqual(
      granted.filter((each) => each !== signVerb).toSorted(),
    );
    const foreign = used().filter(({ objectRef }) => objectRef?.namespace !== undefined);
    expect(new Set(foreign.map(({ objectRef }) => `${objectRef?.resource} in ${objectRef?.namespace}`))).toEqual(
      new Set([`leases in ${identity.namespace}`, 'events in default']),
    );
  });

  test('do not include approval, reviews, other signers or other objects', async () => {
    const [pending] = await createClientRequests(plane, 'pending', 1);
    const object = await readRequest(plane, pending!.name);
    const approved = {
      ...object,
      status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Relay', message: '' }] },
    };
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: 'alice', resourceAttributes: { verb: 'get', resource: 'pods' } },
    };
    const attempts: readonly [method: string, path: string, body?: unknown][] = [
      ['PUT', `${csrPath}/${pending!.name}/approval`, approved],
      ['PUT', `${csrPath}/${pending!.name}`, object],
      ['POST', csrPath, object],
      ['DELETE', `${csrPath}/${pending!.name}`],
      ['POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review],
      ['GET', '/api/v1/secrets'],
      ['GET', `/apis/coordination.k8s.io/v1/namespaces/kube-system/leases`],
    ];
    for (const [method, path, body] of attempts) {
      const { status } = await asRelay.request(path, { method, ...(body === undefined ? {} : { body }) });
      expect({ method, path, status }).toEqual({ method, path, status: 403 });
    }
    expect(await readRequest(plane, pending!.name)).toEqual(object);

    // Even with the right to write status, a certificate for a signer that was not granted is refused.
    await createRequest(plane.admin, {
      name: 'foreign',
      signer: 'example.com/foreign',
      request: { subject: { CN: 'foreign' } },
    });
    await approve(plane, 'foreign');
    const foreign = await readRequest(plane, 'foreign');
    const { certificate } = (await readRequest(plane, 'ordinary-0')).status;
    const write = await asRelay.request(`${csrPath}/foreign/status`, {
      method: 'PUT',
      body: { ...foreign, status: { ...foreign.status, certificate } },
    });
    expect(write.status).toBe(403);

    const canSigners = async (verb: string, name: string): Promise<boolean> => {
      // kubectl asks nothing about resources that are not served, as signers are not.
      const resourceAttributes = { group: 'certificates.k8s.io', resource: 'signers', verb, name };
      const question = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes },
      };
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
      const answer = await asRelay.expectOk<{ status: { allowed: boolean } }>(path, { method: 'POST', body: question });
      return answer.status.allowed;
    };
    expect(await canSigners('sign', 'kubernetes.io/kubelet-serving')).toBe(true);
    expect(await canSigners('approve', 'kubernetes.io/kubelet-serving')).toBe(false);
    expect(await canSigners('attest', 'kubernetes.io/kubelet-serving')).toBe(false);
    expect(await canSigners('sign', 'example.com/foreign')).toBe(false);
    expect(await canSigners('sign', 'kubernetes.io/legacy-unknown')).toBe(false);
    const kubeconfig = identity.kubeconfig();
    const canI = async (...question: string[]): Promise<string> => {
      const answer = await plane
        .kubectl(['auth', 'can-i', ...question], { kubeconfig })
        .catch((error: unknown) => (error as { stdout?: string }).stdout ?? '');
      return answer.trim();
    };
    expect(await canI('list', 'certificatesigningrequests.certificates.k8s.io')).toBe('yes');
    expect(await canI('update', 'certificatesigningrequests.certificates.k8s.io', '--subresource=approval')).toBe('no');
    expect(await canI('create', 'subjectaccessreviews.authorization.k8s.io')).toBe('no');
  });
});
