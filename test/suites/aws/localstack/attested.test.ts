/**
 * A cluster with attestation as `cdk deploy` makes it: deployed functions, their own tables, the relay as approver on a
 * real API server; machines, STS and EC2 are the strict fakes, reached by the addresses in the functions' environment,
 * and their region's certificate is one that the operator supplies.
 */
import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ApiClient } from '../../../harness/kubernetes/api-client.ts';
import { postNodeRequest, stateOf } from '../../../harness/stack/approval.ts';
import { prove, requestFor, startAwsPlatform } from '../../../harness/attestation/attested-site.ts';
import type { AwsPlatform, Proved } from '../../../harness/attestation/attested-site.ts';
import { deployOnLocalStack, type Deployment } from '../../../harness/aws/deployment.ts';
import { startFakeEc2 } from '../../../harness/fake-aws/ec2.ts';
import type { FakeInstance } from '../../../harness/fake-aws/machine/instance.ts';
import type { NodeEvidence } from '../../../harness/fake-aws/machine/node-evidence.ts';
import { regionCa } from '../../../harness/fake-aws/machine/region-ca.ts';
import { requireLocalStack } from '../../../harness/aws/localstack.ts';
import { approverManifest, clusterPath, installRelay, type RelayIdentity } from '../../../harness/stack/stack.ts';
import { certificatePemOf, conditionOf, eventually, readRequest } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { jsonOf, readTrustBundle, type CountedSigner } from '../../control-plane/end-to-end/kms-counting.ts';
import { describeSigning, type SigningWorld } from '../../control-plane/end-to-end/signing-suite.ts';

const missing = [await requireTools('etcd', 'kube-apiserver', 'kubectl'), await requireLocalStack()];
const notOurs = Boolean(process.env['AWS_ENDPOINT_URL']);

const [account, region] = ['000000000000', 'eu-central-1'];
const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
const servingName = 'cluster.x-k8s.io/kubelet-serving-aws';
/** The signers of Kubernetes itself demand nothing yet, so that what is held to be true of them is held here too. */
const withAttestation = (configuration: string): string =>
  configuration
    .replace(
      'kubernetes.io/kube-apiserver-client-kubelet: { ca: ca, maxTtl: 1d }',
      `kubernetes.io/kube-apiserver-client-kubelet: { ca: ca, maxTtl: 1d, attestation: { providers: [aws], mode: audit } }
      ${signerName}: { ca: ca, maxTtl: 1d }
      ${servingName}: { ca: ca, maxTtl: 1d }`,
    )
    .replace(
      '    frontDoor:',
      `    approval: { ${signerName}: approve, ${servingName}: approve }
    attestation:
      aws:
        accounts: { '${account}': {} }
        regions: [${region}]
        tags: { kubernetes.io/cluster/demo: owned }
        nodeName: ['tag:Name']
        certificates: { ${region}: [${JSON.stringify(regionCa(region).certificatePem)}] }
    frontDoor:`,
    );

type AttestedSigner = CountedSigner & Deployment & { readonly platform: AwsPlatform };

async function startSigner(): Promise<AttestedSigner> {
  const platform = await startAwsPlatform();
  // The functions' own account, whose role is let see instances; LocalStack asks nobody who he is.
  const { accessKeyId, secretAccessKey } = platform.aws.createUser(account, 'functions', ['ec2:DescribeInstances']);
  const ec2 = await startFakeEc2({ aws: platform.aws });
  try {
    const deployment = await deployOnLocalStack({
      change: withAttestation,
      functions: {
        AWS_ENDPOINT_URL_STS: platform.sts.url,
        AWS_ENDPOINT_URL_EC2: ec2.url,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
        AWS_SESSION_TOKEN: '',
      },
    });
    return {
      ...deployment,
      platform,
      relayArgs: ['--config', deployment.configurationFile, '--attest-url', deployment.attestUrl],
      caPem: () => readTrustBundle(deployment),
      async stop() {
        await deployment.stop();
        await ec2.close();
        await platform.close();
      },
    };
  } catch (error) {
    await ec2.close();
    await platform.close();
    throw error;
  }
}

describeSigning({
  by: 'what cdk deploy made in LocalStack, where machines prove themselves',
  skip: notOurs || missing.some(({ skip }) => skip),
  start: startSigner,
  // Each call at once is a process of its own here.
  relayArgs: ['--concurrency', '4'],
  judgedOnArrival: ['kube-apiserver-client-kubelet'],
  async install(plane) {
    const identity = await installRelay(plane, approverManifest);
    await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(rightsFor(identity)) });
    return identity;
  },
  more(world) {
    describe('machines', () => {
      defineMachines(world);
    });
  },
});

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

function defineMachines(world: () => SigningWorld & { readonly signer: AttestedSigner }): void {
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
    kubelet.close();
  });

  test('asked straight, the sign function has attest asked first', async () => {
    const { signer } = world();
    async function ask(object: object) {
      const answer = await signer.fetch(`${signer.url}${clusterPath}/sign`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: new Uint8Array(Buffer.from(JSON.stringify(object))),
        signal: AbortSignal.timeout(60_000),
        redirect: 'manual',
      });
      return { status: answer.status, text: JSON.stringify(await jsonOf(answer)) };
    }
    const proved = requestFor({ signerName, request: evidenceOf(launch('w3'), 'w3').request });
    expect(await ask(proved)).toMatchObject({ status: 200 });
    const stolen = requestFor({ signerName, request: evidenceOf(launch('w3'), 'w3').request });
    expect(await ask(stolen)).toMatchObject({ status: 422, text: expect.stringContaining('TofuNodeTaken') as unknown });
  });

  test('AWS was asked by the functions alone, about this account’s machines', () => {
    const { sts } = world().signer.platform;
    expect(sts.calls.every(({ action, presigned }) => action === 'GetCallerIdentity' && presigned)).toBe(true);
    expect(sts.calls.length).toBeGreaterThan(3);
  });
}
