/** Machines that prove themselves to deployed functions, with the relay as approver on a real API server. */
import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { postNodeRequest, stateOf } from '../../../harness/stack/approval.ts';
import { prove, requestFor } from '../../../harness/attestation/attested-site.ts';
import type { Proved } from '../../../harness/attestation/attested-site.ts';
import type { FakeInstance } from '../../../harness/fake-aws/machine/instance.ts';
import type { NodeEvidence } from '../../../harness/fake-aws/machine/node-evidence.ts';
import { approverManifest, clusterPath, installRelay, type RelayIdentity } from '../../../harness/stack/stack.ts';
import { certificatePemOf, conditionOf, eventually, readRequest } from '../../../harness/stack/requests.ts';
import { jsonOf } from '../../control-plane/end-to-end/kms-counting.ts';
import type { SigningWorld } from '../../control-plane/end-to-end/signing-suite.ts';
import { countersign } from './command-line.ts';
import { account, region, servingName, signerName, type AttestedSigner } from './attested-signer.ts';

/** The relay as approver, also of the two signers that demand a proof. */
export async function installApprover(plane: ControlPlane): Promise<RelayIdentity> {
  const identity = await installRelay(plane, approverManifest);
  await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(rightsFor(identity)) });
  return identity;
}

const bootstrapToken = {
  apiVersion: 'v1',
  kind: 'Secret',
  type: 'bootstrap.kubernetes.io/token',
  metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
  stringData: {
    'token-id': 'abcdef',
    'token-secret': '0123456789abcdef',
    'usage-bootstrap-authentication': 'true',
  },
};

/** Of the two signers that the manifest does not name, as the chart gives them. */
function rightsFor({ name, namespace }: RelayIdentity): object {
  const apiGroup = 'rbac.authorization.k8s.io';
  const of = (kind: string, content: object): object => ({
    apiVersion: `${apiGroup}/v1`,
    kind,
    metadata: { name: 'test-signers' },
    ...content,
  });
  const signers = {
    apiGroups: ['certificates.k8s.io'],
    resources: ['signers'],
    resourceNames: [signerName, servingName],
  };
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      of('ClusterRole', { rules: [{ ...signers, verbs: ['sign', 'approve'] }] }),
      of('ClusterRoleBinding', {
        roleRef: { apiGroup, kind: 'ClusterRole', name: 'test-signers' },
        subjects: [{ kind: 'ServiceAccount', name, namespace }],
      }),
    ],
  };
}

export function defineMachines(world: () => SigningWorld & { readonly signer: AttestedSigner }): void {
  const launch = (node: string): FakeInstance =>
    world().signer.platform.launch(node, {
      account,
      privateIp: '10.0.0.7',
      tags: { 'kubernetes.io/cluster/demo': 'owned' },
    });
  const evidenceOf = (instance: FakeInstance, node: string, asked: Proved = {}): NodeEvidence =>
    prove(world().signer.platform, instance, {
      node,
      signerName,
      ...asked,
      evidence: { clusterName: 'demo', audience: `${account}/${region}/demo`, ...asked.evidence },
    });
  async function post(client: ApiClient, name: string, { request }: { readonly request: string }, signer = signerName) {
    const usage = signer === servingName ? 'server auth' : 'client auth';
    await postNodeRequest(client, name, 'unused', { signerName: signer, pem: request, usage });
  }
  const reaches = (name: string, state: string): Promise<void> =>
    eventually(async () => (await stateOf(world().plane, name)) === state, `${name} is ${state}`);
  async function denial(name: string) {
    await reaches(name, 'Denied');
    return conditionOf(await readRequest(world().plane, name), 'Denied');
  }
  /** Logs in with the one bootstrap token there is. */
  const token = (): Promise<ApiClient> => world().plane.client({ token: 'abcdef.0123456789abcdef' });

  async function askSign(object: object) {
    const { signer } = world();
    const answer = await signer.fetch(`${signer.url}${clusterPath}/sign`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: new Uint8Array(Buffer.from(JSON.stringify(object))),
      signal: AbortSignal.timeout(60_000),
      redirect: 'manual',
    });
    return { status: answer.status, text: JSON.stringify(await jsonOf(answer)) };
  }

  let worker: FakeInstance;
  let kubelet: ApiClient;

  test('a bootstrap token and the proof of its machine: approved, issued', async () => {
    const { plane } = world();
    for (const [group, role] of [
      ['system:bootstrappers', 'system:node-bootstrapper'],
      ['system:nodes', 'system:node-bootstrapper'],
    ] as const)
      await plane.kubectl([
        'create',
        'clusterrolebinding',
        `test-${group.split(':')[1]}`,
        `--group=${group}`,
        `--clusterrole=${role}`,
      ]);
    await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(bootstrapToken) });
    worker = launch('w1');
    const evidence = evidenceOf(worker, 'w1');
    const client = await token();
    await post(client, 'w1-joins', evidence);
    client.close();
    await reaches('w1-joins', 'Approved, issued');
    const object = await readRequest(plane, 'w1-joins');
    const identity = `aws#aws/${account}/${region}/${worker.instanceId}`;
    expect(conditionOf(object, 'Approved')?.message).toContain(identity);
    kubelet = await plane.client({ certificatePem: certificatePemOf(object), keyPem: evidence.csr.keyPem });
  });

  test('the same token from another machine of that name: denied with the reason', async () => {
    const client = await token();
    await post(client, 'w1-hijacked', evidenceOf(launch('w1'), 'w1'));
    client.close();
    expect(await denial('w1-hijacked')).toMatchObject({ status: 'True', reason: 'TofuNodeTaken' });
  });

  test('and without evidence', async () => {
    const client = await token();
    await postNodeRequest(client, 'w2-bare', 'w2', { signerName });
    client.close();
    expect(await denial('w2-bare')).toMatchObject({ reason: 'AttestationMissing' });
  });

  test('the node itself renews, and has a serving certificate', async () => {
    await post(kubelet, 'w1-renews', evidenceOf(worker, 'w1'));
    await reaches('w1-renews', 'Approved, issued');
    const csr = { sans: { ip: ['10.0.0.7'], dns: ['w1'] } };
    await post(kubelet, 'w1-serves', evidenceOf(worker, 'w1', { signerName: servingName, csr }), servingName);
    await reaches('w1-serves', 'Approved, issued');
    const { subjectAltName } = new X509Certificate(certificatePemOf(await readRequest(world().plane, 'w1-serves')));
    expect(subjectAltName).toBe('DNS:w1, IP Address:10.0.0.7');
  });

  test('revoked by its name, it gets nothing any more: no renewal, no second first use, no serving or other certificate', async () => {
    const { signer } = world();
    const begun = Date.now();
    const why = ['--reason', 'keyCompromise', '--note', 'suite'];
    const revoked = await countersign(
      signer,
      'cert',
      'revoke',
      '--node',
      'w1',
      ...why,
      '--cluster',
      'demo',
      '-o',
      'json',
    );
    expect(revoked.status, revoked.out).toBe(0);
    const done = JSON.parse(revoked.out) as { locked: string[]; certificates: { serial: string }[]; crls: object[] };
    // The first certificate, the renewal and the serving certificate; their keys are locked too.
    expect(done.certificates).toHaveLength(3);
    expect(done.locked.join()).toContain(`node w1, machine aws#aws/${account}/${region}/${worker.instanceId}`);
    expect(done.locked.filter((text) => text.startsWith('key '))).toHaveLength(3);
    expect(done.crls).toMatchObject([{ name: 'ca', signed: true, entries: 3 }]);

    const asks: readonly (readonly [string, () => Promise<void>])[] = [
      ['w1-renews-again', () => post(kubelet, 'w1-renews-again', evidenceOf(worker, 'w1'))],
      [
        'w1-serves-again',
        () => {
          const csr = { sans: { ip: ['10.0.0.7'], dns: ['w1'] } };
          return post(
            kubelet,
            'w1-serves-again',
            evidenceOf(worker, 'w1', { signerName: servingName, csr }),
            servingName,
          );
        },
      ],
      [
        'w1-joins-again',
        async () => {
          const client = await token();
          await post(client, 'w1-joins-again', evidenceOf(worker, 'w1'));
          client.close();
        },
      ],
      [
        'w1-renamed',
        async () => {
          const client = await token();
          await post(client, 'w1-renamed', evidenceOf(worker, 'w9'));
          client.close();
        },
      ],
    ];
    for (const [name, ask] of asks) {
      await ask();
      expect([name, await denial(name)]).toMatchObject([name, { status: 'True', reason: 'Locked' }]);
    }
    kubelet.close();
    // Sign by itself, as after a forged approval.
    const forged = requestFor({ signerName, request: evidenceOf(worker, 'w1').request });
    expect(await askSign(forged)).toMatchObject({ status: 422, text: expect.stringContaining('Locked') as unknown });
    expect(Date.now() - begun).toBeLessThan(60_000);
    const listed = await countersign(signer, 'cert', 'revoked', '--cluster', 'demo', '-o', 'json');
    expect(JSON.parse(listed.out)).toHaveLength(3);
  });

  test('asked straight, the sign function has attest asked first', async () => {
    const proved = requestFor({ signerName, request: evidenceOf(launch('w3'), 'w3').request });
    expect(await askSign(proved)).toMatchObject({ status: 200 });
    const stolen = requestFor({ signerName, request: evidenceOf(launch('w3'), 'w3').request });
    expect(await askSign(stolen)).toMatchObject({
      status: 422,
      text: expect.stringContaining('TofuNodeTaken') as unknown,
    });
  });

  test('AWS was asked by the functions alone, about this account’s machines', () => {
    const { sts } = world().signer.platform;
    expect(sts.calls.every(({ action, presigned }) => action === 'GetCallerIdentity' && presigned)).toBe(true);
    expect(sts.calls.length).toBeGreaterThan(3);
  });
}
