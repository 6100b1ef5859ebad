import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { refuseToComplete } from '../../../harness/stack/stack.ts';
import type { Decision, Moment, ProxiedCall } from '../../../harness/stack/proxy.ts';
import { approve, createRequest, eventually, settled } from '../../../harness/stack/requests.ts';
import { byTier, tier } from '../../../harness/determinism/tier.ts';
import { requireTools } from '../../../tools/tools.ts';
import { expectEnds, startProxiedStack, type ProxiedStack } from './proxied-stack.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kubectl');

/*
 * SIGKILL of the real relay and the real dev server, between the moment a request is sent to be signed and the moment
 * its status is stored. No hook is in the product: proxies before both servers see each call come and each answer go,
 * and kill by process id. Where to kill is taken from the calls of an undisturbed run.
 */
describe.skipIf(skip)('killed at a call', () => {
  let stack: ProxiedStack;
  let rounds = 0;

  beforeAll(async () => {
    // Without leader election: the wait for a dead leader's lease is the subject of another test. One at a time: what
    // one request does when a process dies over another is left to chance otherwise.
    stack = await startProxiedStack({ concurrency: 1 });
  });
  afterEach(() => stack?.pass());
  afterAll(() => stack?.stop());

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
    const { plane, toSigner, toApi } = stack;
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
    await expectEnds(stack.signer, { issued: [ends.get(allowed.name)!], refused: [ends.get(refused.name)!] });
    return passed;
  }

  const points = ['sign allowed', 'sign refused', 'status allowed', 'status refused', 'event'];

  test('the calls of an undisturbed run are the points to kill at', async () => {
    const passed = await round(() => 'pass');
    await eventually(() => passed.has('after event'), 'the Event was written');
    expect(passed).toEqual(new Set(points.flatMap((point) => [`before ${point}`, `after ${point}`])));
  });

  const killedAt = byTier({ default: points.filter((point) => !point.endsWith('refused')), deep: points });
  /** Nothing waits for an Event: the sign call of the next request may be under way by then. */
  function victims(point: string): readonly ('relay' | 'dev server')[] {
    // While the status is written the dev server has nothing in hand.
    const both = point.startsWith('sign') || (point !== 'event' && tier === 'deep');
    return both ? ['relay', 'dev server'] : ['relay'];
  }
  const deaths = killedAt.flatMap((point) =>
    (['before', 'after'] as const).flatMap((moment) => victims(point).map((victim) => ({ victim, moment, point }))),
  );

  test.each(deaths)('$victim, $moment: $point', async ({ victim, moment, point }) => {
    let killed: (() => void) | undefined;
    const death = new Promise<void>((resolve) => (killed = resolve));
    const target = victim === 'relay' ? stack.relay : stack.signer;
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
    const { signer } = stack;
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
