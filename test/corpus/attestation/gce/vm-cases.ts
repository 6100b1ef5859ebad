/** What the policy and the Compute API say about the VM that a token names. */
import { googleVmCases } from '../google-vm-cases.ts';
import type { Case } from './judge.ts';
import * as world from './machine.ts';

const notAllowed = (check: string) => ['IdentityNotAllowed', check] as const;
const { vm } = world;

const projects: readonly Case[] = [
  {
    name: 'a VM of a project that may not join',
    expect: notAllowed('VMs of project number 4242 may not join'),
    engine: { project_number: 4242 },
    calls: 0,
  },
  {
    name: 'a project number with the id of another project',
    expect: notAllowed('the token names project "other"'),
    engine: { project_id: 'other' },
    calls: 0,
  },
  {
    name: 'a project in a domain',
    expect: 'accepted',
    engine: { project_id: 'example.com:my-nodes' },
    policy: { projects: { [vm.projectNumber]: 'example.com:my-nodes' } },
    machine: { providerId: 'gce://example.com:my-nodes/europe-west3-b/worker-1', dnsNames: [] },
  },
];

const google: readonly Case[] = [
  {
    name: 'a VM as Google describes it',
    expect: 'accepted',
    machine: {
      identity: world.identity,
      providerId: 'gce://my-nodes/europe-west3-b/worker-1',
      nodeNames: ['worker-1'],
      addresses: ['10.156.0.7', '2600:1900:40e0:9c:0:7::', '203.0.113.9'],
      dnsNames: ['worker-1.europe-west3-b.c.my-nodes.internal', 'worker-1.c.my-nodes.internal'],
    },
  },
  { name: 'a VM that Google does not know', expect: notAllowed('knows no such VM'), vm: 'notFound', calls: 2 },
  { name: 'another instance id', expect: notAllowed('describes another VM'), vm: { instanceId: '1' } },
  ...googleVmCases,
  {
    name: 'another service account than the token has: Compute decides',
    expect: notAllowed('no service account that may join'),
    policy: { serviceAccounts: ['x@y.gserviceaccount.com'] },
    claims: { email: 'x@y.gserviceaccount.com' },
  },
];

const names: readonly Case[] = [
  {
    name: 'a template of all parts',
    expect: 'accepted',
    policy: { nodeName: [{ kind: 'template', template: '{name}.{zone}.c.{project}.internal' }] },
    machine: { nodeNames: ['worker-1.europe-west3-b.c.my-nodes.internal'] },
  },
  {
    name: 'a pattern and a template',
    expect: 'accepted',
    policy: {
      nodeName: [
        { kind: 'pattern', pattern: 'pool-*' },
        { kind: 'template', template: 'x-{name}' },
      ],
    },
    machine: { nodeNames: ['pool-*', 'x-worker-1'] },
  },
  {
    name: 'a template whose text is no node name',
    expect: 'accepted',
    engine: { project_id: 'example.com:my-nodes' },
    policy: {
      projects: { [vm.projectNumber]: 'example.com:my-nodes' },
      nodeName: [{ kind: 'template', template: '{name}.{project}' }],
    },
    machine: { nodeNames: [] },
  },
];

export const vmCases = { projects, google, names };
