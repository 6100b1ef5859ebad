/** Requests put to the provider `gce-vtpm` under a policy, and what Google says about the VM: right ones and wrong ones. */
import type { ComputeEndpoint, VmDescription } from '../../../../core/attestation/google/compute.ts';
import type { AttestationProvider, Machine } from '../../../../core/attestation/evidence/provider.ts';
import type { GceVtpmAttestation, PinnedVm } from '../../../../core/configuration/providers/gce-vtpm.ts';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { hasEndedAs, refused } from '../expected.ts';
import type { Expected } from '../expected.ts';
import { googleVmCases } from '../google-vm-cases.ts';
import { attestationCertificate, authorities, identityText, keys, now, publicPem, vm, vmRequest } from './vm.ts';
import { pemBlock } from '../../../harness/x509/requests.ts';
import type { VmRequestSpec } from './vm.ts';

export const policy: GceVtpmAttestation = {
  projects: { [vm.projectNumber]: vm.projectId },
  federation: {
    provider: '//iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/pool/providers/countersign',
  },
  labels: { role: 'node' },
  serviceAccounts: [],
  machines: 'any',
  instances: [],
  roots: [],
  intermediates: [],
  newKeys: 'refused',
};

export const pinned: PinnedVm = {
  project: vm.projectNumber,
  zone: vm.zone,
  id: vm.instanceId,
  name: vm.name,
  signingKey: publicPem(keys.vm),
  addresses: ['10.0.0.9'],
  dnsNames: ['worker-1.example.com'],
};

export const described: VmDescription = {
  instanceId: vm.instanceId,
  name: vm.name,
  zone: vm.zone,
  status: 'RUNNING',
  vtpm: true,
  labels: new Map([['role', 'node']]),
  serviceAccounts: ['nodes@my-nodes.iam.gserviceaccount.com', 'other@my-nodes.iam.gserviceaccount.com'],
  addresses: ['10.156.0.7', '2600:1900:40e0:9c:0:7:0:0', '203.0.113.9', '10.156.0.7', 'not an address'],
};

/** What differs from the true VM and the policy above. */
export interface ProviderCase {
  readonly name: string;
  readonly expect: Expected<
    'accepted',
    'AttestationInvalid' | 'IdentityNotAllowed' | 'RequestMalformed' | 'temporary' | 'misconfigured'
  >;
  readonly request?: VmRequestSpec;
  readonly node?: string;
  readonly policy?: Partial<Omit<GceVtpmAttestation, 'federation'>> & { readonly federation?: undefined };
  readonly vm?: Partial<VmDescription> | 'notFound';
  /** PEM, or `notFound`. `null`: it has none. */
  readonly signingKey?: string | null;
  /** How many calls to Google, where the case is about them. */
  readonly calls?: number;
}

const notAllowed = (words: string) => ['IdentityNotAllowed', words] as const;
const invalid = (words: string) => ['AttestationInvalid', words] as const;

const claims: readonly ProviderCase[] = [
  { name: 'the true VM', expect: 'accepted', calls: 2 },
  { name: 'the true VM with an attestation certificate', expect: 'accepted', request: { certificate: {} } },
  {
    name: 'a VM of a project in a domain',
    expect: 'accepted',
    policy: { projects: { [vm.projectNumber]: 'example.com:my-nodes' } },
    request: { identity: { projectId: 'example.com:my-nodes' } },
  },
  {
    name: 'a VM of a project that may not join',
    expect: notAllowed('VMs of project number 4242 may not join'),
    request: { identity: { projectNumber: '4242' } },
    calls: 0,
  },
  {
    name: 'a project number with the id of another project',
    expect: notAllowed('names another project than number'),
    request: { identity: { projectId: 'other' } },
    calls: 0,
  },
  {
    name: 'a VM of another name than the node',
    expect: notAllowed('names another VM than node'),
    node: 'worker-2',
    calls: 0,
  },
  {
    name: 'blocks that certify another key',
    expect: invalid('another key'),
    request: { attest: { name: new Uint8Array(34) } },
    calls: 0,
  },
  {
    name: 'blocks that cannot be read',
    expect: ['RequestMalformed', 'VM IDENTITY'],
    request: { identity: `${identityText()} ` },
    calls: 0,
  },
];

const roots = [authorities.root];
const intermediates = [authorities.intermediate];
const chains: readonly ProviderCase[] = [
  {
    name: 'a certificate under a root',
    expect: 'accepted',
    request: { certificate: {} },
    policy: { roots, intermediates },
  },
  { name: 'no certificate where there are roots', expect: 'accepted', policy: { roots, intermediates } },
  {
    name: 'a certificate under another CA of the same name',
    expect: invalid('not under a root'),
    request: { certificate: {} },
    policy: { roots: [authorities.foreign], intermediates },
    calls: 0,
  },
  {
    name: 'a certificate without its intermediate',
    expect: invalid('not under a root'),
    request: { certificate: {} },
    policy: { roots },
  },
  {
    name: 'an expired certificate under a root',
    expect: invalid('expired'),
    request: { certificate: { notAfter: '20260101000001Z' } },
    policy: { roots, intermediates },
  },
  {
    name: 'a certificate that is not valid yet under a root',
    expect: invalid('valid only from'),
    request: { certificate: { notBefore: '20270101000000Z' } },
    policy: { roots, intermediates },
  },
  {
    name: 'a certificate with a damaged signature under a root',
    expect: invalid('not under a root'),
    request: { certificate: damaged() },
    policy: { roots, intermediates },
  },
  {
    name: 'a certificate signed with SHA-1 under a root',
    expect: invalid('algorithm that is not accepted'),
    request: { certificate: { algorithm: '1.2.840.10045.4.1' } },
    policy: { roots, intermediates },
  },
  {
    name: 'a certificate under a root whose key may not sign',
    expect: invalid('the attestation certificate has a key that may not sign (keyUsage)'),
    request: { certificate: { usage: 0x20 } },
    policy: { roots, intermediates },
  },
  {
    name: 'a root of the configuration that cannot be read',
    expect: ['misconfigured', 'a certificate under attestation.gce-vtpm'],
    request: { certificate: {} },
    policy: { roots: [pemBlock('CERTIFICATE', Buffer.from('0500', 'hex'))] },
  },
  {
    name: 'an expired certificate where no CA is trusted: its key is compared',
    expect: 'accepted',
    request: { certificate: { notAfter: '20260101000001Z' } },
  },
];

function damaged(): Buffer {
  const der = attestationCertificate();
  der.writeUInt8(der.readUInt8(der.length - 3) ^ 1, der.length - 3);
  return der;
}

const google: readonly ProviderCase[] = [
  { name: 'a VM that Google does not know', expect: notAllowed('knows no such VM'), vm: 'notFound', calls: 1 },
  {
    name: 'a VM that Google knows no longer',
    expect: notAllowed('knows no such VM'),
    signingKey: 'notFound',
    calls: 2,
  },
  { name: 'another VM id', expect: notAllowed('describes another VM'), vm: { instanceId: '1' }, calls: 1 },
  ...googleVmCases.map((one) => (one.vm?.status === undefined ? one : { ...one, calls: 1 })),
  { name: 'a VM without vTPM', expect: notAllowed('no vTPM'), vm: { vtpm: false } },
  { name: 'a VM without signing key', expect: notAllowed('no signing key'), signingKey: null },
];

const signatures: readonly ProviderCase[] = [
  { name: 'the key of another VM', expect: invalid('did not sign'), request: { signer: keys.other }, calls: 2 },
  { name: 'a VM whose key is another', expect: invalid('did not sign'), signingKey: publicPem(keys.other) },
  {
    name: 'a signature over other bytes',
    expect: invalid('did not sign'),
    request: { signature: (usual) => Buffer.from(usual).fill(0, 100, 120) },
  },
  {
    name: 'a certificate of another VM key, which signed',
    expect: invalid('another key than that of the VM'),
    request: { signer: keys.other, certificate: { key: keys.other } },
  },
  { name: 'a key of 1024 bits', expect: notAllowed('not an RSA key'), signingKey: publicPem(keys.short) },
  {
    name: 'a key that is no DER',
    expect: notAllowed('not an RSA key'),
    signingKey: pemBlock('PUBLIC KEY', Buffer.from('0500', 'hex').subarray(0, 1)),
  },
  {
    name: 'a key that is no key',
    expect: notAllowed('not an RSA key'),
    signingKey: pemBlock('PUBLIC KEY', Buffer.from('0500', 'hex')),
  },
  { name: 'an invalid key', expect: notAllowed('not an RSA key'), signingKey: 'x' },
  {
    name: 'two keys in one answer',
    expect: notAllowed('not an RSA key'),
    signingKey: publicPem(keys.vm) + publicPem(keys.other),
  },
];

const list = { federation: undefined, instances: [pinned], labels: {} } as const;
const lists: readonly ProviderCase[] = [
  { name: 'a VM on the list', expect: 'accepted', policy: list, calls: 0 },
  {
    name: 'a VM on the list, where Google could be asked',
    expect: 'accepted',
    policy: { instances: [pinned] },
    calls: 0,
  },
  { name: 'a VM that is not on the list', expect: notAllowed('not on the list'), policy: { ...list, instances: [] } },
  ...(['project', 'zone', 'id'] as const).map((field) => ({
    name: `a VM on the list with another ${field}`,
    expect: notAllowed('not on the list'),
    policy: { ...list, instances: [{ ...pinned, [field]: '5' }] },
  })),
  {
    name: 'a VM on the list with another name',
    expect: notAllowed('another name than the list'),
    policy: { ...list, instances: [{ ...pinned, name: 'worker-2' }] },
  },
  {
    name: 'a VM on the list with another key',
    expect: invalid('did not sign'),
    policy: { ...list, instances: [{ ...pinned, signingKey: publicPem(keys.other) }] },
  },
];

export const providerCases: readonly ProviderCase[] = [...claims, ...chains, ...google, ...signatures, ...lists];

export interface JudgedVm {
  /** `accepted`, or the code and the messages. */
  readonly outcome: string;
  readonly machine?: Machine;
  /** `describe <id>`, `key <id>` … */
  readonly asked: readonly string[];
}

type ProviderOf = (policy: GceVtpmAttestation, compute: ComputeEndpoint | undefined) => AttestationProvider;

export async function judgeVm(providerOf: ProviderOf, one: ProviderCase): Promise<JudgedVm> {
  const asked: string[] = [];
  const { federation: usual, ...rest } = { ...policy, ...one.policy };
  const federation = one.policy !== undefined && 'federation' in one.policy ? undefined : usual;
  const { signingKey = publicPem(keys.vm) } = one;
  const compute: ComputeEndpoint = {
    describeInstance: ({ projectNumber, zone, instanceId }) => {
      asked.push(`describe ${projectNumber}/${zone}/${instanceId}`);
      return Promise.resolve(one.vm === 'notFound' ? 'notFound' : { ...described, ...one.vm });
    },
    signingKey: ({ projectNumber, zone, instanceId }) => {
      asked.push(`key ${projectNumber}/${zone}/${instanceId}`);
      if (signingKey === 'notFound') return Promise.resolve({ kind: 'notFound' });
      return Promise.resolve(signingKey === null ? { kind: 'noKey' } : { kind: 'key', pem: signingKey });
    },
  };
  const decoded = decodeRequest(Buffer.from(vmRequest(one.request)), 'gce-vtpm');
  if (!decoded.ok) throw new Error(decoded.problem[0].message);
  try {
    const provider = providerOf(
      { ...rest, ...(federation === undefined ? {} : { federation }) },
      federation === undefined ? undefined : compute,
    );
    const examined = await provider.examine({
      version: 'gce-vtpm/v1',
      data: new Uint8Array(),
      request: decoded.value,
      nodeName: one.node ?? vm.name,
      clusterName: 'blue',
      binding: () => '',
      now,
    });
    const answer = examined.ok ? await examined.value.verify() : examined;
    if (answer.ok) return { outcome: 'accepted', machine: answer.value, asked };
    return { outcome: refused(answer.problem), asked };
  } catch (error) {
    const { name, message } = error as Error;
    const kind = { Error: 'temporary', MisconfigurationError: 'misconfigured' }[name] ?? 'crash';
    return { outcome: `${kind}: ${message}`, asked };
  }
}

export function isAsExpected({ expect }: ProviderCase, outcome: string): boolean {
  return hasEndedAs(expect, outcome);
}
