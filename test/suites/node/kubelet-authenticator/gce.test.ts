/*
 * Provider gce on a real API server: VMs of Google join, renew and serve with identity tokens, and no others do. Google is a strict
 * stand-in: the metadata server of each VM, the token service, the Compute API and the keys.
 */
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { computeEndpoint } from '../../../../adapters/google/compute.ts';
import { fetchGoogleKeySet } from '../../../../adapters/google/key-set.ts';
import { openSignService } from '../../../../dev/serve/sign-service.ts';
import { startFakeSts, type FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';
import { startFakeGoogle, type FakeGoogle, type FakePool, type FakeVm } from '../../../harness/fake-google/google.ts';
import { createGoogleKey, jwkOf } from '../../../harness/fake-google/identity-token.ts';
import { startFakeMetadata, type FakeMetadata } from '../../../harness/fake-google/metadata.ts';
import { cacheFiles, printed, secretsOf } from '../../../harness/node/authenticator-output.ts';
import { installNode, type Node, type Program } from '../../../harness/node/authenticator-site.ts';
import { startApprovalStack, type ApprovalStack } from '../../../harness/stack/approval.ts';
import { readRequests } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

const audience = '111122223333/eu-central-1/demo';
const signers = {
  client: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-gce',
  serving: 'cluster.x-k8s.io/kubelet-serving-gce',
} as const;
const account = '111122223333';
const pool: FakePool = {
  provider: '//iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/aws-pool/providers/countersign',
  account,
  role: `arn:aws:sts::${account}:assumed-role/attest`,
};
const [project, zone] = [{ projectNumber: '424242424242', projectId: 'my-nodes' }, 'europe-west3-b'];
const [googleKey, otherKey] = [createGoogleKey('google-1'), createGoogleKey('google-1')];

const configuration = JSON.stringify({
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'gce suite CA' } } },
      profiles: { [signers.client]: { maxTtl: '70s' }, [signers.serving]: { maxTtl: '30d' } },
      approval: { [signers.client]: 'approve', [signers.serving]: 'approve' },
      attestation: {
        audience,
        gce: {
          projects: { [project.projectNumber]: project.projectId },
          federation: { provider: pool.provider },
          labels: { role: 'node' },
        },
      },
    },
  },
});

describe.skipIf(skip)('kubelet-authenticator on VMs of Google and a real API server', () => {
  let sts: FakeSts;
  let google: FakeGoogle;
  let stack: ApprovalStack;
  let caFile: string;
  const servers: FakeMetadata[] = [];
  beforeAll(async () => {
    const aws = createFakeAws();
    const role = aws.session(aws.createRole({ arn: `arn:aws:iam::${account}:role/attest` }), 'function');
    const { accessKeyId, secretAccessKey, sessionToken = '' } = role;
    sts = await startFakeSts({ aws });
    google = await startFakeGoogle({ pool, stsPort: sts.port, now: Date.now });
    google.keySet = { keys: [jwkOf(googleKey)] };
    const at = { endpoint: () => google.url };
    const credentials = () => ({ accessKeyId, secretAccessKey, sessionToken });
    stack = await startApprovalStack(configuration, undefined, {}, (cluster) =>
      openSignService({
        clusters: [cluster],
        log: () => {},
        google: {
          compute: (federation) =>
            computeEndpoint({ federation, region: 'eu-central-1', credentials, now: Date.now, ...at }),
          googleKeySet: () => fetchGoogleKeySet(at),
        },
      }),
    );
    await stack.relay();
    (await stack.bootstrap('abcdef')).close();
    caFile = join(stack.plane.dir, 'serving-ca.pem');
    writeFileSync(caFile, stack.plane.servingCaPem);
  });
  afterAll(async () => {
    for (const server of servers) await server.close();
    await stack?.stop();
    await google?.close();
    await sts?.close();
  });

  interface Machine extends Node {
    readonly metadata: FakeMetadata;
  }

  /** A VM whose metadata server signs with `key`; Google knows it unless `unknown`. */
  async function machine(
    name: string,
    {
      key = googleKey,
      unknown = false,
      ...fields
    }: Partial<FakeVm> & {
      readonly key?: typeof googleKey;
      readonly unknown?: boolean;
    } = {},
  ): Promise<Machine> {
    const vm: FakeVm = { ...project, zone, id: String(7_000 + servers.length), name, ...fields };
    if (!unknown) google.vms.set(vm.id, vm);
    const metadata = await startFakeMetadata({ vm, key, now: Date.now });
    servers.push(metadata);
    const place = { folder: stack.plane.dir, front: { url: stack.plane.url, caFile }, clientCaFile: '' };
    const installed = installNode(name, `vm-${servers.length}`, place, {
      settings: {
        provider: 'gce',
        audience,
        signerName: signers.client,
        servingSignerName: signers.serving,
        clientCaBundleFile: undefined,
      },
      env: { GCE_METADATA_HOST: metadata.host },
    });
    return { ...installed, metadata, instanceId: vm.id, close: () => metadata.close() };
  }

  /** Of its 370 seconds 300 lie before it was issued: counted from there, it is due at once. */
  function makeDue(node: Machine): void {
    for (const file of ['client.pem', 'client-copy.pem'])
      writeFileSync(join(node.cache, file), cacheFiles(node)[file]!.replace(/^issued-at: .*\n/, ''));
  }

  /** The conditions of the newest request that the program names on stderr. */
  async function conditionsOf({ stderr }: Program) {
    const [, requestName] = [...stderr.matchAll(/request (node-csr-\S+?)[ ,:]/g)].at(-1) ?? [];
    return (await readRequests(stack.plane)).find(({ metadata }) => metadata.name === requestName)!.status.conditions;
  }

  test('joins, renews with a new key, and gets its serving certificate', async () => {
    const node = await machine('n1');
    const joined = await node.run();
    const client = printed(joined);
    expect(client.certificate.subject).toBe('O=system:nodes\nCN=system:node:n1');
    for (const secret of secretsOf(node, client.keyPem.slice(30, 60))) expect(joined.stderr).not.toContain(secret);

    makeDue(node);
    expect(printed(await node.run()).keyPem).not.toBe(client.keyPem);

    expect(await node.run({ args: ['serving', '--once'] })).toMatchObject({ code: 0 });
    const serving = new X509Certificate(cacheFiles(node)['serving.pem']!);
    expect(serving.subjectAltName).toBe('DNS:n1, DNS:n1.europe-west3-b.c.my-nodes.internal, IP Address:10.156.0.7');

    const requests = (await readRequests(stack.plane)).filter(({ spec }) =>
      Object.values<string>(signers).includes(spec.signerName),
    );
    const annotations = {
      'countersign.dev/identity': `gce#${project.projectNumber}/${zone}/7000`,
      'countersign.dev/evidence': 'gce/v1',
    };
    expect(requests.map(({ metadata }) => metadata)).toMatchObject([{ annotations }, { annotations }, { annotations }]);
    // A token for each request, and none for another.
    expect(new Set(node.metadata.audiences).size).toBe(3);
    for (const one of node.metadata.audiences) expect(one).toMatch(/^csr-attest\/gce\/v1\/[0-9a-f]{64}$/);
    // Google's keys are read once, and Google is asked about the VM for each request.
    const read = google.calls.filter((call) => call === 'keys');
    expect(read).toHaveLength(1);
    expect(google.calls.filter((call) => call.endsWith('/7000')).length).toBeGreaterThanOrEqual(3);
  });

  test.each([
    ['whose token another issuer signed', { key: otherKey }, 'AttestationInvalid', 'the token is not signed by Google'],
    ['that Google does not know', { unknown: true }, 'IdentityNotAllowed', 'Google knows no such VM'],
    ['without the label', { fields: { labels: {} } }, 'IdentityNotAllowed', 'the VM lacks the label "role"'],
  ])('a VM %s is refused', async (_, changed, reason, message) => {
    const node = await machine('n2', changed);
    const program = await node.run();
    expect(program).toMatchObject({ code: 1, stdout: '' });
    expect(program.stderr).toContain(`(${reason})`);
    expect(program.stderr).toContain(message);
    expect(await conditionsOf(program)).toMatchObject([{ type: 'Denied', reason }]);
  });

  test('a pod that reaches the metadata server of a VM that has joined gets nothing', async () => {
    const node = await machine('n3');
    printed(await node.run());
    const { id } = node.metadata.vm;
    const pod = await machine('n3', { id });
    const program = await pod.run();
    expect(program.code).toBe(1);
    expect(program.stderr).toContain('(TofuReuse)');
  });

  test('without a service account the node says what is missing, and requests nothing', async () => {
    const node = await machine('n4');
    node.metadata.vm = { ...node.metadata.vm, serviceAccount: false };
    const before = (await readRequests(stack.plane)).length;
    const program = await node.run({ args: ['exec', '--wait', '1'] });
    expect(program.code).toBe(5);
    expect(program.stderr).toContain('this VM has no service account');
    expect(await readRequests(stack.plane)).toHaveLength(before);
  });
});
