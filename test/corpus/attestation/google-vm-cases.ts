/** What the Compute API may say about a VM of Google, and what the policy of each provider for such VMs makes of it. */
import type { VmDescription } from '../../../core/attestation/google/compute.ts';
import type { GceAttestation } from '../../../core/configuration/providers/gce.ts';
import type { Expected } from './expected.ts';

interface VmCase {
  readonly name: string;
  readonly expect: Expected;
  readonly policy?: Partial<Pick<GceAttestation, 'labels' | 'serviceAccounts'>>;
  readonly vm?: Partial<VmDescription>;
}

const notAllowed = (check: string) => ['IdentityNotAllowed', check] as const;

/** For a policy that demands the label `role: node`. */
export const googleVmCases: readonly VmCase[] = [
  { name: 'another zone', expect: notAllowed('describes another VM'), vm: { zone: 'europe-west3-c' } },
  { name: 'another name', expect: notAllowed('another name than the VM'), vm: { name: 'worker-2' } },
  ...['STOPPING', 'SUSPENDING', 'SUSPENDED', 'REPAIRING', 'TERMINATED', 'PENDING_STOP', ''].map((status) => ({
    name: `a VM in state ${status}`,
    expect: notAllowed('the VM is not running'),
    vm: { status },
  })),
  ...['PROVISIONING', 'STAGING'].map((status) => ({
    name: `a VM in state ${status}`,
    expect: ['temporary', 'does not yet know VM'] as const,
    vm: { status },
  })),
  { name: 'a VM without the label', expect: notAllowed('lacks the label'), vm: { labels: new Map() } },
  {
    name: 'a VM with another value of the label',
    expect: notAllowed('lacks the label'),
    vm: { labels: new Map([['role', 'x']]) },
  },
  { name: 'a label of any value', expect: 'accepted', policy: { labels: { role: '*' } } },
  {
    name: 'a label of any value, absent',
    expect: notAllowed('lacks the label'),
    policy: { labels: { role: '*' } },
    vm: { labels: new Map() },
  },
  {
    name: 'one of the service accounts',
    expect: 'accepted',
    policy: { serviceAccounts: ['x@y.gserviceaccount.com', 'other@my-nodes.iam.gserviceaccount.com'] },
  },
  {
    name: 'another service account',
    expect: notAllowed('no service account that may join'),
    policy: { serviceAccounts: ['x@y.gserviceaccount.com'] },
  },
];
