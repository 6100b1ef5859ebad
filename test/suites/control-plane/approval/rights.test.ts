import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import {
  clientSigner,
  postNodeRequest,
  startApprovalStack,
  stateOf,
  type ApprovalStack,
} from '../../../harness/stack/approval.ts';
import { untilTaken } from '../../../harness/kubernetes/rights.ts';
import { approverManifest, manifestObjects, type Relay } from '../../../harness/stack/stack.ts';
import { certificatePemOf, conditionOf, csrPath, eventually, readRequest } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

/** Nothing is attested: no attest function is asked, and serving certificates are a node's own to ask for. */
const configuration = `version: 1
clusters:
  demo:
    cas: { ca: { subject: { commonName: approval demo CA } } }
    profiles:
      kubernetes.io/kube-apiserver-client: {}
      ${clientSigner}: { maxTtl: 30d }
      kubernetes.io/kubelet-serving: { maxTtl: 30d }
    approval: { ${clientSigner}: approve, kubernetes.io/kubelet-serving: approve }
    approveServingWithoutProof: true
`;
const certificates = 'system:certificates.k8s.io:certificatesigningrequests';

const serverRole = 'approve-node-server-renewal-csr';

/** Those that only an approver has, as the manifest names them. */
const rights = [
  ['update', 'certificatesigningrequests/approval'],
  ['approve', 'signers'],
  ['create', 'subjectaccessreviews'],
] as const;

describe.skipIf(skip)('the rights of a relay that approves', () => {
  let stack: ApprovalStack;
  let relay: Relay;
  let token: ApiClient;

  beforeAll(async () => {
    stack = await startApprovalStack(configuration);
    await stack.bind(`${certificates}:nodeclient`, 'system:bootstrappers');
    // Kubernetes' documentation has this role; Kubernetes makes the two others by itself, and not this one.
    await stack.plane.kubectl([
      'create',
      'clusterrole',
      serverRole,
      '--verb=create',
      '--resource=certificatesigningrequests.certificates.k8s.io/selfnodeserver',
    ]);
    await stack.bind(serverRole, 'system:nodes');
    relay = await stack.relay('--leader-elect', '--lease-namespace', stack.identity.namespace);
    token = await stack.bootstrap('abcdef');
  });
  afterAll(() => stack?.stop());

  const used = () => stack.plane.auditEvents({ user: stack.identity.user });
  const reaches = (name: string, state: string): Promise<void> =>
    eventually(async () => (await stateOf(stack.plane, name)) === state, `${name} is ${state}`);

  test('bring a node in, and its serving certificate too, with no call to attest', async () => {
    const { made } = await postNodeRequest(token, 'joins', 'n1');
    await reaches('joins', 'Approved, issued');
    const certificatePem = certificatePemOf(await readRequest(stack.plane, 'joins'));
    const node = await stack.plane.client({ certificatePem, keyPem: made.keyPem });
    try {
      const serving = {
        signerName: 'kubernetes.io/kubelet-serving',
        usage: 'server auth',
        spec: { sans: { dns: ['n1'] } },
      };
      await postNodeRequest(node, 'serves', 'n1', serving);
      await reaches('serves', 'Approved, issued');
      // finding 4: no proof says whose names they are, and these are no node's in any case.
      for (const [name, sans] of Object.entries({
        'serves-service': { dns: ['n1', 'kubernetes.default.svc'] },
        'serves-loopback': { dns: ['n1'], ip: ['127.0.0.1'] },
      })) {
        await postNodeRequest(node, name, 'n1', { ...serving, spec: { sans } });
        await reaches(name, 'Denied');
        expect(conditionOf(await readRequest(stack.plane, name), 'Denied')).toMatchObject({ reason: 'NameReserved' });
      }
      await postNodeRequest(token, 'no-node', 'n1', serving);
      await postNodeRequest(token, 'denied', 'n1', { spec: { sans: { dns: ['n1'] } } });
      await reaches('denied', 'Denied');
      expect([await stateOf(stack.plane, 'no-node'), stack.writes('no-node')]).toEqual(['', []]);
    } finally {
      node.close();
    }
    expect(stack.calls).toEqual(['sign joins', 'sign serves']);
  });

  test.each(rights)(
    'without %s on %s nothing is decided, the relay says so, and all goes on once it is back',
    async (verb, resource) => {
      const role = manifestObjects(approverManifest).find(
        ({ rules, kind }) => kind === 'ClusterRole' && rules?.some(({ resources }) => resources?.includes(resource)),
      )!;
      const rules = role.rules!.filter(
        ({ resources, verbs }) => !(resources?.includes(resource) === true && verbs.includes(verb)),
      );
      expect(rules).toHaveLength(role.rules!.length - 1);
      const patch = (content: unknown) =>
        stack.plane.kubectl([
          'patch',
          'clusterrole',
          role.metadata.name,
          '--type=merge',
          '-p',
          JSON.stringify({ rules: content }),
        ]);
      await patch(rules);
      const [of = '', subresource] = resource.split('/');
      const group = of === 'subjectaccessreviews' ? 'authorization.k8s.io' : 'certificates.k8s.io';
      const right = { verb, group, resource: of, ...(subresource === undefined ? {} : { subresource }) };
      await untilTaken(stack.plane, stack.identity, of === 'signers' ? { ...right, name: clientSigner } : right);
      const before = await relay.metric('api_errors_total', 'code="Forbidden"');
      const name = `without-${verb}`;
      await postNodeRequest(token, name, 'n2');
      await eventually(
        async () => (await relay.metric('api_errors_total', 'code="Forbidden"')) >= before + 2,
        'it was refused twice',
      );
      expect(await stateOf(stack.plane, name)).toBe('');
      const call =
        resource === 'subjectaccessreviews' ? 'create subjectaccessreviews' : `update approval for ${clientSigner}`;
      expect(await relay.ready()).toMatchObject({ status: 503, text: expect.stringContaining(call) as unknown });
      await patch(role.rules);
      await reaches(name, 'Approved, issued');
      await eventually(async () => (await relay.ready()).status === 200, 'ready again');
    },
  );

  test('are exactly what it uses: nothing is granted in vain, and nothing else is tried', async () => {
    await eventually(() => used().some(({ objectRef }) => objectRef?.resource === 'events'), 'an Event was written');
    await eventually(
      () => used().some(({ objectRef, verb }) => objectRef?.resource === 'leases' && verb === 'update'),
      'the lease was renewed',
    );
    // A request that changed since the watch told of it is read anew.
    stack.hold('sign');
    await postNodeRequest(token, 'changes', 'n3');
    await eventually(() => stack.calls.includes('sign changes'), 'it is being signed');
    await stack.plane.kubectl(['label', 'csr', 'changes', 'a=b']);
    stack.release();
    await reaches('changes', 'Approved, issued');
    const granted = manifestObjects(approverManifest)
      .flatMap(({ rules = [] }) => rules)
      .flatMap(({ apiGroups = [], resources = [], verbs }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}.${group}`)),
        ),
      );
    // The API server asks for these two itself; that they are needed is shown above, and in the suite rbac.
    const checked = ['sign signers.certificates.k8s.io', 'approve signers.certificates.k8s.io'];
    expect(granted).toEqual(expect.arrayContaining(checked));
    const done = used().map(({ verb, objectRef }) => {
      const { resource = '', subresource, apiGroup = '' } = objectRef ?? {};
      return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}.${apiGroup}`;
    });
    expect([...new Set(done)].toSorted()).toEqual(granted.filter((each) => !checked.includes(each)).toSorted());
  });

  test('are for the signers it approves, and do not let it make requests or approve others', async () => {
    const login = JSON.parse(
      await stack.plane.kubectl(['config', 'view', '--raw', '-o', 'json'], { kubeconfig: stack.identity.kubeconfig() }),
    ) as { users: { user: { token: string } }[] };
    const asRelay = await stack.plane.client({ token: login.users[0]!.user.token });
    try {
      await postNodeRequest(stack.plane.admin, 'by-hand', 'n9', {
        signerName: 'kubernetes.io/kube-apiserver-client',
      });
      const object = await readRequest(stack.plane, 'by-hand');
      const conditions = [{ type: 'Approved', status: 'True', reason: 'Relay', message: '' }];
      const attempts: readonly [string, string, unknown?][] = [
        ['PUT', `${csrPath}/by-hand/approval`, { ...object, status: { conditions } }],
        ['PUT', `${csrPath}/by-hand`, object],
        ['POST', csrPath, object],
        ['DELETE', `${csrPath}/by-hand`],
        ['GET', '/api/v1/secrets'],
        ['GET', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'],
      ];
      for (const [method, path, body] of attempts) {
        const { status } = await asRelay.request(path, { method, ...(body === undefined ? {} : { body }) });
        expect({ method, path, status }).toEqual({ method, path, status: 403 });
      }
    } finally {
      asRelay.close();
    }
  });
});
