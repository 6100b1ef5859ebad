import { afterEach, describe, expect, test } from 'vitest';
import { failure, success } from '../../../../../core/outcome/result.ts';
import type { ApiProblem, JsonObject } from '../../../../../core/ports/kubernetes-api.ts';
import type { CertificateRequest } from '../../../../../core/x509/model.ts';
import { createHealth } from '../../../../../lambdas/watch-relay/observe/health.ts';
import { createRelayMetrics } from '../../../../../lambdas/watch-relay/observe/metrics.ts';
import { observedSource } from '../../../../../lambdas/watch-relay/observe/observed.ts';
import { createClusterApiSession, mirroredResources } from '../../../../../lambdas/watch-relay/cluster-api/session.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';
import { mulberry32 } from '../../../../harness/determinism/mulberry32.ts';
import { recordingLog } from '../fixtures.ts';
import { clusterObject, createSimulatedSource, machine, machinePool } from './simulated-source.ts';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const never = new AbortController().signal;
const from = (providerId: string) => ({ providerId, subject: { commonName: '' } }) as unknown as CertificateRequest;
const ofNode = (name: string) => ({ subject: { commonName: `system:node:${name}` } }) as unknown as CertificateRequest;
const provider = (name: string) => `aws:///eu-central-1a/${name}`;

function setUp({ hints = true }: { hints?: boolean } = {}) {
  const clock = createVirtualClock();
  const api = {
    machines: createSimulatedSource(),
    machinepools: createSimulatedSource(),
    clusters: createSimulatedSource(),
    nodes: createSimulatedSource(),
  };
  const nodeProviderIds = new Map<string, string>();
  const hinted: string[] = [];
  const health = createHealth([...mirroredResources], () => clock.monotonic());
  const metrics = createRelayMetrics();
  const { log, lines } = recordingLog();
  health.role('working');
  const absent = async () => failure<ApiProblem>({ why: 'NotFound', message: '' });
  const session = createClusterApiSession(
    { reference: { cluster: 'prod', namespace: 'default' }, hints },
    {
      management: {
        machines: () => api.machines.source,
        machinePools: () => api.machinepools.source,
        cluster: () => api.clusters.source,
        infraClusters: { find: absent, get: absent, applyStatus: absent, annotate: absent },
      },
      nodes: {
        metadata: api.nodes.source,
        async get(name) {
          const providerID = nodeProviderIds.get(name);
          if (providerID === 'forbidden') return failure({ why: 'Forbidden', message: 'no' });
          return providerID === undefined ? absent() : success<JsonObject>({ spec: { providerID } });
        },
      },
      attest: {
        async look(nodeNames) {
          hinted.push(...nodeNames);
          return { kind: 'accepted' };
        },
      },
      clock,
      random: mulberry32(3),
      log,
      metrics,
      health,
      observed: (resource, source) => observedSource(resource, source, health, metrics),
    },
  );
  const stop = new AbortController();
  const beat = (): void => {
    for (const source of Object.values(api)) source.bookmark();
    clock.after(60_000, beat);
  };
  function start(): void {
    const ended = session.run(stop.signal);
    clock.after(60_000, beat);
    stops.push(async () => {
      stop.abort();
      await clock.advance(1);
      await ended;
    });
  }
  const found = async (request: CertificateRequest) => {
    const answer = await session.lookup(request, never);
    if (!answer.ok) throw new Error(`${answer.problem.why}: ${answer.problem.message}`);
    return answer.value;
  };
  const names = async (request: CertificateRequest) => (await found(request)).machines.map(({ name }) => name);
  return { clock, api, nodeProviderIds, hinted, health, metrics, lines, session, start, found, names };
}

test('what the management cluster has is found by provider ID, with the Cluster object', async () => {
  const { clock, api, start, found } = setUp();
  api.machines.put(machine('i-1'));
  api.machines.put(machine('i-2'));
  api.machinepools.put(machinePool('pool', [provider('i-9')]));
  api.clusters.put(clusterObject({ annotations: { 'cluster.x-k8s.io/authorized-attestors': 'aws' } }));
  start();
  await clock.advance(100);
  const common = { namespace: 'default', clusterName: 'prod', bootstrapReady: true, deleting: false };
  const cluster = { deleting: false, authorizedAttestors: ['aws'] };
  expect(await found(from(provider('i-1')))).toEqual({
    machines: [{ kind: 'Machine', ...common, name: 'i-1', providerId: provider('i-1'), nodeName: 'node-i-1' }],
    cluster,
  });
  expect(await found(from(provider('i-9')))).toEqual({
    machines: [{ kind: 'MachinePool', ...common, name: 'pool', providerId: provider('i-9') }],
    cluster,
  });
  expect(await found(from(provider('i-3')))).toEqual({ machines: [], cluster });
  // Changes.
  api.machines.put(machine('i-1', { spec: { providerID: provider('i-3') } }));
  api.machinepools.put(machinePool('pool', []));
  api.clusters.remove('prod');
  await clock.advance(100);
  expect(await found(from(provider('i-1')))).toEqual({ machines: [] });
  expect((await found(from(provider('i-3')))).machines).toHaveLength(1);
  expect((await found(from(provider('i-9')))).machines).toEqual([]);
});

test('two objects with one provider ID are both found; a pool whose member is a Machine counts as this Machine', async () => {
  const { clock, api, start, names } = setUp();
  const same = { providerID: provider('i-1') };
  api.machines.put(machine('i-1'));
  api.machinepools.put(machinePool('pool', [provider('i-1')]));
  start();
  await clock.advance(100);
  expect(await names(from(provider('i-1')))).toEqual(['i-1']);
  api.machines.put(machine('other', { spec: { ...same, clusterName: 'staging' } }));
  await clock.advance(100);
  expect(await names(from(provider('i-1')))).toEqual(['i-1', 'other']);
  api.machines.remove('other');
  api.machinepools.put(machinePool('pool', [provider('i-1')], { clusterName: 'staging' }));
  await clock.advance(100);
  expect(await names(from(provider('i-1')))).toEqual(['i-1', 'pool']);
  for (let i = 0; i < 20; i += 1) api.machines.put(machine(`copy-${i}`, { spec: same }));
  await clock.advance(100);
  expect(await names(from(provider('i-1')))).toHaveLength(8);
});

describe('a request without a provider ID', () => {
  test('is looked up by the provider ID of its Node, and by nodeRef', async () => {
    const { clock, api, start, names, nodeProviderIds } = setUp();
    api.machines.put(machine('i-1', { status: { nodeRef: { name: 'worker' } } }));
    api.machinepools.put(machinePool('pool', [provider('i-9')]));
    start();
    await clock.advance(100);
    expect(await names(ofNode('worker'))).toEqual(['i-1']);
    nodeProviderIds.set('worker', provider('i-1'));
    expect(await names(ofNode('worker'))).toEqual(['i-1']);
    nodeProviderIds.set('pooled', provider('i-9'));
    expect(await names(ofNode('pooled'))).toEqual(['pool']);
    nodeProviderIds.set('worker', provider('i-9'));
    expect(await names(ofNode('worker'))).toEqual(['i-1', 'pool']);
    expect(await names(ofNode('unknown'))).toEqual([]);
    expect(await names({ subject: { commonName: 'alice' } } as unknown as CertificateRequest)).toEqual([]);
  });

  test('waits if the Node may not be read', async () => {
    const { clock, start, session, nodeProviderIds } = setUp();
    start();
    await clock.advance(100);
    nodeProviderIds.set('worker', 'forbidden');
    expect(await session.lookup(ofNode('worker'), never)).toMatchObject({ ok: false, problem: { why: 'Forbidden' } });
  });
});

describe('never an answer from an incomplete copy', () => {
  test.each(['machines', 'machinepools', 'clusters'] as const)('%s not listed yet', async (resource) => {
    const { clock, api, start, session, health, found } = setUp();
    api.machines.put(machine('i-1'));
    api[resource].refuse('Forbidden');
    start();
    await clock.advance(10_000);
    expect(await session.lookup(from(provider('i-1')), never)).toEqual({
      ok: false,
      problem: { why: 'NotRead', message: `the relay has no current copy of ${resource}` },
    });
    expect(health.problems()).toEqual([`not authorized: list ${resource}`, `not yet listed: ${resource}`]);
    api[resource].refuse(undefined);
    await clock.advance(60_000);
    expect((await found(from(provider('i-1')))).machines).toHaveLength(1);
    expect(health.problems()).toEqual([]);
  });

  test('MachinePools that are not served do not exist; Machines that are not served are waited for', async () => {
    const { clock, api, start, session, found, health } = setUp();
    api.machines.put(machine('i-1'));
    api.machinepools.refuse('NotFound');
    start();
    await clock.advance(1_000);
    expect((await found(from(provider('i-1')))).machines).toHaveLength(1);
    expect(health.problems()).toEqual([]);
    api.machinepools.refuse(undefined);
    api.machinepools.put(machinePool('pool', [provider('i-9')]));
    await clock.advance(60_000);
    expect((await found(from(provider('i-9')))).machines).toHaveLength(1);

    const second = setUp();
    second.api.machines.refuse('NotFound');
    second.start();
    await second.clock.advance(60_000);
    expect(await second.session.lookup(from(provider('i-1')), never)).toMatchObject({ problem: { why: 'NotRead' } });
    expect(session).toBeDefined();
  });

  test('an API server that was not heard for five minutes', async () => {
    const { clock, api, start, session, found, metrics } = setUp();
    api.machines.put(machine('i-1'));
    start();
    await clock.advance(1_200_000); // bookmarks keep it current
    expect((await found(from(provider('i-1')))).machines).toHaveLength(1);
    api.machines.refuse('Forbidden');
    api.machines.loseHistory();
    await clock.advance(240_000);
    expect((await found(from(provider('i-1')))).machines).toHaveLength(1);
    await clock.advance(120_000);
    expect(await session.lookup(from(provider('i-1')), never)).toMatchObject({ problem: { why: 'NotRead' } });
    const age = /mirror_age_seconds\{resource="machines"\} (\d+)/.exec(await metrics.exposition())?.[1];
    expect(Number(age)).toBeGreaterThan(300);
    api.machines.refuse(undefined);
    await clock.advance(60_000);
    expect((await found(from(provider('i-1')))).machines).toHaveLength(1);
  });

  test('after lost history the next list removes what was deleted meanwhile', async () => {
    const { clock, api, start, names, metrics, hinted } = setUp();
    for (let i = 0; i < 250; i += 1) api.machines.put(machine(`i-${i}`));
    start();
    await clock.advance(100);
    expect(await metrics.exposition()).toContain('mirror_objects{resource="machines"} 250');
    api.machines.loseHistory();
    api.machines.remove('i-7');
    api.machines.put(machine('i-300'));
    await clock.advance(60_000);
    expect(await names(from(provider('i-7')))).toEqual([]);
    expect(await names(from(provider('i-300')))).toEqual(['i-300']);
    expect(await metrics.exposition()).toContain('mirror_objects{resource="machines"} 250');
    expect(await metrics.exposition()).toContain('mirror_lists_total{resource="machines"} 2');
    expect(hinted).toEqual(['node-i-7']);
  });
});

describe('hints', () => {
  const deletion = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } };

  test('a Machine that begins to go and is gone, and a Node that is gone; of this Cluster only', async () => {
    const { clock, api, start, hinted } = setUp();
    api.machines.put(machine('i-1'));
    api.machines.put(machine('i-2', { spec: { clusterName: 'staging' } }));
    api.machines.put(machine('i-3', { status: { nodeRef: undefined } }));
    api.machines.put(machine('i-4', deletion)); // seen as going at the start: the schedule looks
    api.nodes.put({ metadata: { name: 'worker' } });
    start();
    await clock.advance(5_000);
    expect(hinted).toEqual([]);
    api.machines.put(machine('i-1', deletion));
    await clock.advance(5_000);
    expect(hinted).toEqual(['node-i-1']);
    api.machines.put(machine('i-1', deletion));
    await clock.advance(5_000);
    expect(hinted).toEqual(['node-i-1']);
    for (const name of ['i-1', 'i-2', 'i-3']) api.machines.remove(name);
    api.nodes.remove('worker');
    await clock.advance(5_000);
    expect(hinted).toEqual(['node-i-1', 'node-i-1', 'worker']);
  });

  test('none if attest takes none', async () => {
    const { clock, api, start, hinted } = setUp({ hints: false });
    api.nodes.put({ metadata: { name: 'worker' } });
    start();
    await clock.advance(1_000);
    api.nodes.remove('worker');
    await clock.advance(10_000);
    expect(hinted).toEqual([]);
  });
});

test('ten thousand Machines and Nodes are read in pages of 100', async () => {
  const { clock, api, start, names } = setUp();
  for (let i = 0; i < 10_000; i += 1) {
    api.machines.put(machine(`i-${i}`));
    api.nodes.put({ metadata: { name: `node-${i}` } });
  }
  start();
  await clock.advance(1_000);
  expect(await names(from(provider('i-9999')))).toEqual(['i-9999']);
  expect(api.machines.lists()).toBe(100);
});
