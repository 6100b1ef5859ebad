import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startControlPlane, type ControlPlane } from '../../harness/control-plane.ts';
import {
  installRelay,
  ledgerOf,
  refuseToComplete,
  startDevServer,
  startRelay,
  type DevServer,
  type Relay,
  type RelayIdentity,
} from '../../harness/stack.ts';
import { tbsOf } from '../../harness/stack-key.ts';
import { startProxy, type Decision, type Moment, type Proxy, type ProxiedCall } from '../../harness/stack-proxy.ts';
import {
  approve,
  certificateDerOf,
  conditionOf,
  createRequest,
  eventually,
  settled,
  type CsrObject,
} from '../../harness/stack-requests.ts';
import { requireTools } from '../../tools/tools.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

/*
 * SIGKILL of the real relay and the real dev server, between the moment a request is sent to be signed and the moment
 * its status is stored. No hook is in the product: proxies before both servers see each call come and each answer go,
 * and kill by process id. Where to kill is taken from the calls of an undisturbed run.
 */
describe.skipIf(skip)('killed at a call', () => {
  let signer: DevServer;
  let plane: ControlPlane;
  let identity: RelayIdentity;
  let relay: Relay;
  let toSigner: Proxy;
  let toApi: Proxy;
  let rounds = 0;

  beforeAll(async () => {
    signer = await startDevServer();
    plane = await startControlPlane({ clientCaPem: await signer.caPem() });
    identity = await installRelay(plane);
    toSigner = await startProxy({ url: signer.url });
    toApi = await startProxy({ url: plane.url, caPem: plane.servingCaPem });
    // Without leader election: the wait for a dead leader's lease is the subject of another test. One at a time: what
    // one request does when a process dies over another is left to chance otherwise.
    relay = await startRelay({
      kubeconfig: identity.kubeconfig(toApi),
      endpoint: toSigner.url,
      args: ['--signer-name', 'kubernetes.io/kube-apiserver-client', '--concurrency', '1'],
    });
  });
  afterEach(() => {
    toSigner.intervene = () => 'pass';
    toApi.intervene = () => 'pass';
  });
  afterAll(async () => {
    await relay?.stop();
    await toSigner?.close();
    await toApi?.close();
    await plane?.stop();
    await signer?.stop();
  });

  /** What a call is, whichever run it is of; nothing for those that are not between sending and storing. */
  function pointOf({ method, path, query, body }: ProxiedCall): string | undefined {
    if (query.has('watch') || method === 'GET') return undefined;
    const object = body as { metadata: { name: string }; status?: { certificate?: string } };
    const which = object.metadata.name.startsWith('allowed') ? 'allowed' : 'refused';
    if (path.endsWith('/sign')) return `sign ${which}`;
    if (path.endsWith('/status')) return `status ${which}`;
    return 'event';
  }

  type Intervention = (point: string, moment: Moment) => Decision | Promise<Decision>;

  /** A request to be issued and one to be refused, to their ends. Says which points were passed, in order. */
  async function round(intervene: Intervention, restart: () => Promise<void> = async () => {}): Promise<Set<string>> {
    rounds += 1;
    const passed = new Set<string>();
    const watching = async (call: ProxiedCall, moment: Moment): Promise<Decision> => {
      const point = pointOf(call);
      if (point === undefined) return 'pass';
      passed.add(`${moment} ${point}`);
      return intervene(point, moment);
    };
    toSigner.intervene = watching;
    toApi.intervene = watching;
    const request = { subject: { CN: `round-${rounds}` } };
    const [allowed, refused] = await Promise.all([
      createRequest(plane.admin, { name: `allowed-${rounds}`, signer: 'kube-apiserver-client', request }),
      createRequest(plane.admin, {
        name: `refused-${rounds}`,
        signer: 'kube-apiserver-client',
        request,
        usages: ['server auth'],
      }),
    ]);
    await approve(plane, allowed.name, refused.name);
    await restart();
    const ends = await settled(plane, [allowed.name, refused.name]);
    await check(ends.get(allowed.name)!, ends.get(refused.name)!);
    return passed;
  }

  async function check(allowed: CsrObject, refused: CsrObject): Promise<void> {
    expect(conditionOf(allowed, 'Failed')).toBeUndefined();
    expect(conditionOf(refused, 'Failed')?.reason).toBe('SignerValidationFailure');
    expect(refused.status.certificate).toBeUndefined();
    const { ledger, close } = ledgerOf(signer);
    try {
      const record = await ledger.find(allowed.metadata.uid);
      expect(record?.state).toBe('issued');
      const certificate = certificateDerOf(allowed);
      expect(certificate.equals(record!.certificate!)).toBe(true);
      expect(tbsOf(certificate)).toBe(Buffer.from(record!.tbs).toString('hex'));
      expect(await ledger.find(refused.metadata.uid)).toBeUndefined();
    } finally {
      close();
    }
  }

  const points = ['sign allowed', 'sign refused', 'status allowed', 'status refused', 'event'];

  test('the calls of an undisturbed run are the points to kill at', async () => {
    const passed = await round(() => 'pass');
    await eventually(() => passed.has('after event'), 'the Event was written');
    expect(passed).toEqual(new Set(points.flatMap((point) => [`before ${point}`, `after ${point}`])));
  });

  const deaths = points.flatMap((point) =>
    (['before', 'after'] as const).flatMap((moment) =>
      // Nobody waits for an Event: the sign call of the next request may be under way by then.
      (point === 'event' ? (['relay'] as const) : (['relay', 'dev server'] as const)).map((victim) => ({
        victim,
        moment,
        point,
      })),
    ),
  );

  test.each(deaths)('$victim, $moment: $point', async ({ victim, moment, point }) => {
    let killed: (() => void) | undefined;
    const death = new Promise<void>((resolve) => (killed = resolve));
    const target = victim === 'relay' ? relay : signer;
    const { pid } = target.process;
    await round(
      async (at, when) => {
        if (killed === undefined || at !== point || when !== moment) return 'pass';
        const dead = killed;
        killed = undefined;
        await target.kill();
        dead();
        return victim === 'relay' || at.startsWith('sign') ? 'cut' : 'pass';
      },
      async () => {
        await death;
        expect(target.process.pid).toBe(pid);
        expect(target.process.ended()).toBe('SIGKILL');
        await target.restart();
      },
    );
    expect(target.process.pid).not.toBe(pid);
  });

  test('dev server, with a signature made and its record not written', async () => {
    // The store itself refuses to end any record: the point between the key and the ledger, in the real process.
    const release = refuseToComplete(signer);
    let tries = 0;
    let refusedOnce = (): void => {};
    const refusal = new Promise<void>((resolve) => (refusedOnce = resolve));
    await round(
      (point, moment) => {
        if (point === 'sign allowed' && moment === 'after' && ++tries === 1) refusedOnce();
        return 'pass';
      },
      async () => {
        await refusal;
        await signer.kill();
        release();
        await signer.restart();
      },
    );
    expect(tries).toBeGreaterThan(1);
  });
});
