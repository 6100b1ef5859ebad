/** What Google says about a VM: may it join, does it run, and which names and addresses belong to it? */
import { violation } from '../../outcome/outcome.ts';
import type { Violation } from '../../outcome/outcome.ts';
import { quoted } from '../../outcome/printable-text.ts';
import { canonicalAddress } from '../../policy/patterns.ts';
import type { Machine, MachineState } from '../evidence/provider.ts';
import type { VmDescription } from './compute.ts';
import type { VmPlace } from './place.ts';

/** What the configuration of each provider demands. */
export interface VmPolicy {
  /** Project ids by project number. */
  readonly projects: Readonly<Record<string, string>>;
  /** `*`: any value. */
  readonly labels: Readonly<Record<string, string>>;
  /** Mail addresses, one of which the VM must run as; empty: any. */
  readonly serviceAccounts: readonly string[];
}

/** Why the operator's policy does not admit the VM; empty if it does. */
export function checkVm(policy: VmPolicy, place: VmPlace, vm: VmDescription): readonly Violation[] {
  // The instance was asked for by its id, so another one is an error of Google's or of a proxy.
  if (vm.instanceId !== place.instanceId || vm.zone !== place.zone)
    return [refusal('Google describes another VM than was asked for')];
  const violations: Violation[] = [];
  for (const [key, value] of Object.entries(policy.labels))
    if (!hasLabel(vm, key, value)) violations.push(refusal(`the VM lacks the label ${quoted(key)} that is required`));
  if (
    policy.serviceAccounts.length > 0 &&
    !vm.serviceAccounts.some((account) => policy.serviceAccounts.includes(account))
  )
    violations.push(refusal('the VM runs as no service account that may join'));
  return violations;
}

function hasLabel({ labels }: VmDescription, key: string, value: string): boolean {
  return value === '*' ? labels.has(key) : labels.get(key) === value;
}

/** Throws while the VM is being started: it runs before Google says so. The client tries again. */
export function checkRuns({ status, instanceId }: VmDescription): Violation | undefined {
  switch (status) {
    case 'RUNNING':
      return undefined;
    case 'PROVISIONING':
    case 'STAGING':
      throw new Error(`Google does not yet know VM ${instanceId} as running`);
    default:
      return refusal('the VM is not running');
  }
}

/** `running`: the machine, and why the policy would not admit it today. Throws while the VM is being started. */
export function stateOf(
  vm: VmDescription | 'notFound',
  running: (vm: VmDescription) => Omit<Extract<MachineState, { kind: 'running' }>, 'kind'>,
): MachineState {
  if (vm === 'notFound') return { kind: 'unknown' };
  // TERMINATED too: such a VM can be started again. A VM that is gone is not found.
  return checkRuns(vm) === undefined ? { kind: 'running', ...running(vm) } : { kind: 'stopped' };
}

/** What belongs to a VM with this name. `projectId`: that of its project. */
export function belongings(
  projectId: string,
  { zone }: Pick<VmPlace, 'zone'>,
  { name, addresses }: Pick<VmDescription, 'name' | 'addresses'>,
): Pick<Machine, 'providerId' | 'addresses' | 'dnsNames'> {
  return {
    providerId: providerIdOf(projectId, zone, name),
    // Google writes IPv6 addresses in full, requests are compared in the short form.
    addresses: [...new Set(addresses.flatMap((address) => canonicalAddress(address) ?? []))],
    dnsNames: internalNames(projectId, zone, name),
  };
}

/** As Google's cloud provider for Kubernetes writes it. */
export function providerIdOf(projectId: string, zone: string, name: string): string {
  return `gce://${projectId}/${zone}/${name}`;
}

/**
 * https://cloud.google.com/compute/docs/internal-dns: the zonal and the global name. Names of a project in a domain
 * (`example.com:my-project`) have another form, which is not used.
 */
export function internalNames(projectId: string, zone: string, name: string): readonly string[] {
  if (!/^[a-z0-9-]+$/.test(projectId)) return [];
  return [`${name}.${zone}.c.${projectId}.internal`, `${name}.c.${projectId}.internal`];
}

function refusal(message: string): Violation {
  return violation('IdentityNotAllowed', message);
}
