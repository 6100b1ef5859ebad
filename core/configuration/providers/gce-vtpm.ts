/** The keys of `attestation.gce-vtpm` in countersign.yaml, and what they mean (docs/attestation/gce-vtpm.md). */
import { z } from 'zod';
import { decodePem } from '../../encoding/pem.ts';
import { isHostName, parseAddress } from '../../policy/patterns.ts';
import { decodeSpki } from '../../x509/public-key.ts';
import type { Place } from '../fields/place.ts';
import { matching } from '../fields/values.ts';
import { checkAnchors } from './anchors.ts';
import {
  googleFederation,
  googleLabels,
  googleNumber,
  googleProjects,
  googleServiceAccounts,
  resolveFederation,
} from './google-keys.ts';
import type { GoogleFederation } from './google-keys.ts';

/** https://cloud.google.com/compute/docs/naming-resources */
const label = (what: string) => matching(/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/, `must be the name of a ${what}`);

const certificates = z.array(z.string().max(16_384)).max(256).default([]);

const instance = z.strictObject({
  project: googleNumber('a project').exactOptional().describe('Number of the project, in quotes. Required.'),
  zone: label('zone').exactOptional().describe('Zone of the VM. Required.'),
  id: googleNumber('an instance').exactOptional().describe('Instance id, in quotes. Required.'),
  name: label('VM').exactOptional().describe('Name of the VM, which is the name of its node. Required.'),
  signingKey: z
    .string()
    .max(4_096)
    .exactOptional()
    .describe(
      'The key with which its vTPM signs: `signingKey.ekPub` of its Shielded Instance Identity (PEM). Required.',
    ),
  addresses: z
    .array(z.string().max(64))
    .max(64)
    .default([])
    .describe('Addresses that a serving certificate of the node may hold.'),
  dnsNames: z
    .array(z.string().max(253))
    .max(64)
    .default([])
    .describe('DNS names that a serving certificate may hold besides the name of the node. In lower case.'),
});

export const gceVtpmKeys = z.strictObject({
  projects: googleProjects,
  federation: googleFederation
    .exactOptional()
    .describe(
      'How the attest function logs in to Google, which then describes each VM. Default: only the VMs of `instances` may join.',
    ),
  labels: googleLabels(
    'A project alone admits every Shielded VM in it, so with `federation` one of `labels`, `serviceAccounts` and `machines: listed` is required.',
  ),
  serviceAccounts: googleServiceAccounts,
  machines: z
    .enum(['any', 'listed'])
    .default('any')
    .describe(
      '`listed`: only VMs that `countersign machines allow` names, as `gce-vtpm#<project number>/<zone>/<instance id>`.',
    ),
  instances: z
    .array(instance)
    .max(1_024)
    .default([])
    .describe('VMs whose signing keys the operator vouches for. Google is not asked about them.'),
  roots: certificates.describe(
    'Root certificates (PEM) under which an attestation certificate must be, where a request has one. Without roots its key must be that of the VM, and who issued it does not matter.',
  ),
  intermediates: certificates.describe(
    'Intermediate CA certificates (PEM) between attestation certificates and `roots`.',
  ),
  newKeys: z
    .enum(['refused', 'attested'])
    .default('refused')
    .describe(
      'Whether a VM on record may come with another key. `refused`: only after `countersign tofu reset`, because a request proves no time. `attested`: if its vTPM certified the key later than the last one, by the clock of the vTPM. gke-exec-auth-plugin makes a new key every ten days.',
    ),
});

type Input = z.infer<typeof gceVtpmKeys>;

/** The keys of `attestation.gce-vtpm`, described in the schema. */
export interface GceVtpmAttestation extends Readonly<Omit<Input, 'federation' | 'instances'>> {
  /** Absent: Google is not asked, and only `instances` may join. */
  readonly federation?: GoogleFederation;
  readonly instances: readonly PinnedVm[];
}

export type PinnedVm = Readonly<Required<z.infer<typeof instance>>>;

/** `at`: the key `gce-vtpm` under `attestation`. */
export function resolveGceVtpm(input: Input, at: Place): GceVtpmAttestation {
  const { federation: login, instances, ...rest } = input;
  if (Object.keys(input.projects).length === 0) at('projects').error('is required and must name a project');
  if (login === undefined && instances.length === 0)
    at.error('no VM may join: name federation, so that Google describes VMs, or name instances');
  checkCriteria(input, at);
  checkAnchors(input, at);
  const federation = login === undefined ? undefined : resolveFederation(login, at('federation'));
  return {
    ...rest,
    ...(federation === undefined ? {} : { federation }),
    instances: instances.map((vm, index) => resolveInstance(vm, input, at('instances', index))),
  };
}

/** A project alone would admit every VM in it with a vTPM. `instances` are named one by one. */
function checkCriteria({ federation: login, labels, serviceAccounts, machines }: Input, at: Place): void {
  const named = Object.keys(labels).length + serviceAccounts.length;
  if (login === undefined && named > 0)
    at.error('labels and serviceAccounts are of VMs that Google describes: name federation');
  if (login !== undefined && named === 0 && machines === 'any')
    at.error('a project alone admits every Shielded VM in it: name labels, serviceAccounts or machines: listed too');
}

function resolveInstance(vm: z.infer<typeof instance>, { projects, instances }: Input, at: Place): PinnedVm {
  const { project = '', zone = '', id = '', name = '', signingKey = '', addresses, dnsNames } = vm;
  for (const [key, value] of Object.entries({ project, zone, id, name, signingKey }))
    if (value === '') at(key).error('is required');
  if (project !== '' && projects[project] === undefined) at('project').error('is not among projects');
  if (id !== '' && instances.find((other) => other.id === id) !== vm) at('id').error('is that of a VM before it');
  if (signingKey !== '' && !isSigningKey(signingKey))
    at('signingKey').error('is not one PEM block PUBLIC KEY with an RSA key of 2048 bits or more');
  addresses.forEach((address, index) => {
    if (parseAddress(address) === undefined) at('addresses', index).error('is not an address');
  });
  dnsNames.forEach((dns, index) => {
    if (!isHostName(dns) || dns !== dns.toLowerCase()) at('dnsNames', index).error('is not a DNS name in lower case');
  });
  return { project, zone, id, name, signingKey, addresses, dnsNames };
}

function isSigningKey(pem: string): boolean {
  const blocks = decodePem(Buffer.from(pem), ['PUBLIC KEY']);
  const [block] = blocks.ok ? blocks.value : [];
  // As the provider reads it.
  const key = block === undefined ? undefined : decodeSpki(block.content);
  return key?.ok === true && key.value.family === 'RSA' && key.value.publicKey.bits >= 2_048;
}
