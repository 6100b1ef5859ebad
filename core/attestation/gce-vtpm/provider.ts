/**
 * The provider for Shielded VMs of Google Compute Engine whose nodes send the requests of gke-exec-auth-plugin
 * (docs/attestation/gce-vtpm.md). The vTPM of the VM certified the requested key. Google, or the operator's list, says which key the
 * vTPM of that VM signs with, and describes the VM. Checks without a call to Google come first.
 */
import type { KeyObject } from 'node:crypto';
import type { GceVtpmAttestation, PinnedVm } from '../../configuration/providers/gce-vtpm.ts';
import { sha256 } from '../../encoding/digest.ts';
import { violated, violation } from '../../outcome/outcome.ts';
import type { Violation, Violations } from '../../outcome/outcome.ts';
import { quoted } from '../../outcome/printable-text.ts';
import { failure, success } from '../../outcome/result.ts';
import type { Result } from '../../outcome/result.ts';
import type { AttestationProvider, Device, Evidence, Examined, Machine, MachineState } from '../evidence/provider.ts';
import type { ComputeEndpoint, VmDescription } from '../google/compute.ts';
import { identityOf, placeOf } from '../google/place.ts';
import type { VmPlace } from '../google/place.ts';
import { belongings, checkRuns, checkVm, stateOf } from '../google/vm.ts';
import type { ClockInfo } from '../tpm/structures/attest.ts';
import { readVmEvidence } from './blocks.ts';
import type { VmEvidence } from './blocks.ts';
import type { ChainCheck } from './certificate-chain.ts';
import { signingKeyIn } from './signing-key.ts';
import type { VmIdentity } from './vm-identity.ts';

interface Google {
  readonly policy: GceVtpmAttestation;
  /** Absent: only the VMs of the operator's list may join. */
  readonly compute: ComputeEndpoint | undefined;
  readonly checkChain: ChainCheck | undefined;
}

/** `compute`: required if the policy names a federation. */
export function gceVtpmProvider(policy: GceVtpmAttestation, compute: ComputeEndpoint | undefined): AttestationProvider {
  const google: Google = { policy, compute, checkChain: chainCheckOf(policy) };
  return {
    name: 'gce-vtpm',
    versions: ['gce-vtpm/v1'],
    secure: true,
    // The clock of the vTPM then keeps an attacker from the keys that it certified before (device.ts).
    ...(policy.newKeys === 'attested' ? { provesHardware: true } : {}),
    examine: (evidence) => examine(google, evidence),
    describe: (identity) => describe(google, identity),
  };
}

async function examine(google: Google, { request, nodeName, now }: Evidence): Promise<Result<Examined, Violations>> {
  const read = readVmEvidence(request);
  if (!read.ok) return failure([read.problem]);
  const { vm, certificate } = read.value;
  // Nothing signs VM IDENTITY. The project is checked before any call: a requester can name a project of their own, whose VMs,
  // keys and answers are theirs.
  const outsider = checkClaims(google.policy, vm, nodeName);
  if (outsider !== undefined) return failure([outsider]);
  const untrusted = certificate === undefined ? undefined : await google.checkChain?.(certificate.der, now);
  if (untrusted !== undefined) return invalid(untrusted);
  return success({
    identity: identityOf('gce-vtpm', vm),
    once: [],
    machines: google.policy.machines === 'listed' ? [identityOf('gce-vtpm', vm)] : [],
    verify: () => verifyVm(google, read.value),
  });
}

function checkClaims({ projects }: GceVtpmAttestation, vm: VmIdentity, nodeName: string): Violation | undefined {
  const projectId = projects[vm.projectNumber];
  if (projectId === undefined)
    return violation('IdentityNotAllowed', `VMs of project number ${vm.projectNumber} may not join`);
  if (projectId !== vm.projectId)
    return violation('IdentityNotAllowed', `VM IDENTITY names another project than number ${vm.projectNumber}`);
  if (vm.name !== nodeName)
    return violation('IdentityNotAllowed', `VM IDENTITY names another VM than node ${quoted(nodeName)}`);
  return undefined;
}

function pinnedVm(
  { instances }: GceVtpmAttestation,
  { projectNumber, zone, instanceId }: VmPlace,
): PinnedVm | undefined {
  return instances.find((vm) => vm.project === projectNumber && vm.zone === zone && vm.id === instanceId);
}

/** `undefined`: the operator names no roots. The library that verifies chains is loaded with the first certificate. */
function chainCheckOf(policy: GceVtpmAttestation): ChainCheck | undefined {
  if (policy.roots.length === 0) return undefined;
  let loaded: Promise<ChainCheck> | undefined;
  return async (der, now) => {
    loaded ??= import('./certificate-chain.ts').then(({ chainCheck }) => chainCheck(policy));
    return (await loaded)(der, now);
  };
}

async function verifyVm(google: Google, evidence: VmEvidence): Promise<Result<Machine, Violations>> {
  const { vm } = evidence;
  const pinned = pinnedVm(google.policy, vm);
  if (pinned !== undefined) {
    if (pinned.name !== vm.name) return notAllowed('VM IDENTITY has another name than the list of VMs');
    return checkSignature(google.policy, evidence, pinned.signingKey, pinned);
  }
  if (google.compute === undefined)
    return notAllowed('this VM is not on the list of VMs (attestation.gce-vtpm.instances)');
  // The description first: a VM that does not exist has no key, and one that may not join costs no second call.
  const described = await google.compute.describeInstance(vm);
  if (described === 'notFound') return notAllowed('Google knows no such VM');
  const unfit = checkDescribed(google.policy, vm, described);
  if (unfit !== undefined) return failure(unfit);
  const answer = await google.compute.signingKey(vm);
  switch (answer.kind) {
    case 'notFound':
      return notAllowed('Google knows no such VM');
    case 'noKey':
      return notAllowed('the vTPM of this VM has no signing key: it is not a Shielded VM');
    case 'key':
      return checkSignature(google.policy, evidence, answer.pem, described);
  }
}

function checkDescribed(policy: GceVtpmAttestation, vm: VmIdentity, described: VmDescription): Violations | undefined {
  const stopped = checkRuns(described);
  if (stopped !== undefined) return [stopped];
  const [first, ...more] = violationsOf(policy, vm, described);
  if (first !== undefined) return [first, ...more];
  if (described.name !== vm.name) return [violation('IdentityNotAllowed', 'VM IDENTITY has another name than the VM')];
  return undefined;
}

function violationsOf(policy: GceVtpmAttestation, place: VmPlace, vm: VmDescription): readonly Violation[] {
  const violations = checkVm(policy, place, vm);
  return vm.vtpm ? violations : [...violations, violation('IdentityNotAllowed', 'the VM has no vTPM')];
}

function machineOf({ projects }: GceVtpmAttestation, place: VmPlace, vm: VmDescription | PinnedVm): Machine {
  return {
    identity: identityOf('gce-vtpm', place),
    mayOmitProviderId: true,
    nodeNames: [vm.name],
    ...belongings(projects[place.projectNumber] ?? '', place, vm),
    ...('dnsNames' in vm ? { dnsNames: vm.dnsNames } : {}),
  };
}

/** The machine, if its vTPM signed. `pem`: the key with which the vTPM of this VM signs. */
function checkSignature(
  policy: GceVtpmAttestation,
  { vm, clock, certificate, isSignedBy }: VmEvidence,
  pem: string,
  described: VmDescription | PinnedVm,
): Result<Machine, Violations> {
  const key = signingKeyIn(pem);
  if (key === undefined) return notAllowed('the signing key of the VM is not an RSA key of 2048 bits or more');
  if (certificate !== undefined && !certificate.key.equals(key))
    return invalid('the attestation certificate is for another key than that of the VM');
  if (!isSignedBy(key)) return invalid('the vTPM of this VM did not sign the attestation');
  const machine = machineOf(policy, vm, described);
  // Where keys never change, an earlier clock proves nothing wrong, and a vTPM that forgot its clock must not stop a node.
  return success(policy.newKeys === 'refused' ? machine : { ...machine, device: deviceOf(key, clock) });
}

/** Google, or the operator, says whose key it is: no challenge is needed. */
function deviceOf(key: KeyObject, { resetCount, clock }: ClockInfo): Device {
  const akName = sha256(key.export({ type: 'spki', format: 'der' })).toString('hex');
  return {
    state: { akName, resetCount, clock },
    activated: true,
    challenge: () => Promise.reject(new Error('a vTPM of Google needs no challenge')),
  };
}

async function describe({ policy, compute }: Google, identity: string): Promise<MachineState> {
  const place = placeOf('gce-vtpm', identity);
  // A project that is not configured any more is not asked. Its VMs may still run, so they keep their names.
  if (place === undefined || policy.projects[place.projectNumber] === undefined) return { kind: 'stopped' };
  const pinned = pinnedVm(policy, place);
  if (pinned !== undefined) return { kind: 'running', machine: machineOf(policy, place, pinned), violations: [] };
  if (compute === undefined) return { kind: 'stopped' };
  return stateOf(await compute.describeInstance(place), (vm) => ({
    machine: machineOf(policy, place, vm),
    violations: violationsOf(policy, place, vm),
  }));
}

function invalid(message: string): Result<never, Violations> {
  return violated('AttestationInvalid', message);
}

function notAllowed(message: string): Result<never, Violations> {
  return violated('IdentityNotAllowed', message);
}
