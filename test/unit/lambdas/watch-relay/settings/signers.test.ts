import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { defaultCluster } from '../../../../../core/configuration/parse.ts';
import type { Profile } from '../../../../../core/policy/profile.ts';
import { namedSigners } from '../../../../../lambdas/watch-relay/cluster-api/named-signers.ts';
import { signersFromFile, signersFromFlags } from '../../../../../lambdas/watch-relay/settings/signers.ts';

const file = 'examples/attestation.yaml';
const text = readFileSync(resolve(import.meta.dirname, '../../../../..', file), 'utf8');

test('of countersign.yaml the relay takes who the signers are, who approves, and what is attested', () => {
  const read = signersFromFile(text, file, 'prod');
  if (!read.ok) throw new Error(read.problem);
  expect(read.value.signerNames.toSorted()).toEqual([
    'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws',
    'kubernetes.io/kubelet-serving',
  ]);
  expect(read.value.inFlightPerRequester).toBe(24);
  const attestation = { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false };
  expect(Object.fromEntries(read.value.policies)).toEqual({
    'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws': {
      approval: 'approve',
      kind: 'kube-apiserver-client-kubelet',
      attestation,
    },
    'kubernetes.io/kubelet-serving': { approval: 'approve', kind: 'kubelet-serving', attestation },
  });
});

test('an approval that is not configured is manual', () => {
  const read = signersFromFile(text, file, 'legacy');
  if (!read.ok) throw new Error(read.problem);
  expect([...read.value.policies.values()].map(({ approval }) => approval)).toEqual(['manual', 'manual']);
});

test('the limit is that of the file', () => {
  const read = signersFromFile(text.replace('inFlightPerRequester: 24', 'inFlightPerRequester: 3'), file, 'prod');
  expect(read).toMatchObject({ value: { inFlightPerRequester: 3 } });
});

test('another cluster, or a file that is wrong, is said with its place', () => {
  expect(signersFromFile(text, file, 'staging')).toEqual({
    ok: false,
    problem: 'examples/attestation.yaml has no cluster staging (it has prod, legacy)',
  });
  expect(signersFromFile('version: 1\nclusters: { prod: { approvals: {} } }\n', 'c.yaml', 'prod')).toEqual({
    ok: false,
    problem: expect.stringMatching(/^c\.yaml:2:\d+: clusters\.prod\.approvals unknown key "approvals"/) as unknown,
  });
});

test('flags alone leave every decision to another approver', () => {
  expect(signersFromFlags(['a.example.com/b'], 3)).toEqual({
    signerNames: ['a.example.com/b'],
    policies: new Map(),
    inFlightPerRequester: 3,
  });
});

const withMachines = (more = '') =>
  text.replace(
    '    attestation:\n      # audience',
    `    attestation:\n      machines: clusterApi\n${more}      # audience`,
  );

test('with machines: clusterApi it takes the Cluster object, whether attest takes hints, and the signers of nodes', () => {
  expect(signersFromFile(text, file, 'prod')).not.toHaveProperty('value.clusterApi');
  expect(signersFromFile(withMachines(), file, 'prod')).toHaveProperty('value.clusterApi', {
    reference: { cluster: 'prod', namespace: 'default' },
    hints: true,
    signers: { client: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws', serving: 'kubernetes.io/kubelet-serving' },
  });
  const more = '      retireTerminated: false\n      clusterApi: { cluster: prod-eu, namespace: fleet }\n';
  expect(signersFromFile(withMachines(more), file, 'prod')).toHaveProperty('value.clusterApi', {
    reference: { cluster: 'prod-eu', namespace: 'fleet' },
    hints: false,
    signers: expect.anything() as unknown,
  });
});

test('the signers for the InfraCluster: a secure one before an insecure one, which has no serving signer', () => {
  const profiles = [...defaultCluster('c').profiles.values()];
  const profile = (signerName: string, kind: Profile['kind'], providers?: readonly string[]): Profile => ({
    ...profiles[0]!,
    signerName,
    kind,
    ...(providers === undefined
      ? {}
      : { attestation: { providers, required: true, mode: 'enforce', subjectAccessReview: false } }),
  });
  const insecure = profile('a/insecure', 'kube-apiserver-client-kubelet', ['insecure']);
  const aws = profile('a/aws', 'kube-apiserver-client-kubelet', ['aws']);
  const serving = profile('a/serving', 'kubelet-serving', ['aws']);
  expect(namedSigners([insecure, aws, serving])).toEqual({ client: 'a/aws', serving: 'a/serving' });
  expect(namedSigners([insecure, serving])).toEqual({ client: 'a/insecure' });
  expect(namedSigners([aws, profile('a/s', 'kubelet-serving')])).toEqual({ client: 'a/aws' });
  expect(namedSigners([profile('a/c', 'kube-apiserver-client-kubelet'), serving])).toBeUndefined();
});
