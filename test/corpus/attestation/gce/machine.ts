/** A VM with its identity token, Google's keys, what the Compute API says, and the policy: the one good request that the cases change. */
import { bindingDigest } from '../../../../core/attestation/evidence/binding-digest.ts';
import type { VmDescription } from '../../../../core/attestation/google/compute.ts';
import type { GceAttestation } from '../../../../core/configuration/providers/gce.ts';
import { createGoogleKey, jwkOf } from '../../../harness/fake-google/identity-token.ts';

export const now = Date.UTC(2026, 10, 22, 12);
export const minute = 60_000;

export const vm = {
  zone: 'europe-west3-b',
  // More than a JavaScript number can hold.
  id: '7318206418127403211',
  name: 'worker-1',
  projectNumber: '424242424242',
  projectId: 'my-nodes',
} as const;
export const identity = `gce#${vm.projectNumber}/${vm.zone}/${vm.id}`;

const requestKey = Buffer.alloc(91, 7);
export const binding = (nonce: string, more: { readonly nodeName?: string; readonly audience?: string } = {}): string =>
  bindingDigest({
    audience: '111122223333/eu-central-1/blue',
    signerName: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-gce',
    nodeName: vm.name,
    nonce,
    spki: requestKey,
    ...more,
  });
export const nonce = 'MDEyMzQ1Njc4OWFiY2RlZg';
/** By the documentation, and not by the product's own code. */
export const audience = (of = binding(nonce)): string => `csr-attest/gce/v1/${of}`;

/** Two keys of Google's, one of an attacker, one that is too short. */
export const keys = {
  google: createGoogleKey('google-1'),
  next: createGoogleKey('google-2'),
  attacker: createGoogleKey('google-1'),
  unknown: createGoogleKey('attacker'),
  short: createGoogleKey('short', 1024),
};
export const keySet = { keys: [jwkOf(keys.google), jwkOf(keys.next), jwkOf(keys.short)] };

export const policy: GceAttestation = {
  projects: { [vm.projectNumber]: vm.projectId },
  federation: {
    provider: '//iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/pool/providers/countersign',
  },
  labels: { role: 'node' },
  serviceAccounts: [],
  machines: 'any',
  nodeName: [{ kind: 'template', template: '{name}' }],
};

export const described: VmDescription = {
  instanceId: vm.id,
  name: vm.name,
  zone: vm.zone,
  status: 'RUNNING',
  vtpm: false,
  labels: new Map([['role', 'node']]),
  serviceAccounts: ['nodes@my-nodes.iam.gserviceaccount.com', 'other@my-nodes.iam.gserviceaccount.com'],
  addresses: ['10.156.0.7', '2600:1900:40e0:9c:0:7:0:0', '203.0.113.9', '10.156.0.7', 'not an address'],
};
