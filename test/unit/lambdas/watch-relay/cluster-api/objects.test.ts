import { expect, test } from 'vitest';
import {
  clusterRecord,
  machinePoolRecord,
  machineRecord,
} from '../../../../../lambdas/watch-relay/cluster-api/objects.ts';
import { clusterObject, machine, machinePool } from './simulated-source.ts';

test('of a Machine the relay keeps what attest is told', () => {
  const addresses = [
    { type: 'Hostname', address: 'ip-10-0-0-7' },
    { type: 'InternalIP', address: '10.0.0.7' },
  ];
  expect(machineRecord(machine('i-1', { status: { addresses, nodeInfo: { kernelVersion: '6' } } }))).toEqual({
    kind: 'Machine',
    namespace: 'default',
    name: 'i-1',
    clusterName: 'prod',
    providerIds: ['aws:///eu-central-1a/i-1'],
    nodeName: 'node-i-1',
    bootstrapReady: true,
    deleting: false,
    addresses: ['ip-10-0-0-7', '10.0.0.7'],
  });
});

test.each<[string, object, boolean]>([
  ['v1beta2: the condition', { conditions: [{ type: 'BootstrapConfigReady', status: 'True' }] }, true],
  [
    'a condition that is False counts more than the fallback',
    {
      conditions: [{ type: 'BootstrapConfigReady', status: 'False' }],
      initialization: { bootstrapDataSecretCreated: true },
    },
    false,
  ],
  [
    'an unknown condition: the fallback',
    {
      conditions: [{ type: 'BootstrapConfigReady', status: 'Unknown' }],
      initialization: { bootstrapDataSecretCreated: true },
    },
    true,
  ],
  ['no condition: the fallback', { initialization: { bootstrapDataSecretCreated: true } }, true],
  ['v1beta1: its condition', { conditions: [{ type: 'BootstrapReady', status: 'True' }] }, true],
  ['v1beta1: its fallback', { bootstrapReady: true }, true],
  [
    'v1beta1 with the conditions of v1beta2',
    {
      v1beta2: { conditions: [{ type: 'BootstrapConfigReady', status: 'False' }] },
      conditions: [{ type: 'BootstrapReady', status: 'True' }],
    },
    false,
  ],
  ['another condition', { conditions: [{ type: 'Ready', status: 'True' }] }, false],
  ['a status of another form', { conditions: 'True', initialization: { bootstrapDataSecretCreated: 'true' } }, false],
  ['no status', {}, false],
])('bootstrap data, %s', (_, status, ready) => {
  const { status: _old, ...rest } = machine('i-1');
  expect(machineRecord({ ...rest, status }).bootstrapReady).toBe(ready);
  expect(machinePoolRecord({ ...rest, status }).bootstrapReady).toBe(ready);
});

test('fields of another form count as absent', () => {
  const odd = { metadata: { name: 'm', namespace: 'n' }, spec: { clusterName: 7, providerID: '' }, status: [] };
  const absent = {
    namespace: 'n',
    name: 'm',
    clusterName: '',
    providerIds: [],
    bootstrapReady: false,
    deleting: false,
  };
  expect(machineRecord(odd)).toEqual({ kind: 'Machine', ...absent });
  expect(machinePoolRecord({ ...odd, spec: { providerIDList: 'x' } })).toEqual({ kind: 'MachinePool', ...absent });
  expect(machinePoolRecord(machinePool('p', ['a', 'a', '', 'b'])).providerIds).toEqual(['a', 'b']);
  expect(machineRecord(machine('m', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })).deleting).toBe(true);
});

const infrastructure = { group: 'infrastructure.cluster.x-k8s.io', kind: 'AWSCluster', name: 'prod-infra' };

test.each<[string, Parameters<typeof clusterObject>[0], object]>([
  ['nothing set', {}, {}],
  [
    'annotations',
    {
      annotations: {
        'cluster.x-k8s.io/kubelet-authentication': 'true',
        'cluster.x-k8s.io/authorized-attestors': 'aws, tpm,',
      },
    },
    { kubeletAuthentication: true, authorizedAttestors: ['aws', 'tpm'] },
  ],
  [
    'the fields of the proposal come before annotations',
    {
      spec: { infrastructureRef: undefined, security: { kubeletAuthentication: false, authorizedAttestors: ['gce'] } },
      annotations: { 'cluster.x-k8s.io/kubelet-authentication': 'true' },
    },
    { kubeletAuthentication: false, authorizedAttestors: ['gce'], infrastructure: undefined },
  ],
  [
    'a misspelled value permits nothing',
    {
      annotations: { 'cluster.x-k8s.io/kubelet-authentication': 'yes', 'cluster.x-k8s.io/authorized-attestors': '' },
    },
    { kubeletAuthentication: false, authorizedAttestors: [] },
  ],
  ['deletion', { deletionTimestamp: '2026-01-01T00:00:00Z' }, { deleting: true }],
  [
    'v1beta1 names the InfraCluster with a version',
    {
      spec: {
        infrastructureRef: {
          apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
          kind: 'AWSCluster',
          name: 'prod-infra',
        },
      },
    },
    {},
  ],
])('of the Cluster object: %s', (_, given, expected) => {
  expect({ infrastructure: undefined, ...clusterRecord(clusterObject(given)) }).toEqual({
    deleting: false,
    infrastructure,
    ...expected,
  });
});
