import { describe, expect, test } from 'vitest';
import { controllerIsOn, flagsOf } from '../../../../cli/cluster/controller-manager.ts';
import { goSeconds, tokenFate } from '../../../../cli/cluster/token-rotation.ts';
import type { OwnerFacts } from '../../../../cli/cluster/token-rotation.ts';

describe('the fate of a token', () => {
  const nodeRef = { name: 'n' };
  const ready = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  const machine = { spec: { providerID: 'aws:///a/i-1' }, status: { nodeRef } };
  const going = { metadata: { deletionTimestamp: '2026-06-01T12:00:00Z' } };

  test.each<[string, 'machine' | 'pool', OwnerFacts, string]>([
    ['without a node yet', 'machine', { owner: {}, node: undefined }, 'extend'],
    ['whose node has no provider ID', 'machine', { owner: { status: { nodeRef } }, node: ready }, 'extend'],
    ['whose node does not exist any more', 'machine', { owner: machine, node: undefined }, 'extend'],
    ['whose node was never Ready', 'machine', { owner: machine, node: {} }, 'extend'],
    [
      'whose node is not Ready',
      'machine',
      { owner: machine, node: { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } } },
      'extend',
    ],
    [
      'whose node is something else but Ready',
      'machine',
      { owner: machine, node: { status: { conditions: [{ type: 'MemoryPressure', status: 'True' }] } } },
      'extend',
    ],
    ['whose node is Ready', 'machine', { owner: machine, node: ready }, 'delete'],
    ['that is being deleted', 'machine', { owner: { ...machine, ...going }, node: {} }, 'delete'],
    ['that is gone', 'machine', { owner: undefined, node: undefined }, 'delete'],
    ['that exists', 'pool', { owner: machine, node: ready }, 'extend'],
    ['that is being deleted', 'pool', { owner: going, node: undefined }, 'delete'],
    ['that is gone', 'pool', { owner: undefined, node: undefined }, 'delete'],
  ])('of one %s (%s)', (_, kind, facts, fate) => {
    expect(tokenFate({ kind, namespace: 'default', name: 'x' }, facts).fate).toBe(fate);
  });
});

// v1beta2 shortens nodeRef to the name. The provider ID stays where it was; conditions and addresses are not read.
test.each([
  ['v1beta1', { apiVersion: 'v1', kind: 'Node', name: 'n', uid: '1' }],
  ['v1beta2', { name: 'n' }],
])('a Machine of %s is read', (_, nodeRef) => {
  const owner = { spec: { providerID: 'aws:///a/i-1' }, status: { nodeRef } };
  const node = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  expect(tokenFate({ kind: 'machine', namespace: 'default', name: 'x' }, { owner, node }).fate).toBe('delete');
});

test('durations are Go’s, in whole seconds', () => {
  expect(['24h0m0s', '90m', '1h30m', '45s', '0'].map(goSeconds)).toEqual([86_400, 5_400, 5_400, 45, 0]);
  expect(['', '1d', '30', 'h', '-1h', '1h-30m', '1.5h', '30m1h'].map(goSeconds)).toEqual(
    Array.from({ length: 8 }, () => undefined),
  );
});

describe('--controllers', () => {
  // k8s.io/controller-manager app/helper.go, IsControllerEnabled.
  test.each<[string | undefined, boolean]>([
    [undefined, true],
    ['*', true],
    ['', false],
    ['*,bootstrapsigner,tokencleaner', true],
    ['*,-csrsigning', false],
    ['-csrsigning,*', false],
    ['*,-certificatesigningrequest-signing-controller', false],
    ['csrsigning', true],
    ['bootstrapsigner', false],
    ['*,-csrapproving', true],
    ['*,-csrsigning,csrsigning', false],
    ['csrsigning,-csrsigning', true],
  ])('%j', (flag, on) => {
    expect(controllerIsOn(flag, 'csrsigning')).toBe(on);
  });

  test('is read from either way of writing a flag, the last one of several', () => {
    const words = ['kube-controller-manager', '--controllers', '*', '--leader-elect', '--controllers=a=b'];
    expect(flagsOf(words).get('controllers')).toBe('a=b');
    expect(flagsOf(['--cluster-signing-cert-file', '/x']).get('cluster-signing-cert-file')).toBe('/x');
  });
});
