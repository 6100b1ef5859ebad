import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../../harness/kubernetes/audit-log.ts';
import { startControlPlane, type ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { startProxy, type Proxy } from '../../../harness/stack/proxy.ts';
import { installRelay, startRelay, type Relay, type RelayIdentity } from '../../../harness/stack/stack.ts';
import { approve, createClientRequests, eventually, settled } from '../../../harness/stack/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { startTestEndpoint, type TestEndpoint } from '../relay/endpoint.ts';
import { callsOf } from './budget.ts';
import { begunAgain, difference, requestsOf, slowWatches, tally, verbOf, type Counts } from './counted-world.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

const quietSeconds = 30;
/** A leader renews 2 s after the last time and no sooner, a standby looks after 2 to 4.4 s (leader.ts). */
const leaseSeconds = 2;
const signers = 3;
/** Short enough to see several ends; the last bookmark comes 2 s before each. */
const shortWatchSeconds = 4;

/** What a relay asks an API server for to know what there is to do: how seldom is as much part of it as how often. */
describe.skipIf(skip)('calls to know of requests', () => {
  let plane: ControlPlane;
  let identity: RelayIdentity;
  let endpoint: TestEndpoint;
  let proxy: Proxy;
  const relays: Relay[] = [];

  beforeAll(async () => {
    endpoint = await startTestEndpoint();
    plane = await startControlPlane();
    identity = await installRelay(plane);
    proxy = await startProxy({ url: plane.url, caPem: plane.servingCaPem });
  });
  afterAll(async () => {
    await Promise.all(relays.map((relay) => relay.stop()));
    await proxy?.close();
    await plane?.stop();
    endpoint?.close();
  });

  async function start(...args: readonly string[]): Promise<Relay> {
    const relay = await startRelay({ kubeconfig: identity.kubeconfig(proxy), endpoint: endpoint.url, args });
    relays.push(relay);
    return relay;
  }
  const stopAll = async () => void (await Promise.all(relays.splice(0).map((relay) => relay.stop())));
  const requests = (): readonly AuditEvent[] => requestsOf(plane, identity.user);
  /** Leases included. */
  const counted = (): Counts => tally(requests().map((event) => `API server: ${verbOf(event)}`));
  test(`${quietSeconds} s without requests: a leader renews its Lease, a standby looks at it, and that is all`, async () => {
    const elected = ['--leader-elect', '--lease-namespace', identity.namespace];
    const leader = await start(...elected);
    await eventually(async () => (await leader.metric('leader')) === 1, 'it leads');
    await start(...elected);
    await eventually(() => (counted()['API server: watch certificatesigningrequests'] ?? 0) === signers, 'it watches');
    const from = performance.now();
    const [before, slowBefore] = [counted(), await slowWatches(plane)];
    await sleep(quietSeconds * 1_000);
    const {
      'API server: update leases': renewed,
      'API server: get leases': looked,
      ...others
    } = difference(counted(), before);
    // A busy machine sleeps longer.
    const mostLeaseCalls = (performance.now() - from) / 1_000 / leaseSeconds + 1;
    expect(difference(others, begunAgain((await slowWatches(plane)) - slowBefore))).toEqual({});
    for (const calls of [renewed, looked]) {
      expect(calls).toBeGreaterThan(0);
      expect(calls).toBeLessThanOrEqual(mostLeaseCalls);
    }
    await stopAll();
  });

  test('while watches live: one list each, no read of any request, whatever happens to requests', async () => {
    const [before, slowBefore] = [counted(), await slowWatches(plane)];
    await start();
    const burst = await createClientRequests(plane, 'seen', 30);
    await approve(plane, ...burst.slice(0, 20).map(({ name }) => name));
    const names = burst.map(({ name }) => name);
    await settled(plane, names.slice(0, 20));
    await plane.kubectl(['annotate', 'csr', ...names.slice(10, 30), 'touched=yes']);
    await plane.kubectl(['certificate', 'deny', ...names.slice(20, 25)]);
    await plane.kubectl(['delete', 'csr', ...names.slice(5, 15), ...names.slice(22, 28)]);
    await settled(plane, names.slice(15, 20));
    await sleep(1_000);
    const slow = (await slowWatches(plane)) - slowBefore;
    expect(difference(difference(counted(), before), begunAgain(slow))).toEqual({
      ...callsOf(['start', signers]),
      'API server: update certificatesigningrequests/status': 20,
    });
    await stopAll();
  });

  test('watches that the server ends go on from the last bookmark, without a list', async () => {
    proxy.intervene = ({ query }) => {
      if (query.has('watch')) query.set('timeoutSeconds', String(shortWatchSeconds));
      return 'pass';
    };
    const [before, seen] = [counted(), requests().length];
    await start();
    // Pending, so nothing is done about it; the watches of other signers do not even see it.
    await createClientRequests(plane, 'pending', 1);
    const rounds = 3;
    const watches = (): readonly AuditEvent[] =>
      requests()
        .slice(seen)
        .filter(({ verb }) => verb === 'watch');
    await eventually(() => watches().length >= signers * rounds, `${rounds} watches of each signer`);
    const begun = watches().length;
    const { 'API server: watch certificatesigningrequests': all, ...others } = difference(counted(), before);
    expect(all).toBeGreaterThanOrEqual(begun);
    expect(others).toEqual({ 'API server: list certificatesigningrequests': signers });

    const revisions = new Map<string, number[]>();
    for (const { requestURI } of watches()) {
      const { searchParams } = new URL(requestURI, plane.url);
      const signer = searchParams.get('fieldSelector') ?? '';
      revisions.set(signer, [...(revisions.get(signer) ?? []), Number(searchParams.get('resourceVersion'))]);
    }
    expect(revisions.size).toBe(signers);
    // Of two of them no request has changed: only bookmarks can have told.
    for (const [first = 0, ...later] of revisions.values()) expect(later.at(-1)).toBeGreaterThan(first);
    proxy.intervene = () => 'pass';
  });

  test('a server that does not know where a watch was: one list of each signer, and no more', async () => {
    const relay = relays[0]!;
    const [before, seen] = [await relay.metric('watch_restarts_total', 'reason="expired"'), requests().length];
    // A new process knows nothing of the revisions before it, and this makes one that no watch has heard of.
    await plane.kubectl(['create', 'configmap', 'newer']);
    await plane.killApiServer();
    await plane.restartApiServer();
    const expired = async () => (await relay.metric('watch_restarts_total', 'reason="expired"')) - before;
    await eventually(async () => (await expired()) === signers, 'each watch has expired');
    const after = await createClientRequests(plane, 'after', 3);
    await approve(plane, ...after.map(({ name }) => name));
    await settled(
      plane,
      after.map(({ name }) => name),
    );
    // An API server that has just started refuses every client until it has read its roles. A refused client tries again
    // after a pause, which may be longer than all the rest takes.
    const answered = (): readonly AuditEvent[] =>
      requests()
        .slice(seen)
        .filter(({ objectRef, responseStatus }) => objectRef?.resource !== 'leases' && responseStatus?.code !== 403);
    const lists = () => answered().filter(({ verb }) => verb === 'list');
    await eventually(() => lists().length >= signers, 'a list of each signer');
    await sleep(1_000);
    const counts = tally(answered().map((event) => `API server: ${verbOf(event)}`));
    expect(difference(counts, begunAgain(await slowWatches(plane)))).toEqual({
      ...callsOf(['expired', signers]),
      'API server: update certificatesigningrequests/status': 3,
    });
    expect(await expired()).toBe(signers);
  });
});
