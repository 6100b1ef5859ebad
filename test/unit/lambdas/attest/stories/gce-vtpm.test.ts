/**
 * Requests of gke-exec-auth-plugin at the webhook's door: `/sign` alone is called, as gcp-controller-manager does, and calls attest
 * itself. VMs of a fake Google behind the real adapter, from the first certificate to the end of a VM. gce-vtpm-requests.test.ts has the
 * requests of the real plugin.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { computeEndpoint } from '../../../../../adapters/google/compute.ts';
import { keys, publicPem, vm, vmRequest } from '../../../../corpus/attestation/gce-vtpm/vm.ts';
import type { VmRequestSpec } from '../../../../corpus/attestation/gce-vtpm/vm.ts';
import { openSite, requestFor, signers } from '../../../../harness/attestation/attested-site.ts';
import type { AttestedSite, CertificateSigningRequest } from '../../../../harness/attestation/attested-site.ts';
import { startFakeSts } from '../../../../harness/fake-aws/sts.ts';
import type { FakeSts } from '../../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../../harness/fake-aws/world.ts';
import { startFakeGoogle } from '../../../../harness/fake-google/google.ts';
import type { FakeGoogle, FakeVm } from '../../../../harness/fake-google/google.ts';
import { newKey } from '../../../../harness/x509/requests.ts';

const account = '111122223333';
let ahead = 0;
const now = (): number => Date.now() + ahead;
const aws = createFakeAws({ now });
const attestRole = aws.session(aws.createRole({ arn: `arn:aws:iam::${account}:role/attest` }), 'function', 86_400);
const provider =
  '//iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/aws-pool/providers/countersign';
const noAws = {
  sts: () => Promise.reject(new Error('this test allows no call of AWS')),
  ec2: { describeInstance: () => Promise.reject(new Error('this test allows no call of AWS')) },
  regionCertificates: new Map(),
};

let sts: FakeSts;
let google: FakeGoogle;
beforeAll(async () => {
  sts = await startFakeSts({ aws });
  const role = `arn:aws:sts::${account}:assumed-role/attest`;
  google = await startFakeGoogle({ pool: { provider, account, role }, stsPort: sts.port, now });
});
afterAll(async () => {
  await google.close();
  await sts.close();
});

const sites: AttestedSite[] = [];
afterEach(() => {
  for (const site of sites.splice(0)) site.close();
  google.vms.clear();
  google.mend();
  ahead = 0;
});

async function open(cluster: Readonly<Record<string, unknown>>): Promise<AttestedSite> {
  const { accessKeyId, secretAccessKey, sessionToken = '' } = attestRole;
  const site = await openSite({
    clusters: { prod: cluster },
    aws: noAws,
    now,
    compute: (federation) =>
      computeEndpoint({
        federation,
        region: 'eu-central-1',
        credentials: () => ({ accessKeyId, secretAccessKey, sessionToken }),
        now,
        endpoint: () => google.url,
      }),
  });
  sites.push(site);
  return site;
}

const attested = { attestation: { providers: ['gce-vtpm'] } };
const profiles = { [signers.client]: attested, [signers.serving]: attested };

const worker: FakeVm = {
  projectNumber: vm.projectNumber,
  projectId: vm.projectId,
  zone: vm.zone,
  id: vm.instanceId,
  name: vm.name,
  signingKey: publicPem(keys.vm),
};
const fleet = {
  profiles,
  attestation: {
    'gce-vtpm': { projects: { [vm.projectNumber]: vm.projectId }, federation: { provider }, labels: { role: 'node' } },
  },
};

function fromPlugin(spec: VmRequestSpec & { readonly username?: string } = {}): CertificateSigningRequest {
  const { username = 'kubelet-bootstrap', ...rest } = spec;
  const by = { username, groups: ['system:authenticated'] };
  return requestFor({ by, request: vmRequest({ key: newKey('P-256'), ...rest }) });
}

describe('VMs of Google', () => {
  test('the request is signed, and the address of the VM is its own in a serving certificate', async () => {
    google.vms.set(worker.id, worker);
    const site = await open(fleet);
    expect((await site.sign(fromPlugin())).said).toBe('issued');
    const serving = (sans: object) =>
      site.sign(requestFor({ node: vm.name, by: 'node', signerName: signers.serving, csr: { sans } }));
    expect((await serving({ dns: [vm.name], ip: ['10.156.0.7', '2600:1900:40e0:9c:0:7::'] })).said).toBe('issued');
    // Of the second interface, and of a pod.
    expect((await serving({ dns: [vm.name], ip: ['10.200.0.7'] })).said).toBe('NameNotOwned');
    expect((await serving({ dns: [vm.name], ip: ['10.20.3.4'] })).said).toBe('NameNotOwned');
  });

  test('the requester is the plugin or the node, and no other', async () => {
    google.vms.set(worker.id, worker);
    const site = await open(fleet);
    expect((await site.sign(fromPlugin({ username: 'system:bootstrap:abcdef' }))).said).toBe('RequesterNotAllowed');
    expect((await site.sign(fromPlugin())).said).toBe('issued');
    const renewal = requestFor({ by: 'node', node: vm.name, request: vmRequest({ key: newKey('P-256') }) });
    expect((await site.sign(renewal)).said).toBe('issued');
  });

  test('without the blocks nothing is signed', async () => {
    const site = await open(fleet);
    const plain = requestFor({ by: { username: 'kubelet-bootstrap', groups: [] }, node: vm.name });
    const said = await site.sign({
      ...plain,
      spec: {
        ...plain.spec,
        request: Buffer.from(vmRequest({ blocks: (usual) => usual.slice(0, 1) })).toString('base64'),
      },
    });
    expect(said.said).toBe('AttestationMissing');
  });

  test('evidence of kubelet-authenticator is told which version is taken', async () => {
    const site = await open(fleet);
    const blocks: VmRequestSpec['blocks'] = ([request]) => [
      request!,
      ['KUBELET AUTHENTICATOR ATTESTATION PROVIDER', Buffer.from('aws/v2')],
      ['KUBELET AUTHENTICATOR ATTESTATION DATA', Buffer.from('{}')],
    ];
    expect((await site.sign(fromPlugin({ blocks }))).said).toBe('AttestationVersion');
    // Its frame around the name of this provider carries none of what the provider needs.
    const named: VmRequestSpec['blocks'] = ([request]) => [
      request!,
      ['KUBELET AUTHENTICATOR ATTESTATION PROVIDER', Buffer.from('gce-vtpm/v1')],
      ['KUBELET AUTHENTICATOR ATTESTATION DATA', Buffer.from('{}')],
    ];
    expect((await site.sign(fromPlugin({ blocks: named }))).said).toBe('RequestMalformed');
  });

  test('a provider ID in the request, which the plugin does not write, must be right', async () => {
    google.vms.set(worker.id, worker);
    const site = await open(fleet);
    const extension = (providerId: string) => ({
      extensions: [
        {
          oid: '1.3.6.1.4.1.11129.2.1.21',
          value: Buffer.concat([Buffer.from([0x0c, providerId.length]), Buffer.from(providerId)]),
        },
      ],
    });
    expect((await site.sign(fromPlugin({ csr: extension('gce://my-nodes/europe-west3-b/other') }))).said).toBe(
      'AttestationInvalid',
    );
    expect((await site.sign(fromPlugin({ csr: extension('gce://my-nodes/europe-west3-b/worker-1') }))).said).toBe(
      'issued',
    );
  });

  test('a request without a label of the policy, and one while Google cannot be asked', async () => {
    google.vms.set(worker.id, { ...worker, fields: { labels: {} } });
    const site = await open(fleet);
    expect((await site.sign(fromPlugin())).said).toBe('IdentityNotAllowed');
    google.vms.set(worker.id, worker);
    google.permissions.delete('compute.instances.get');
    const object = fromPlugin();
    expect((await site.sign(object)).said).toBe('busy');
    google.permissions.add('compute.instances.get');
    expect((await site.sign(object)).said).toBe('issued');
  });

  test('a VM that is created anew under the same name gets it only after the first one is gone', async () => {
    google.vms.set(worker.id, worker);
    const site = await open(fleet);
    expect((await site.sign(fromPlugin())).said).toBe('issued');
    const successor = { ...worker, id: '5555', signingKey: publicPem(keys.other) };
    google.vms.set(successor.id, successor);
    const fromSuccessor = () => fromPlugin({ signer: keys.other, identity: { instanceId: '5555' } });
    expect((await site.sign(fromSuccessor())).said).toBe('TofuNodeTaken');
    google.vms.delete(worker.id);
    // Unknown to Google: only an hour after its last use, and at two looks (docs/attestation.md).
    expect((await site.sign(fromSuccessor())).said).toBe('TofuNodeTaken');
    ahead = 61 * 60_000;
    const object = fromSuccessor();
    expect((await site.sign(object)).said).toBe('busy');
    ahead += 3 * 60_000;
    expect((await site.sign(object)).said).toBe('issued');
    expect((await site.sign(fromPlugin())).said).not.toBe('issued');
  });
});
