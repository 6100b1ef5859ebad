/*
 * EC2 instances join with their NitroTPM: kubelet-authenticator, tpm2-tools and swtpm on a real API server. Strict fakes of the metadata
 * service, STS and EC2; EC2 names the real endorsement key of each software TPM.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openSignService, type SignService } from '../../../../dev/serve/sign-service.ts';
import { startAwsPlatform, type AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import { startFakeImds } from '../../../harness/fake-aws/machine/imds.ts';
import { printed } from '../../../harness/node/authenticator-output.ts';
import { installNode, type Node, type Program } from '../../../harness/node/authenticator-site.ts';
import { startApprovalStack, type ApprovalStack } from '../../../harness/stack/approval.ts';
import { conditionOf, readRequests, type CsrObject } from '../../../harness/stack/requests.ts';
import { startSoftwareTpm, type SoftwareTpm } from '../../../harness/tpm/software-tpm.ts';
import { requireTools } from '../../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl', 'swtpm');

const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws-nitrotpm';
const serving = 'cluster.x-k8s.io/kubelet-serving-aws-nitrotpm';
const audience = '111122223333/eu-central-1/demo';
const configuration = JSON.stringify({
  version: 1,
  clusters: {
    demo: {
      cas: { ca: { subject: { commonName: 'nitro demo CA' } } },
      profiles: { [signerName]: { maxTtl: '70s' }, [serving]: { maxTtl: '1h' } },
      approval: { [signerName]: 'approve', [serving]: 'approve' },
      attestation: {
        audience,
        aws: {
          accounts: { '111122223333': {} },
          regions: ['eu-central-1'],
          tags: { 'kubernetes.io/cluster/prod': 'owned' },
          nodeName: ['tag:Name'],
        },
      },
    },
  },
});

/** SubjectPublicKeyInfo, as EC2 names it. */
function keysOf(tpm: SoftwareTpm) {
  const spki = (kind: 'rsa-2048' | 'p-384') =>
    new X509Certificate(tpm.ekCertificate(kind)).publicKey.export({ type: 'spki', format: 'der' });
  return { 'rsa-2048': spki('rsa-2048'), 'ecc-sec-p384': spki('p-384') };
}

describe.skipIf(skip)('an instance with a NitroTPM and a real API server', () => {
  const cleanups: (() => unknown)[] = [];
  let platform: AwsPlatform;
  let stack: ApprovalStack;
  let service: SignService;
  let tpm: SoftwareTpm;
  let other: SoftwareTpm;
  let node: Omit<Node, 'close'>;
  let homes = 0;

  async function softwareTpm(name: string): Promise<SoftwareTpm> {
    const started = await startSoftwareTpm({ name });
    cleanups.push(() => started.stop());
    return started;
  }

  /** kubelet-authenticator on an instance, whose system reaches that TPM. */
  async function install(
    name: string,
    instanceId: string,
    reached: SoftwareTpm,
    settings: Readonly<Record<string, unknown>> = {},
  ): Promise<Omit<Node, 'close'>> {
    const imds = await startFakeImds({ aws: platform.aws, instanceId });
    cleanups.push(() => imds.close());
    const caFile = join(stack.plane.dir, 'serving-ca.pem');
    writeFileSync(caFile, stack.plane.servingCaPem);
    const place = { folder: stack.plane.dir, front: { url: stack.plane.url, caFile }, clientCaFile: 'unused' };
    const installed = installNode(name, `machine-${++homes}`, place, {
      settings: {
        provider: 'aws-nitrotpm',
        signerName,
        servingSignerName: serving,
        audience,
        clientCaBundleFile: undefined,
        ...settings,
      },
      env: { ...reached.environment, AWS_EC2_METADATA_SERVICE_ENDPOINT: imds.url },
    });
    return { ...installed, instanceId };
  }

  beforeAll(async () => {
    platform = await startAwsPlatform();
    cleanups.push(() => platform.close());
    stack = await startApprovalStack(configuration, undefined, {}, async (cluster) => {
      service = await openSignService({ clusters: [cluster], log: () => {}, aws: platform.ports });
      return service;
    });
    cleanups.push(() => stack.stop());
    await stack.relay();
    (await stack.bootstrap('abcdef')).close();
    [tpm, other] = [await softwareTpm('one'), await softwareTpm('two')];
    const { instanceId } = platform.launch('worker-1', { nitroTpm: keysOf(tpm) });
    node = await install('worker-1', instanceId, tpm);
  }, 180_000);
  afterAll(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });

  const record = ({ instanceId }: { readonly instanceId: string }) =>
    service.attestations('demo')!.store.findIdentity(`aws#aws/111122223333/eu-central-1/${instanceId}`);
  const seen = new Set<string>();
  /** What became of each request since the last call. */
  async function fresh(): Promise<readonly (readonly [string, CsrObject])[]> {
    const requests = (await readRequests(stack.plane)).filter(
      ({ metadata, spec }) => [signerName, serving].includes(spec.signerName) && !seen.has(metadata.name),
    );
    for (const { metadata } of requests) seen.add(metadata.name);
    return requests.map((request) => [
      conditionOf(request, 'Denied')?.reason ?? conditionOf(request, 'Approved')?.type ?? 'pending',
      request,
    ]);
  }
  const decisions = async () => (await fresh()).map(([decision]) => decision).toSorted();
  const reasonOf = ({ stderr }: Program): string | undefined =>
    [...stderr.matchAll(/was (?:denied|refused) \((\w+)\)/g)].at(-1)?.[1];

  test('joins in two requests: the first is denied with a challenge, the second answers it', async () => {
    const { certificate } = printed(await node.run());
    expect(certificate.subject).toContain('CN=system:node:worker-1');
    const asked = new Map(await fresh());
    expect([...asked.keys()].toSorted()).toEqual(['Approved', 'AttestationChallenge']);
    const key = keysOf(tpm)['rsa-2048'].toString('base64');
    for (const { metadata } of asked.values())
      expect(metadata).toMatchObject({ annotations: { 'cluster-x-k8s-io/tpm-endorsement-key': key } });
    expect((await record(node))?.device?.akName).toMatch(/^000b[0-9a-f]{64}$/);
    expect(await tpm.handles('transient')).toEqual([]);
    expect(await tpm.handles('loaded-session')).toEqual([]);
  });

  test('renews with a quote alone', async () => {
    // Of its 370 seconds 300 lie before it was issued: counted from there, it is due at once.
    for (const file of ['client.pem', 'client-copy.pem']) {
      const path = join(node.cache, file);
      writeFileSync(path, readFileSync(path, 'utf8').replace(/^issued-at: .*\n/, ''));
    }
    printed(await node.run());
    expect(await decisions()).toEqual(['Approved']);
    expect(await record(node)).toMatchObject({ renewals: 1 });
  });

  test('serves under its node name and the names that EC2 gives it', async () => {
    expect((await node.run({ args: ['serving', '--once'] })).code).toBe(0);
    expect(await decisions()).toEqual(['Approved']);
  });

  test('joins with its endorsement key on P-384', async () => {
    const { instanceId } = platform.launch('worker-2', { nitroTpm: keysOf(other) });
    const second = await install('worker-2', instanceId, other, { endorsementKey: 'p-384' });
    printed(await second.run());
    expect(await decisions()).toEqual(['Approved', 'AttestationChallenge']);
  });

  test.each([
    ['the TPM of another instance', () => ({ nitroTpm: keysOf(tpm) })],
    ['a software TPM that EC2 does not name', () => ({ nitroTpm: { 'rsa-2048': keysOf(tpm)['rsa-2048'] } })],
  ])('is not taken for an instance with %s', async (what, spec) => {
    const { instanceId } = platform.launch(`thief-${homes}`, spec());
    const reached = what.startsWith('the TPM') ? other : await softwareTpm('three');
    const thief = await install(`thief-${homes}`, instanceId, reached);
    const program = await thief.run();
    expect(program.code).not.toBe(0);
    // It cannot open the challenges, so it does not even answer one.
    expect(new Set(await decisions())).toEqual(new Set(['AttestationChallenge']));
    expect(await record(thief)).toBeUndefined();
  });

  test('does not join without a NitroTPM', async () => {
    const { instanceId } = platform.launch('plain');
    const plain = await install('plain', instanceId, other);
    expect(reasonOf(await plain.run())).toBe('IdentityNotAllowed');
    expect((await fresh()).map(([, request]) => conditionOf(request, 'Denied')?.message)).toEqual([
      expect.stringContaining('the instance has no NitroTPM 2.0'),
    ]);
  });
});
