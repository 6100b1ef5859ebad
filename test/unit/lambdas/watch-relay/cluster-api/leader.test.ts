/** Which relay reads Machines: only one whose configuration demands it, and only the leader. */
import { afterEach, expect, test } from 'vitest';
import { failure } from '../../../../../core/outcome/result.ts';
import type { ApiProblem } from '../../../../../core/ports/kubernetes-api.ts';
import type { SigningEndpoint } from '../../../../../core/ports/signing-endpoint.ts';
import { createRelay } from '../../../../../lambdas/watch-relay/relay.ts';
import type { SignerPolicy } from '../../../../../lambdas/watch-relay/settings/options.ts';
import { createVirtualClock } from '../../../../harness/determinism/virtual-time.ts';
import { mulberry32 } from '../../../../harness/determinism/mulberry32.ts';
import { makeRequest } from '../../../../harness/x509/requests.ts';
import { key, object, recordingLog } from '../fixtures.ts';
import { createSimulatedApi } from '../simulated-api.ts';
import { createSimulatedEndpoint } from '../simulated-endpoint.ts';
import { createSimulatedLease } from '../simulated-lease.ts';
import { clusterObject, createSimulatedSource, machine } from './simulated-source.ts';

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
const policy: SignerPolicy = {
  approval: 'approve',
  kind: 'kube-apiserver-client-kubelet',
  attestation: { providers: ['aws'], required: true, mode: 'enforce', subjectAccessReview: false },
};

function setUp({ enabled }: { enabled: boolean }) {
  const clock = createVirtualClock();
  const requests = createSimulatedApi({ clock });
  const endpoint = createSimulatedEndpoint({
    clock,
    attest: () => ({ kind: 'verdict', verdict: { decision: 'ignore', reason: 'UnknownSigner' } }),
  });
  const contexts: unknown[] = [];
  const attesting: SigningEndpoint = {
    ...endpoint.endpoint,
    attest: (sent, context, signal) => {
      contexts.push(context);
      return endpoint.endpoint.attest(sent, context, signal);
    },
  };
  const machines = createSimulatedSource();
  const clusters = createSimulatedSource();
  const [pools, nodes] = [createSimulatedSource(), createSimulatedSource()];
  machines.put(machine('i-1', { status: { nodeRef: { name: 'n1' } } }));
  clusters.put(clusterObject());
  const absent = async () => failure<ApiProblem>({ why: 'NotFound', message: '' });
  const leases = createSimulatedLease(clock);
  const relay = createRelay(
    {
      signerNames: [signerName],
      policies: new Map([[signerName, policy]]),
      concurrency: 4,
      inFlightPerRequester: 4,
      graceMilliseconds: 1_000,
      identity: 'relay-0',
      ...(enabled ? { clusterApi: { reference: { cluster: 'prod', namespace: 'default' }, hints: true } } : {}),
    },
    {
      api: requests.api,
      endpoint: attesting,
      clock,
      random: mulberry32(1),
      log: recordingLog().log,
      lease: leases.access(),
      clusterApi: {
        management: {
          machines: () => machines.source,
          machinePools: () => pools.source,
          cluster: () => clusters.source,
          infraClusters: { find: absent, get: absent, applyStatus: absent, annotate: absent },
        },
        nodes: { metadata: nodes.source, get: absent },
        attest: { look: async () => ({ kind: 'accepted' }) },
      },
    },
  );
  const { pem } = makeRequest({ key, subject: { O: 'system:nodes', CN: 'system:node:n1' } });
  const made = object('r', { signer: signerName, conditions: [] });
  requests.create({ ...made, spec: { ...made.spec, request: Buffer.from(pem).toString('base64') } });
  const stop = new AbortController();
  stops.push(stop);
  const sources = { machines, clusters, pools, nodes };
  const open = () => Object.values(sources).map((source) => source.watching());
  const lists = () => Object.values(sources).map((source) => source.lists());
  return { clock, relay, leases, stop, contexts, open, lists };
}

test('the leader watches and tells attest; a standby replica and one that has stopped do neither', async () => {
  const { clock, relay, leases, stop, contexts, open, lists } = setUp({ enabled: true });
  const held = leases
    .access()
    .create({ holderIdentity: 'other', leaseDurationSeconds: 15 }, new AbortController().signal);
  await clock.advance(10);
  await held;
  let ended = false;
  void relay.run(stop.signal).then(() => (ended = true));
  await clock.advance(5_000);
  expect(lists()).toEqual([0, 0, 0, 0]);
  expect(relay.health.problems()).toEqual([]);
  await clock.until(() => contexts.length === 1);
  expect(contexts).toMatchObject([{ clusterApi: { machines: [{ name: 'i-1' }], cluster: { deleting: false } } }]);
  await clock.advance(1_000);
  expect(open()).toEqual([1, 1, 1, 1]);
  expect(relay.health.problems()).toEqual([]);
  stop.abort();
  await clock.until(() => ended);
  expect(open()).toEqual([0, 0, 0, 0]);
  expect(await relay.metrics.exposition()).not.toMatch(/mirror_objects\{/);
});

test('without machines: clusterApi nothing is read, and attest is told that the caller did not look', async () => {
  const { clock, relay, stop, contexts, lists } = setUp({ enabled: false });
  void relay.run(stop.signal);
  await clock.until(() => contexts.length === 1);
  expect(contexts).toEqual([undefined]);
  expect(lists()).toEqual([0, 0, 0, 0]);
});
