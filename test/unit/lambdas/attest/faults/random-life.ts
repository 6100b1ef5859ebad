/**
 * A cluster's life at random: machines come and go, requests are made, repeated, mixed up and made two at once, terminated
 * machines are looked for, operators reset and adopt, and time passes.
 */
import { randomBytes } from 'node:crypto';
import { fc } from '../../../../harness/determinism/properties.ts';
import type { Arbitrary } from 'fast-check';
import type { IdentityRecord, Verdict } from '../../../../../core/ports/attestation-store.ts';
import { retireGone } from '../../../../../core/attestation/retirement/retire-gone.ts';
import type { RetirementScope } from '../../../../../core/attestation/retirement/retire-gone.ts';
import { LaterError, ThrottledError } from '../../../../../core/ports/errors.ts';
import { checkStep, hour, keys } from './life-invariants.ts';
import type { Answered, Ask, Memory, Snapshot } from './life-invariants.ts';
import {
  adopt,
  approvedOf,
  clientSigner,
  createWorld,
  forget,
  requestOf,
  said,
  servingSigner,
  signed,
} from '../world.ts';
import type { World } from '../world.ts';
import { ranges } from '../../../../harness/attestation/address-ranges.ts';

const nodes = ['node-1', 'node-2', 'free-1'] as const;
/** What each may be called, and where it is: names that are one's own, and names that two or three may have. */
const machines = {
  m1: { nodeNames: ['node-1', 'free-*'], addresses: ['10.0.0.1'] },
  m2: { nodeNames: ['node-2', 'free-*'], addresses: ['10.0.0.2'] },
  m3: { nodeNames: ['node-1', 'free-1'], addresses: ['10.0.0.3'] },
} as const;
type MachineName = keyof typeof machines;
const machineNames = ['m1', 'm2', 'm3'] as const;
const settings = { addressRanges: ranges('192.168.0.0/24') };
const addresses = ['192.168.0.7', '192.168.0.8', '10.0.0.1', '10.0.0.2', '10.0.0.3'];

// ── What can happen ─────────────────────────────────────────────────────────────────────────────────────────────────

/** The bytes of an earlier request, under the UID of that or of another earlier one, or under a new one. */
interface Again {
  readonly of: number;
  readonly uidOf: number | 'new';
}
interface Post {
  readonly what: Ask | Again;
  readonly to: 'attest' | 'sign';
}
type Action =
  | { readonly do: 'post'; readonly posts: readonly Post[] }
  | { readonly do: 'turn'; readonly machine: MachineName; readonly state: 'running' | 'unknown' | 'stopped' | 'gone' }
  /** One run for each scope and these requests, all at once. */
  | { readonly do: 'look'; readonly scopes: readonly RetirementScope[]; readonly posts: readonly Post[] }
  | { readonly do: 'reset'; readonly machine: MachineName }
  | { readonly do: 'adopt'; readonly machine: MachineName; readonly node: string }
  | { readonly do: 'wait'; readonly milliseconds: number };

export interface Life {
  readonly allowRestart: boolean;
  readonly actions: readonly Action[];
}

const machine = fc.constantFrom(...machineNames);
/** Mostly the one that two or three may have. */
const node = fc.constantFrom(...nodes, 'free-1', 'free-1');
const ask: Arbitrary<Ask> = fc.record({
  machine,
  node,
  key: fc.nat({ max: keys.length - 1 }),
  by: fc.constantFrom('bootstrap', 'bootstrap', 'node'),
  what: fc.constantFrom('client', 'client', 'client', 'client', 'serving', 'stock'),
  proof: fc.constantFrom('p1', 'p2', undefined, undefined, undefined),
  address: fc.constantFrom(...addresses),
});
const again: Arbitrary<Again> = fc.nat({ max: 99 }).chain((of) =>
  fc.record({
    of: fc.constant(of),
    uidOf: fc.oneof(fc.constant(of), fc.nat({ max: 99 }), fc.constant('new' as const)),
  }),
);
const post: Arbitrary<Post> = fc.record({
  what: fc.oneof({ weight: 3, arbitrary: ask }, { weight: 2, arbitrary: again }),
  to: fc.constantFrom('attest', 'sign'),
});
const scope: Arbitrary<RetirementScope> = fc.oneof(
  fc.constant('scheduled' as const),
  fc.record({ nodeNames: fc.subarray([...nodes, 'no-node']) }),
);
const action: Arbitrary<Action> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ do: fc.constant('post'), posts: fc.tuple(post) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('post'), posts: fc.tuple(post, post) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('turn'),
      machine,
      state: fc.constantFrom('running', 'running', 'unknown', 'stopped', 'gone', 'gone'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('look'),
      scopes: fc.array(scope, { minLength: 1, maxLength: 2 }),
      posts: fc.array(post, { maxLength: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reset'), machine }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('adopt'), machine, node }) },
  {
    weight: 2,
    // Within the life of a proof and of what is not known any more, or past that of a verdict.
    arbitrary: fc.record({
      do: fc.constant('wait'),
      milliseconds: fc.oneof(
        fc.nat({ max: 2 * hour }),
        fc.integer({ min: 60_000, max: 200_000 }),
        fc.integer({ min: 24 * hour, max: 26 * hour }),
      ),
    }),
  },
);
export const anyLife: Arbitrary<Life> = fc.record({
  allowRestart: fc.boolean(),
  actions: fc.array(action, { minLength: 10, maxLength: 40, size: 'max' }),
});

const someAsk: Ask = {
  machine: 'm1',
  node: 'node-1',
  key: 0,
  by: 'bootstrap',
  what: 'client',
  proof: undefined,
  address: '',
};

function client(of: Pick<Ask, 'machine' | 'node'> & Partial<Ask>, to: Post['to'] = 'attest'): Post {
  return { what: { ...someAsk, ...of }, to };
}

/** One in which nearly everything happens: the random ones may be few. */
export const eventful: Life = {
  allowRestart: true,
  actions: [
    { do: 'post', posts: [client({ machine: 'm1', node: 'free-1' }, 'sign')] },
    { do: 'post', posts: [client({ machine: 'm1', node: 'free-1', key: 1 })] },
    { do: 'post', posts: [{ what: { of: 0, uidOf: 1 }, to: 'sign' }] },
    { do: 'post', posts: [client({ machine: 'm2', node: 'free-1', key: 2 })] },
    { do: 'post', posts: [client({ machine: 'm3', node: 'node-2' })] },
    { do: 'turn', machine: 'm1', state: 'running' },
    { do: 'post', posts: [client({ machine: 'm1', node: 'free-1', key: 1 }, 'sign')] },
    // Looked at a second time.
    { do: 'wait', milliseconds: 120_000 },
    { do: 'post', posts: [{ what: { of: 5, uidOf: 5 }, to: 'sign' }] },
    { do: 'turn', machine: 'm1', state: 'gone' },
    {
      do: 'post',
      posts: [client({ machine: 'm2', node: 'free-1' }, 'sign'), client({ machine: 'm3', node: 'free-1' }, 'sign')],
    },
    { do: 'post', posts: [client({ machine: 'm2', node: 'free-1', key: 2, by: 'node' }, 'sign')] },
    { do: 'turn', machine: 'm1', state: 'running' },
    { do: 'post', posts: [client({ machine: 'm1', node: 'node-1' })] },
    { do: 'adopt', machine: 'm3', node: 'node-1' },
    { do: 'post', posts: [client({ machine: 'm3', node: 'node-1', by: 'node' }, 'sign')] },
    { do: 'post', posts: [{ what: { of: 7, uidOf: 'new' }, to: 'sign' }] },
    // Let in, and signed only after its machine was registered anew.
    { do: 'post', posts: [client({ machine: 'm3', node: 'node-1', key: 2, by: 'node' })] },
    { do: 'reset', machine: 'm3' },
    { do: 'post', posts: [client({ machine: 'm3', node: 'node-1', key: 1 }, 'sign')] },
    { do: 'post', posts: [{ what: { of: 13, uidOf: 13 }, to: 'sign' }] },
    // Terminated, and retired at the second look; its name is another's an hour later.
    { do: 'turn', machine: 'm3', state: 'gone' },
    { do: 'look', scopes: ['scheduled', { nodeNames: ['node-1'] }], posts: [] },
    { do: 'wait', milliseconds: 600_000 },
    {
      do: 'look',
      scopes: ['scheduled', 'scheduled'],
      posts: [client({ machine: 'm3', node: 'node-1', key: 1 }, 'sign')],
    },
    { do: 'reset', machine: 'm1' },
    { do: 'turn', machine: 'm3', state: 'running' },
    { do: 'post', posts: [client({ machine: 'm1', node: 'node-1' })] },
    { do: 'wait', milliseconds: hour },
    { do: 'post', posts: [client({ machine: 'm1', node: 'node-1' }, 'sign')] },
    { do: 'wait', milliseconds: 26 * hour },
    { do: 'post', posts: [{ what: { of: 0, uidOf: 0 }, to: 'attest' }] },
  ],
};

// ── What happens ────────────────────────────────────────────────────────────────────────────────────────────────────

type Request = Pick<Answered, 'ask' | 'uid' | 'object'>;

/** Lives it, and returns every answer that was given, and in what states the records are in the end. Throws with what is broken. */
export async function live({ allowRestart, actions }: Life): Promise<readonly string[]> {
  const world = await createWorld({ allowRestart, settings });
  try {
    for (const name of machineNames) start(world, name);
    const requests: Request[] = [];
    const memory: Memory = { certificates: new Map(), ended: new Map(), spent: new Map() };
    const answers: string[] = [];
    let before = await snapshot(world);
    for (const [index, one] of actions.entries()) {
      // No two steps at one time, so that what came before can be told from what came after.
      world.clock.now += 1;
      const answered = await carryOut(world, one, before, requests, memory);
      const after = await snapshot(world);
      const wrong = checkStep({ cluster: world.cluster.name, allowRestart, before, after, answered, memory });
      if (wrong.length > 0) throw new Error(`action ${index}: ${wrong.join('; ')}`);
      answers.push(...answered.map(({ answer }) => answer));
      before = after;
    }
    // What became of the machines counts as well.
    answers.push(...[...before.records.values()].map(({ state }) => state));
    return answers;
  } finally {
    world.close();
  }
}

async function carryOut(
  world: World,
  action: Action,
  { records }: Snapshot,
  requests: Request[],
  { ended }: Memory,
): Promise<readonly Answered[]> {
  const identity = 'machine' in action ? `null#${action.machine}` : '';
  switch (action.do) {
    case 'post':
    case 'look': {
      const made = action.posts.map(({ what, to }) => ({ ...requestFor(what, requests), to }));
      requests.push(...made);
      const looks = action.do === 'post' ? [] : action.scopes;
      const [answered] = await Promise.all([
        Promise.all(made.map((request) => answer(world, request))),
        ...looks.map((scope) => look(world, scope)),
      ]);
      return answered;
    }
    case 'turn': {
      const { platform } = world;
      if (action.state === 'running') start(world, action.machine);
      else if (action.state === 'unknown') platform.machines.delete(action.machine);
      else platform.machines.set(action.machine, { ...machines[action.machine], state: action.state });
      return [];
    }
    case 'reset':
      if (!records.has(identity)) return [];
      await forget(world, identity);
      ended.set(identity, world.clock.now);
      return [];
    case 'adopt': {
      const { node: nodeName } = action;
      const isFree = [...records.values()].every((one) => one.identity !== identity && one.nodeName !== nodeName);
      if (isFree) await adopt(world, { identity, nodeName });
      return [];
    }
    case 'wait':
      world.clock.now += action.milliseconds;
      return [];
  }
}

async function look({ store, platform, clock }: World, scope: RetirementScope): Promise<void> {
  const providers = new Map([[platform.provider.name, platform.provider]]);
  const { failures } = await retireGone({ store, providers, now: () => clock.now, randomBytes }, scope);
  if (failures.length > 0) throw failures[0]?.error;
}

function start({ platform, clock }: World, name: MachineName): void {
  platform.machines.set(name, { ...machines[name], startedAt: clock.now });
}

function requestFor(what: Post['what'], requests: readonly Request[]): Request {
  if ('of' in what) {
    const first = requests[what.of % requests.length];
    // The first of all is no repetition.
    if (first === undefined) return requestFor(someAsk, []);
    const other = what.uidOf === 'new' ? undefined : requests[what.uidOf % requests.length];
    // Two new ones at once have one.
    const uid = other?.uid ?? `new-${requests.length}`;
    return { ...first, uid, object: { ...first.object, metadata: { name: 'csr-1', uid } } };
  }
  const { machine: id, node: name, key, by, what: kind, proof, address } = what;
  const object = requestOf({
    node: name,
    ...(keys[key] === undefined ? {} : { key: keys[key] }),
    by: kind === 'client' ? by : 'node',
    signerName: kind === 'client' ? clientSigner : servingSigner,
    ...(kind === 'stock' ? {} : { evidence: { machine: id, ...(proof === undefined ? {} : { proof }) } }),
    ...(kind === 'client' ? {} : { sans: { ip: [address] } }),
  });
  return { ask: what, uid: object.metadata.uid, object };
}

async function answer(world: World, { to, ...request }: Request & Pick<Post, 'to'>): Promise<Answered> {
  try {
    if (to === 'attest') return { ...request, answer: said(await world.attest(request.object)) };
    const outcome = await world.issue(approvedOf(request.object));
    return outcome.kind === 'issued'
      ? { ...request, answer: signed(outcome), certificatePem: outcome.certificatePem }
      : { ...request, answer: signed(outcome) };
  } catch (error) {
    // Come back later: nothing is concluded, which the records show.
    if (error instanceof ThrottledError) return { ...request, answer: 'throttled' };
    if (error instanceof LaterError) return { ...request, answer: error.why };
    throw error;
  }
}

async function snapshot({ clock: { now }, platform, store, register }: World): Promise<Snapshot> {
  const records = new Map<string, IdentityRecord>();
  for await (const one of register.listIdentities()) records.set(one.identity, one);
  const verdicts = new Map<string, Verdict>();
  for await (const one of register.listVerdicts(now)) verdicts.set(one.uid, one);
  const holders = new Map<string, IdentityRecord>();
  for (const name of nodes) {
    const holder = await store.findNode(name);
    if (holder !== undefined) holders.set(name, holder);
  }
  return { now, machines: new Map(platform.machines), records, holders, verdicts };
}
