/**
 * Two signers answer the same requests, by a mistake or while one takes over from the other. The API server keeps the first
 * certificate; the signer that comes second must take that for an end, and not for an error that it repeats.
 */
import { X509Certificate } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { derivedKey, makeAuthority } from '../../../corpus/authority.ts';
import {
  KUBE_CONTROLLER_MANAGER_USER,
  startKubeControllerManager,
} from '../../../harness/kubernetes/controller-manager.ts';
import { startDevServer, startRelay } from '../../../harness/stack/stack.ts';
import type { DevServer, Relay } from '../../../harness/stack/stack.ts';
import { approve, certificatePemOf, createClientRequests, settled } from '../../../harness/stack/requests.ts';
import type { InstalledRelay } from './installed-relay.ts';

/** Enough that both win some of them. */
const count = 80;

export function twoSigners(installed: () => InstalledRelay): void {
  let plane: InstalledRelay['plane'];
  let identity: InstalledRelay['identity'];
  let first: DevServer;
  let second: DevServer;
  const running: { stop(): Promise<void> }[] = [];

  beforeAll(async () => {
    ({ plane, identity } = installed());
    [first, second] = await Promise.all([startDevServer(), startDevServer()]);
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((one) => one.stop()));
  });
  afterAll(async () => {
    await Promise.all([first?.stop(), second?.stop()]);
  });

  async function relayTo(server: DevServer): Promise<Relay> {
    const relay = await startRelay({ kubeconfig: identity.kubeconfig(), endpoint: server.url });
    running.push(relay);
    return relay;
  }

  /** Approves new requests while both signers watch. Gives how many certificates are of each CA. */
  async function race(prefix: string, users: readonly string[], ...cas: readonly string[]): Promise<readonly number[]> {
    const burst = await createClientRequests(plane, prefix, count);
    const names = burst.map(({ name }) => name);
    await approve(plane, ...names);
    const issued = [...(await settled(plane, names)).values()].map(
      (object) => new X509Certificate(certificatePemOf(object)),
    );
    expect(issued).toHaveLength(count);

    const writes = (code: number): number =>
      users
        .flatMap((user) => plane.auditEvents({ user }))
        .filter(
          ({ verb, objectRef, responseStatus }) =>
            verb === 'update' &&
            objectRef?.subresource === 'status' &&
            names.includes(objectRef.name ?? '') &&
            responseStatus?.code === code,
        ).length;
    // Each object was written once, whatever both tried.
    await expect.poll(() => writes(200)).toBe(count);
    // The race took place: some writes came second. The API server answers by resourceVersion or by its validation.
    await expect.poll(() => writes(409) + writes(422)).toBeGreaterThan(0);
    return cas.map((ca) => issued.filter((leaf) => leaf.verify(new X509Certificate(ca).publicKey)).length);
  }

  async function isAtRest(relay: Relay): Promise<void> {
    await expect.poll(async () => (await relay.metric('queue_depth')) + (await relay.metric('in_flight'))).toBe(0);
    // It took part. What the other signer answered before this one began never enters its count.
    expect(await relay.metric('requests_total')).toBeGreaterThan(0);
    expect(relay.logged('request tried again: needs attention')).toEqual([]);
  }

  test('two relays with a CA each: the first certificate stays, and both come to rest', async () => {
    const relays = [await relayTo(first), await relayTo(second)];
    const shares = await race('relays', [identity.user], await first.caPem(), await second.caPem());
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(count);
    for (const relay of relays) await isAtRest(relay);
  });

  test('a relay beside kube-controller-manager: the same', async () => {
    const authority = makeAuthority({
      key: derivedKey('P-256', 'in-tree'),
      subject: { CN: 'in-tree ca' },
      notBefore: new Date(Date.now() - 3_600_000),
      notAfter: new Date(Date.now() + 864_000_000),
      subjectKeyIdentifier: true,
    });
    const relay = await relayTo(first);
    running.push(
      await startKubeControllerManager({
        controlPlane: plane,
        controllers: ['csrsigning'],
        signingCertPem: authority.certificatePem,
        signingKeyPem: authority.keyPem,
        qps: 2_000,
        burst: 4_000,
      }),
    );
    const users = [identity.user, KUBE_CONTROLLER_MANAGER_USER];
    const shares = await race('in-tree', users, await first.caPem(), authority.certificatePem);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(count);
    await isAtRest(relay);
  });
}
