import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import {
  clientSigner,
  postNodeRequest,
  startApprovalStack,
  stateIn,
  stateOf,
  type ApprovalStack,
} from '../../../harness/stack/approval.ts';
import {
  KUBE_CONTROLLER_MANAGER_USER,
  startKubeControllerManager,
} from '../../../harness/kubernetes/controller-manager.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { untilTaken } from '../../../harness/kubernetes/rights.ts';
import type { Relay } from '../../../harness/stack/stack.ts';
import {
  certificatePemOf,
  conditionOf,
  createRequest,
  eventually,
  readRequest,
  readRequests,
} from '../../../harness/stack/requests.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'kube-controller-manager');

const configuration = `version: 1
clusters:
  demo:
    cas: { ca: { subject: { commonName: approval demo CA } } }
    profiles:
      kubernetes.io/kube-apiserver-client: {}
      ${clientSigner}: { maxTtl: 30d }
      # Something is attested, so there is an attest function, which judges what is not attested too.
      kubernetes.io/kubelet-serving: { maxTtl: 30d, attestation: { providers: [aws] } }
    approval: { ${clientSigner}: approve }
    attestation:
      audience: demo
      aws: { accounts: { '111122223333': {} }, regions: [eu-central-1], tags: { a: b }, nodeName: [instanceId] }
    limits: { inFlightPerRequester: 4 }
`;
const nodeclient = 'system:certificates.k8s.io:certificatesigningrequests:nodeclient';
const selfnodeclient = 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient';
const itsWay = ['update approval 200', 'update status 200'];

describe.skipIf(skip)('unattested nodes on a real API server', () => {
  let stack: ApprovalStack;
  let relay: Relay;
  let token: ApiClient;
  const grants: Awaited<ReturnType<ApprovalStack['bind']>>[] = [];

  beforeAll(async () => {
    stack = await startApprovalStack(configuration);
    relay = await stack.relay('--concurrency', '12');
    token = await stack.bootstrap('abcdef');
  });
  afterEach(async () => {
    stack.release();
    for (const takeBack of grants.splice(0)) await takeBack();
  });
  afterAll(() => stack?.stop());

  async function grant(role: string, group: string): Promise<void> {
    const takeBack = await stack.bind(role, group);
    const subresource = role.split(':').at(-1)!;
    const right = { verb: 'create', group: 'certificates.k8s.io', resource: 'certificatesigningrequests', subresource };
    grants.push(async () => {
      await takeBack();
      await untilTaken(stack.plane, { user: 'probe', groups: [group] }, right);
    });
  }
  const reaches = (name: string, state: string): Promise<void> =>
    eventually(async () => (await stateOf(stack.plane, name)) === state, `${name} is ${state}`);
  const reviews = (): number =>
    stack.plane
      .auditEvents({ user: stack.identity.user })
      .filter(({ objectRef }) => objectRef?.resource === 'subjectaccessreviews').length;
  /** Logs in with the certificate that was issued. */
  const loginOf = async (name: string, keyPem: string): Promise<ApiClient> =>
    stack.plane.client({ certificatePem: certificatePemOf(await readRequest(stack.plane, name)), keyPem });

  test('a bootstrap token with leave joins: approved in the in-tree words, issued, with these writes and no others', async () => {
    await grant(nodeclient, 'system:bootstrappers');
    const before = reviews();
    const { object } = await postNodeRequest(token, 'joins', 'n1');
    expect(object.spec.username).toBe('system:bootstrap:abcdef');
    await reaches('joins', 'Approved, issued');
    expect(conditionOf(await readRequest(stack.plane, 'joins'), 'Approved')).toMatchObject({
      status: 'True',
      reason: 'AutoApproved',
      message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
    });
    await expect.poll(() => stack.writes('joins')).toEqual(itsWay);
    await expect.poll(() => reviews() - before).toBe(1);
    expect(stack.calls.filter((call) => call.endsWith(' joins'))).toEqual(['attest joins', 'sign joins']);
    await expect.poll(() => relay.metric('decisions_total', 'decision="approved"', `signer="${clientSigner}"`)).toBe(1);
  });

  test('without leave it waits, and goes through once it is given', async () => {
    await postNodeRequest(token, 'waits', 'n2');
    await eventually(async () => (await relay.metric('retries_total', 'NotPermitted')) >= 3, 'asked more than once');
    expect(await stateOf(stack.plane, 'waits')).toBe('');
    expect(stack.calls.filter((call) => call.endsWith(' waits'))).toEqual([]);
    expect((await relay.ready()).status).toBe(200);
    expect(await relay.metric('alarms_total')).toBe(0);
    await grant(nodeclient, 'system:bootstrappers');
    await reaches('waits', 'Approved, issued');
    await expect.poll(() => stack.writes('waits')).toEqual(itsWay);
  });

  test('a node renews itself, until the binding is deleted', async () => {
    await grant(nodeclient, 'system:bootstrappers');
    const { made } = await postNodeRequest(token, 'first', 'n3');
    await reaches('first', 'Approved, issued');
    await grant(selfnodeclient, 'system:nodes');
    const node = await loginOf('first', made.keyPem);
    try {
      const { object } = await postNodeRequest(node, 'renewal', 'n3');
      expect(object.spec.username).toBe('system:node:n3');
      await reaches('renewal', 'Approved, issued');
      expect(conditionOf(await readRequest(stack.plane, 'renewal'), 'Approved')!.message).toBe(
        'Auto approving self kubelet client certificate after SubjectAccessReview.',
      );
      // The binding covers only requests for the node's own name, not for another node's.
      await postNodeRequest(node, 'other-name', 'n4');
      await grants.pop()!();
      await postNodeRequest(node, 'after', 'n3');
      const asked = await relay.metric('retries_total', 'NotPermitted');
      await eventually(async () => (await relay.metric('retries_total', 'NotPermitted')) >= asked + 4, 'asked again');
      for (const name of ['other-name', 'after']) {
        expect([name, await stateOf(stack.plane, name)]).toEqual([name, '']);
        await stack.plane.kubectl(['delete', 'csr', name]);
      }
    } finally {
      node.close();
    }
  });

  test('what no such signer signs is denied with the reason, and so is what two readers read differently', async () => {
    await grant(nodeclient, 'system:bootstrappers');
    await postNodeRequest(token, 'with-names', 'n6', { spec: { sans: { dns: ['n6'] } } });
    // The API server, like the in-tree approver, reads the first block and passes over the rest.
    const [first, second] = ['n6', 'n7'].map((name) =>
      makeRequest({ subject: { O: 'system:nodes', CN: `system:node:${name}` } }),
    );
    await postNodeRequest(token, 'two-in-one', 'n6', { pem: first!.pem + second!.pem });
    await reaches('with-names', 'Denied');
    await reaches('two-in-one', 'Denied');
    expect(conditionOf(await readRequest(stack.plane, 'two-in-one'), 'Denied')).toMatchObject({
      reason: 'RequestMalformed',
    });
    expect(conditionOf(await readRequest(stack.plane, 'with-names'), 'Denied')).toMatchObject({
      status: 'True',
      reason: 'SignerValidationFailure',
      message: 'DNS subjectAltNames are not allowed',
    });
    await expect.poll(() => stack.writes('with-names')).toEqual(['update approval 200']);
    const described = await stack.plane.kubectl(['describe', 'csr', 'with-names']);
    expect(described).toMatch(/SignerValidationFailure.*DNS subjectAltNames are not allowed/);
  });

  test('a bad self-signature does not get past the API server of this version', async () => {
    // Earlier ones stored it; then the relay denies it, which test/unit/lambdas/watch-relay/request/approval.test.ts shows.
    const signature = (bytes: Buffer) => Buffer.from([...bytes.subarray(0, -1), bytes.at(-1)! ^ 1]);
    await expect(postNodeRequest(token, 'forged', 'n6', { spec: { signature } })).rejects.toThrow(
      /verification failure/,
    );
  });

  test('where approval is manual nothing is written until a person did', async () => {
    await createRequest(stack.plane.admin, {
      name: 'by-hand',
      signer: 'kube-apiserver-client',
      request: { subject: { CN: 'jane' } },
    });
    // Seen, since one made later was answered.
    await grant(nodeclient, 'system:bootstrappers');
    await postNodeRequest(token, 'later', 'n7');
    await reaches('later', 'Approved, issued');
    expect(await stateOf(stack.plane, 'by-hand')).toBe('');
    expect([stack.writes('by-hand'), stack.calls.filter((call) => call.endsWith(' by-hand'))]).toEqual([[], []]);
    await stack.plane.kubectl(['certificate', 'approve', 'by-hand']);
    await reaches('by-hand', 'Approved, issued');
    await expect.poll(() => stack.writes('by-hand')).toEqual(['update status 200']);
  });

  test('killed between its approval and the signature: the next one signs, and the request is decided once', async () => {
    await grant(nodeclient, 'system:bootstrappers');
    stack.hold('sign');
    await postNodeRequest(token, 'crash', 'n8');
    await eventually(() => stack.calls.includes('sign crash'), 'it is being signed');
    expect(await stateOf(stack.plane, 'crash')).toBe('Approved');
    await relay.kill();
    stack.release();
    relay = await stack.relay('--concurrency', '12');
    await reaches('crash', 'Approved, issued');
    await expect.poll(() => stack.writes('crash')).toEqual(itsWay);
  });

  test('killed while attest judges: the next one asks again and decides', async () => {
    await grant(nodeclient, 'system:bootstrappers');
    stack.hold('attest');
    await postNodeRequest(token, 'early-crash', 'n9');
    await eventually(() => stack.calls.includes('attest early-crash'), 'it is being attested');
    await relay.kill();
    expect(await stateOf(stack.plane, 'early-crash')).toBe('');
    stack.release();
    relay = await stack.relay('--concurrency', '12');
    await reaches('early-crash', 'Approved, issued');
    await expect.poll(() => stack.writes('early-crash')).toEqual(itsWay);
  });

  test('what a person denies while attest judges stays denied', async () => {
    await grant(nodeclient, 'system:bootstrappers');
    stack.hold('attest');
    await postNodeRequest(token, 'overruled', 'n10');
    await eventually(() => stack.calls.includes('attest overruled'), 'it is being attested');
    await stack.plane.kubectl(['certificate', 'deny', 'overruled']);
    stack.release();
    await eventually(() => stack.writes('overruled').length > 0, 'the relay tried');
    expect(stack.writes('overruled')).toEqual(['update approval 409']);
    await postNodeRequest(token, 'after-it', 'n10');
    await reaches('after-it', 'Approved, issued');
    expect(await stateOf(stack.plane, 'overruled')).toBe('Denied');
  });

  test('two relays that do not know of each other decide once', async () => {
    await grant(nodeclient, 'system:bootstrappers');
    const second = await stack.relay('--concurrency', '12');
    const names = Array.from({ length: 30 }, (_, i) => `both-${i}`);
    await Promise.all(names.map((name) => postNodeRequest(token, name, name)));
    await eventually(async () => {
      const objects = (await readRequests(stack.plane)).filter(({ metadata }) => names.includes(metadata.name));
      return objects.every((object) => stateIn(object) === 'Approved, issued');
    }, 'all are issued');
    for (const name of names) {
      // The second certificate is the same one, which the API server takes without a change.
      const approvals = () => stack.writes(name).filter((write) => write.endsWith('approval 200'));
      await expect.poll(() => [name, approvals()]).toEqual([name, ['update approval 200']]);
    }
    await second.stop();
  });

  test('a flood of one token goes on behind renewals and other tokens, and loses nothing', async () => {
    await grant(nodeclient, 'system:bootstrappers');
    await grant(selfnodeclient, 'system:nodes');
    const { made } = await postNodeRequest(token, 'renews', 'n11');
    await reaches('renews', 'Approved, issued');
    const node = await loginOf('renews', made.keyPem);
    const other = await stack.bootstrap('uvwxyz');
    try {
      const size = byTier({ default: 100, deep: 500 });
      const flood = Array.from({ length: size }, (_, i) => `flood-${i}`);
      stack.hold('attest');
      for (let i = 0; i < flood.length; i += 50)
        await Promise.all(flood.slice(i, i + 50).map((name) => postNodeRequest(token, name, name)));
      await eventually(async () => (await relay.metric('longest_queue')) >= size - 10, 'the flood waits');
      const flooding = () => stack.calls.filter((call) => call.startsWith('attest flood')).length;
      await eventually(() => flooding() >= 4, 'it has all it may have in hand');
      const renewals = Array.from({ length: 6 }, (_, i) => `renewal-${i}`);
      await Promise.all(renewals.map((name) => postNodeRequest(node, name, 'n11')));
      await postNodeRequest(other, 'other-token', 'n12');
      const beside = [...renewals.slice(0, 4), 'other-token'];
      await eventually(
        () => stack.calls.filter((call) => /^attest (renewal|other)/.test(call)).length >= beside.length,
        'they are attested while the flood is held',
      );
      // Of twelve at once, four, however long the others are away.
      expect(flooding()).toBe(4);
      const before = stack.calls.length;
      stack.release();
      for (const name of [...renewals, 'other-token']) await reaches(name, 'Approved, issued');
      // In the order of the calls: how late this test sees it depends on the machine.
      const after = stack.calls.slice(before);
      const last = after.findLastIndex((call) => /^attest (renewal|other)/.test(call));
      const meanwhile = after.slice(0, last).filter((call) => call.startsWith('attest flood'));
      expect(last).toBeGreaterThanOrEqual(0);
      expect(meanwhile.length).toBeLessThan(0.9 * size);
      await eventually(async () => {
        const objects = (await readRequests(stack.plane)).filter(({ metadata }) => metadata.name.startsWith('flood-'));
        return objects.length === size && objects.every((object) => stateIn(object) === 'Approved, issued');
      }, 'the whole flood is issued');
      expect(await relay.metric('alarms_total')).toBe(0);
    } finally {
      node.close();
      other.close();
    }
  });

  test('says and does what kube-controller-manager’s approver says and does', async () => {
    await grant(nodeclient, 'system:bootstrappers');
    await grant(selfnodeclient, 'system:nodes');
    const { made } = await postNodeRequest(token, 'twin', 'n13');
    await reaches('twin', 'Approved, issued');
    await relay.stop();
    const reference = await startKubeControllerManager({ controlPlane: stack.plane, controllers: ['csrapproving'] });
    const node = await loginOf('twin', made.keyPem);
    const stranger = await stack.plane.client({ user: 'jane', groups: ['system:nodes'] });
    const cases = {
      joins: [token, 'n20'],
      renews: [node, 'n13'],
      'takes-another': [node, 'n21'],
      'is-no-node': [stranger, 'n22'],
    } as const;
    const condition = async (prefix: string, name: string) => {
      const found = conditionOf(await readRequest(stack.plane, `${prefix}-${name}`), 'Approved');
      return found === undefined ? undefined : { status: found.status, reason: found.reason, message: found.message };
    };
    const ask = async (prefix: string, asked: () => Promise<boolean>) => {
      for (const [name, [client, nodeName]] of Object.entries(cases))
        await postNodeRequest(client, `${prefix}-${name}`, nodeName);
      for (const name of ['joins', 'renews'])
        await eventually(async () => (await condition(prefix, name)) !== undefined, `${prefix} approves ${name}`);
      await eventually(asked, `${prefix} looked at the others`);
      const found = new Map<string, unknown>();
      for (const name of Object.keys(cases)) found.set(name, await condition(prefix, name));
      return found;
    };
    const reviewsBy = (user: string): number =>
      stack.plane.auditEvents({ user }).filter(({ objectRef }) => objectRef?.resource === 'subjectaccessreviews')
        .length;
    try {
      const theirs = await ask('reference', async () => reviewsBy(KUBE_CONTROLLER_MANAGER_USER) >= 6);
      await reference.stop();
      const asked = reviewsBy(stack.identity.user);
      relay = await stack.relay();
      const ours = await ask('ours', async () => reviewsBy(stack.identity.user) >= asked + 6);
      expect([...ours]).toEqual([...theirs]);
      expect([...ours.values()].filter((found) => found === undefined)).toHaveLength(2);
    } finally {
      node.close();
      stranger.close();
      await reference.stop();
    }
  });
});
