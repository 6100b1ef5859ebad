import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import {
  ledgerOf,
  refuseToComplete,
  shortenLease,
  startRelay,
  type DevServer,
  type Relay,
  type RelayIdentity,
} from '../../../harness/stack/stack.ts';
import type { Decision, Proxy } from '../../../harness/stack/proxy.ts';
import {
  approve,
  createClientRequests,
  createRequest,
  eventually,
  readRequests,
  settled,
  type Posted,
} from '../../../harness/stack/requests.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { requireTools } from '../../../tools/tools.ts';
import { expectEnds as expectEndsOf, signerArgs, startProxiedStack, type ProxiedStack } from './proxied-stack.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

describe.skipIf(skip)('an outage', () => {
  let stack: ProxiedStack | undefined;
  let signer: DevServer;
  let plane: ControlPlane;
  let identity: RelayIdentity;
  let relay: Relay;
  let toSigner: Proxy;
  let toApi: Proxy;
  let folder: ReturnType<typeof temporaryFolder>;
  /** Written by the key itself: each TBS it signed. */
  let countFile: string;
  const everything = new Map<string, Posted>();

  beforeAll(async () => {
    folder = temporaryFolder('signatures');
    countFile = join(folder.path, 'signed');
    // Without the watch cache a compaction makes every earlier revision 410 Gone at once. Far fewer at once than a burst
    // has, so that an outage in the middle of one is in the middle.
    stack = await startProxiedStack({ concurrency: 8, countFile, watchCache: false });
    ({ signer, plane, identity, relay, toSigner, toApi } = stack);
  });
  afterEach(() => stack?.pass());
  afterAll(async () => {
    await stack?.stop();
    folder?.remove();
  });

  /** A burst to be issued, with some among them to be refused. */
  async function createBurst(prefix: string, count: number): Promise<Posted[]> {
    const refusable = Array.from({ length: Math.ceil(count / 10) }, (_, i) =>
      createRequest(plane.admin, {
        name: `${prefix}-refused-${i}`,
        signer: 'kube-apiserver-client',
        request: { subject: { CN: `${prefix}-refused-${i}` } },
        usages: ['server auth'],
      }),
    );
    const burst = [...(await createClientRequests(plane, prefix, count)), ...(await Promise.all(refusable))];
    for (const posted of burst) everything.set(posted.name, posted);
    return burst;
  }

  /** Every one ends as it should. */
  async function expectEnds(burst: readonly Posted[]): Promise<void> {
    const names = burst.map(({ name }) => name);
    const ends = await settled(plane, names);
    const objects = names.map((name) => ends.get(name)!);
    const [refused, issued] = [true, false].map((to) =>
      objects.filter(({ metadata }) => metadata.name.includes('refused') === to),
    );
    // No name was given to another object: what is in the cluster now is what was posted.
    expect(objects.map(({ metadata }) => metadata.uid)).toEqual(burst.map(({ uid }) => uid));
    await expectEndsOf(signer, { issued: issued!, refused: refused! });
  }

  const issuedOf = async (burst: readonly Posted[]): Promise<number> => {
    const names = new Set(burst.map(({ name }) => name));
    return (await readRequests(plane)).filter(({ metadata, status }) => names.has(metadata.name) && status.certificate)
      .length;
  };

  test('of the API server, killed and restarted in the middle of a burst', async () => {
    const burst = await createBurst('restart', 50);
    let answered = 0;
    let killed: Promise<void> | undefined;
    // In the middle by count, not by time; and all are approved before anything is written.
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    toApi.intervene = async ({ path, method }, moment, status): Promise<Decision> => {
      if (method !== 'PUT' || !path.endsWith('/status')) return 'pass';
      if (moment === 'after') {
        if (status === 200) answered += 1;
        if (answered === 20) killed ??= plane.killApiServer();
        return 'pass';
      }
      await begun;
      await killed; // what comes now meets a dead server
      return 'pass';
    };
    await approve(plane, ...burst.map(({ name }) => name));
    begin();
    await eventually(() => killed !== undefined, 'the API server was killed');
    await killed;
    expect(answered).toBeLessThan(50);
    await plane.restartApiServer();
    await expectEnds(burst);
    // The API server denies everything while it starts: no alarm.
    expect(await relay.metric('alarms_total')).toBe(0);
    expect(await relay.metric('api_errors_total', 'verb="update"', 'code="Unavailable"')).toBeGreaterThan(0);
    await expect.poll(() => relay.metric('watch_restarts_total')).toBeGreaterThan(0);
  });

  test('of the watch, whose revision is gone when it comes back: what happened meanwhile is seen', async () => {
    const lists = await relay.metric('lists_total');
    const expired = await relay.metric('watch_restarts_total', 'reason="expired"');
    let gone = false;
    toApi.intervene = ({ query }, moment) => (query.has('watch') && moment === 'before' && !gone ? 'cut' : 'pass');
    toApi.cutAll();
    const burst = await createBurst('expiry', 10);
    await approve(plane, ...burst.map(({ name }) => name));
    await plane.compactEtcd();
    expect(await issuedOf(burst)).toBe(0);
    gone = true;
    await expectEnds(burst);
    expect(await relay.metric('watch_restarts_total', 'reason="expired"')).toBe(expired + 1);
    expect(await relay.metric('lists_total')).toBe(lists + 1);
  });

  test('of answers: each first one to every second request is lost, and of status writes to all others', async () => {
    const lost = new Set<string>();
    const losing: Proxy['intervene'] = ({ method, path, body }, moment) => {
      const name = (body as { metadata?: { name?: string } } | undefined)?.metadata?.name ?? '';
      const isEven = Number(/\d+$/.exec(name)?.[0]) % 2 === 0;
      // All at once lost would be an outage to the relay, and it would wait for its end.
      const loses = (method === 'POST' && path.endsWith('/sign') && isEven) || (method === 'PUT' && !isEven);
      const call = `${method} ${name}`;
      if (moment === 'before' || !loses || lost.has(call)) return 'pass';
      lost.add(call);
      return 'cut';
    };
    toSigner.intervene = losing;
    toApi.intervene = losing;
    const burst = await createBurst('lost', 20);
    await approve(plane, ...burst.map(({ name }) => name));
    await expectEnds(burst);
    const count = (method: string): number => [...lost].filter((call) => call.startsWith(method)).length;
    expect([count('POST'), count('PUT')]).toEqual([burst.length / 2, burst.length / 2]);
  });

  test('of the store, which records no certificate for a while', async () => {
    const burst = await createBurst('store', 20);
    const mend = refuseToComplete(signer);
    let refusals = 0;
    toSigner.intervene = (_, moment, status) => {
      if (moment === 'after' && status === 503) refusals += 1;
      return 'pass';
    };
    await approve(plane, ...burst.map(({ name }) => name));
    await eventually(() => refusals >= 10, 'the store has refused');
    expect(await issuedOf(burst)).toBe(0);
    mend();
    await expectEnds(burst);
  });

  test('of the leader, killed at work: the standby takes over and finishes', async () => {
    await relay.stop();
    const args = ['--leader-elect', ...signerArgs];
    const replica = { kubeconfig: identity.kubeconfig(toApi), endpoint: toSigner.url, args };
    const replicas = [await startRelay(replica), await startRelay(replica)];
    try {
      const leads = (): Promise<number[]> => Promise.all(replicas.map((each) => each.metric('leader')));
      await eventually(async () => (await leads()).includes(1), 'one of them leads');
      const [first] = await leads();
      const [leader, standby] = first === 1 ? replicas : replicas.toReversed();
      expect(await standby!.metric('leader')).toBe(0);
      const burst = await createBurst('takeover', 20);
      let writes = 0;
      toApi.intervene = async ({ path, method }, moment): Promise<Decision> => {
        if (method !== 'PUT' || !path.endsWith('/status') || moment !== 'before') return 'pass';
        writes += 1;
        if (writes !== 5) return 'pass';
        await leader!.kill();
        return 'cut';
      };
      await approve(plane, ...burst.map(({ name }) => name));
      await eventually(() => leader!.process.ended() !== undefined, 'the leader was killed');
      await shortenLease(plane, identity);
      await expectEnds(burst);
      expect(leader!.process.ended()).toBe('SIGKILL');
      expect(await standby!.metric('leader')).toBe(1);
    } finally {
      for (const each of replicas) await each.stop();
    }
  });

  test('after all of that no status was written twice, and no other object touched', () => {
    const stored = plane
      .auditEvents({ user: identity.user })
      .filter(
        ({ verb, stage, responseStatus, objectRef }) =>
          verb === 'update' &&
          stage === 'ResponseComplete' &&
          responseStatus?.code === 200 &&
          objectRef?.subresource === 'status',
      )
      .map(({ objectRef }) => objectRef?.name ?? '');
    expect(new Set(stored).size).toBe(stored.length);
    expect([...everything.keys()]).toEqual(expect.arrayContaining(stored));
  });

  test('and the key has signed one content for each request that was to be issued, and nothing else', async () => {
    const signed = new Set(readFileSync(countFile, 'utf8').trimEnd().split('\n'));
    const { ledger, close } = ledgerOf(signer);
    const issuable = [...everything.values()].filter(({ name }) => !name.includes('refused'));
    const records = await Promise.all(issuable.map(({ uid }) => ledger.find(uid)));
    close();
    expect(signed).toEqual(new Set(records.map((record) => Buffer.from(record!.tbs).toString('hex'))));
    expect(signed.size).toBe(issuable.length);
  });
});
