import { expect, test } from 'vitest';
import { failure, success } from '../../../../../core/outcome/result.ts';
import type { ApiProblem, ApiRefusal, JsonObject } from '../../../../../core/ports/kubernetes-api.ts';
import type { InfraClusters } from '../../../../../adapters/kubernetes/cluster-api.ts';
import { nameSigners } from '../../../../../lambdas/watch-relay/cluster-api/infra-cluster.ts';
import type { NamedSigners } from '../../../../../lambdas/watch-relay/cluster-api/infra-cluster.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';
import { mulberry32 } from '../../../../harness/determinism/mulberry32.ts';
import { recordingLog } from '../fixtures.ts';

const both = { client: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws', serving: 'kubernetes.io/kubelet-serving' };
const insecure = { client: 'cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure' };
const annotation = (kind: 'client' | 'serving') => `cluster.x-k8s.io/kubelet-${kind}-certificate-signer`;

interface World {
  readonly signers?: NamedSigners;
  /** What the definition does with the fields of the status. */
  readonly status?: 'kept' | 'dropped' | ApiRefusal;
  readonly object?: JsonObject | ApiRefusal;
  readonly annotations?: JsonObject;
}

async function run({ signers = both, status = 'dropped', object = {}, annotations = {} }: World, rounds = 1) {
  const clock = createVirtualClock();
  const refusal = (why: ApiRefusal) => failure<ApiProblem>({ why, message: why });
  let stored: JsonObject = { metadata: { name: 'prod-infra', uid: 'u1', annotations }, status: { ready: true } };
  const writes: JsonObject[] = [];
  const objects: InfraClusters = {
    find: async (group, kind) => success({ group, version: 'v1beta2', kind, plural: 'awsclusters' }),
    get: async () => (typeof object === 'string' ? refusal(object) : success({ ...stored, ...object })),
    async applyStatus(_resource, { uid }, fields) {
      writes.push({ status: fields, uid });
      if (status !== 'kept' && status !== 'dropped') return refusal(status);
      if (status === 'kept') stored = { ...stored, status: { ...(stored['status'] as JsonObject), ...fields } };
      return success(stored);
    },
    async annotate(_resource, { uid }, fields) {
      writes.push({ annotations: fields, uid });
      const metadata = stored['metadata'] as JsonObject;
      const merged = { ...(metadata['annotations'] as JsonObject), ...fields };
      stored = { ...stored, metadata: { ...metadata, annotations: merged } };
      return success(stored);
    },
  };
  const counts: string[] = [];
  let alarms = 0;
  const { log, lines } = recordingLog();
  const stop = new AbortController();
  const ended = nameSigners(
    signers,
    'default',
    () => ({ group: 'infrastructure.cluster.x-k8s.io', kind: 'AWSCluster', name: 'prod-infra' }),
    {
      objects,
      clock,
      random: mulberry32(1),
      log,
      count: (result) => void counts.push(result),
      alarmed: () => void (alarms += 1),
    },
    stop.signal,
  );
  await clock.until(() => counts.length === rounds);
  stop.abort();
  await clock.advance(1);
  await ended;
  return { writes, counts, lines, alarms };
}

test('a definition with the fields: written to the status once, and only there', async () => {
  const { writes, counts } = await run({ status: 'kept' }, 3);
  expect(counts).toEqual(['status', 'unchanged', 'unchanged']);
  expect(writes).toEqual([
    {
      uid: 'u1',
      status: { kubeletClientCertificateSigner: both.client, kubeletServingCertificateSigner: both.serving },
    },
  ]);
});

test.each<NonNullable<World['status']>>(['dropped', 'Invalid', 'NotFound'])(
  'a status that does not come back (%s) is tried once: annotations, and a write counts only once',
  async (status) => {
    const { writes, counts } = await run({ status }, 3);
    expect(counts).toEqual(['annotations', 'unchanged', 'unchanged']);
    expect(writes).toEqual([
      {
        uid: 'u1',
        status: { kubeletClientCertificateSigner: both.client, kubeletServingCertificateSigner: both.serving },
      },
      { uid: 'u1', annotations: { [annotation('client')]: both.client, [annotation('serving')]: both.serving } },
    ]);
  },
);

test('an insecure provider names its own signer, and no serving signer: an old one is removed', async () => {
  const old = { [annotation('serving')]: both.serving };
  const { writes } = await run({ signers: insecure, annotations: old });
  expect(writes).toEqual([
    { uid: 'u1', status: { kubeletClientCertificateSigner: insecure.client } },
    { uid: 'u1', annotations: { [annotation('client')]: insecure.client, [annotation('serving')]: null } },
  ]);
});

test('a missing right is an alarm from the third round on; an InfraCluster that does not exist is none', async () => {
  const forbidden = await run({ status: 'Forbidden' }, 4);
  expect(forbidden.counts).toEqual(['failed', 'failed', 'failed', 'failed']);
  expect(forbidden.alarms).toBe(2);
  expect(forbidden.lines.map(({ level }) => level)).toEqual(['warn', 'warn', 'error', 'error']);
  const missing = await run({ object: 'NotFound' }, 4);
  expect(missing.counts).toEqual(['missing', 'missing', 'missing', 'missing']);
  expect([missing.alarms, missing.lines]).toEqual([0, []]);
});
