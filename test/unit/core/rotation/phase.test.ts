import { describe, expect, test } from 'vitest';
import type { Consumer } from '../../../../core/rotation/consumers.ts';
import { rotationOf } from '../../../../core/rotation/phase.ts';
import type { Rotation } from '../../../../core/rotation/phase.ts';
import { caOf, clientCa, createWorld, leavesOf, noLeaves, now } from './world.ts';
import type { World } from './world.ts';

const kubelet = 'kubernetes.io/kube-apiserver-client-kubelet';
const serving = 'kubernetes.io/kubelet-serving';
const a = 'a: {subject: {commonName: A}, validity: 100d}';
const b = 'b: {replaces: a, subject: {commonName: B}, validity: 200d}';
const signedBy = (...cas: readonly [string, string]) => `{${kubelet}: {ca: ${cas[0]}}, ${serving}: {ca: ${cas[1]}}}`;

/** What the command would show with these consumers and certificates. */
async function rotate(
  world: World,
  [cas, profiles]: readonly [string, string],
  seen: {
    consumers?: (pem: World['pem']) => readonly Consumer[];
    leaves?: typeof noLeaves;
    name?: string;
    at?: number;
  } = {},
): Promise<Rotation> {
  const { leaves = noLeaves, name = 'a', at = now } = seen;
  const deployment = await world.deploy(cas, profiles, name);
  const consumers = seen.consumers?.(world.pem);
  return rotationOf(caOf(deployment, name), {
    deployment,
    leaves,
    now: at,
    ...(consumers === undefined ? {} : { consumers }),
  });
}

const told = ({ phase, findings }: Rotation): string => [phase, ...findings.map(({ code }) => code)].join(' ');

test('from the first CA to the last trace of it', async () => {
  const world = createWorld();
  const alone = [`{${a}}`, signedBy('a', 'a')] as const;
  const both = (...cas: readonly [string, string]) => [`{${a}, ${b}}`, signedBy(...cas)] as const;
  const trusting = (...names: string[]) => ({ consumers: (pem: World['pem']) => [clientCa(pem(...names))] });
  const leaves = leavesOf(kubelet);
  expect(told(await rotate(world, alone, { ...trusting('a'), leaves }))).toBe('noSuccessor');
  expect(told(await rotate(world, both('a', 'a'), { ...trusting('a'), leaves }))).toBe('trust');
  expect(told(await rotate(world, both('a', 'a'), { ...trusting('a', 'b'), leaves }))).toBe('switch');
  // One profile after another, and back.
  expect(told(await rotate(world, both('b', 'a'), { ...trusting('a', 'b'), leaves }))).toBe('switch');
  expect(told(await rotate(world, both('b', 'b'), { ...trusting('a', 'b'), leaves }))).toBe('drain');
  expect(told(await rotate(world, both('b', 'b'), trusting('a', 'b')))).toBe('retire');
  expect(told(await rotate(world, both('b', 'b'), trusting('b')))).toBe('retire');
  const without = ['{b: {subject: {commonName: B}, validity: 200d}}', signedBy('b', 'b')] as const;
  expect(told(await rotate(world, without, trusting('a', 'b')))).toBe('retire');
  expect(told(await rotate(world, without, trusting('b')))).toBe('done');
});

test('a new CA that is not in force', async () => {
  const world = createWorld(['b']);
  const [cas] = [`{${a}, ${b}}`];
  const of = (...signers: readonly [string, string]) =>
    rotate(world, [cas, signedBy(...signers)], { consumers: (pem) => [clientCa(pem('a'))] });
  expect(told(await of('a', 'a'))).toBe('notInForce');
  expect(told(await of('b', 'a'))).toBe('notInForce SwitchedBeforeInForce');
});

describe('the wrong order is a finding', () => {
  const cas = `{${a}, ${b}}`;
  const leaves = leavesOf(kubelet);

  test('signing switched before the new CA is trusted', async () => {
    const rotation = await rotate(createWorld(), [cas, signedBy('b', 'b')], {
      consumers: (pem) => [clientCa(pem('a'))],
      leaves,
    });
    expect(told(rotation)).toBe('trust SwitchedBeforeTrusted');
    expect(rotation.findings[0]?.message).toContain('kube-apiserver --client-ca-file does not trust b');
    expect(rotation.findings[0]?.message).toContain(kubelet);
  });

  test('the old CA distrusted while its certificates are in use, or while it signs', async () => {
    const consumers = (pem: World['pem']) => [clientCa(pem('b'))];
    expect(told(await rotate(createWorld(), [cas, signedBy('b', 'b')], { consumers, leaves }))).toBe(
      'drain DistrustedBeforeEnd',
    );
    expect(told(await rotate(createWorld(), [cas, signedBy('a', 'a')], { consumers }))).toBe(
      'switch DistrustedBeforeEnd',
    );
    expect(told(await rotate(createWorld(), [cas, signedBy('b', 'b')], { consumers }))).toBe('retire');
  });

  test('the old CA removed from the file while its certificates are in use', async () => {
    const world = createWorld();
    await world.deploy(cas, signedBy('b', 'b'));
    const without = ['{b: {subject: {commonName: B}, validity: 200d}}', signedBy('b', 'b')] as const;
    const trusting = (...names: string[]) => ({ consumers: (pem: World['pem']) => [clientCa(pem(...names))], leaves });
    expect(told(await rotate(world, without, trusting('a', 'b')))).toBe('drain RemovedBeforeEnd');
    expect(told(await rotate(world, without, trusting('b')))).toBe('drain DistrustedBeforeEnd RemovedBeforeEnd');
  });

  test('the new CA ends before the old one; the old one has ended', async () => {
    const short =
      '{a: {subject: {commonName: A}, validity: 100d}, b: {replaces: a, subject: {commonName: B}, validity: 50d}}';
    const consumers = (pem: World['pem']) => [clientCa(pem('a', 'b'))];
    expect(told(await rotate(createWorld(), [short, signedBy('a', 'a')], { consumers }))).toBe(
      'switch SuccessorEndsFirst',
    );
    const at = now + 101 * 86_400_000;
    expect(told(await rotate(createWorld(), [cas, signedBy('a', 'a')], { consumers, at }))).toBe('switch OldEnded');
  });
});

test('a cluster that was not read: ready only once the profiles are switched, and never done', async () => {
  const world = createWorld();
  const cas = `{${a}, ${b}}`;
  expect(told(await rotate(world, [cas, signedBy('a', 'b')]))).toBe('trust');
  expect(told(await rotate(world, [cas, signedBy('b', 'b')]))).toBe('retire');
  const without = ['{b: {subject: {commonName: B}, validity: 200d}}', signedBy('b', 'b')] as const;
  expect(told(await rotate(world, without))).toBe('retire');
  const unread = { ...clientCa(''), unread: 'forbidden' };
  const { bundle: _, ...consumer } = unread;
  expect(told(await rotate(world, [cas, signedBy('a', 'a')], { consumers: () => [consumer] }))).toBe('trust');
  expect(told(await rotate(world, without, { consumers: () => [consumer] }))).toBe('retire');
});

describe('which consumers concern a rotation', () => {
  const cas = `{${a}, ${b}, other: {subject: {commonName: Other}}}`;
  const names = ({ consumers }: Rotation) =>
    consumers.map(({ name, needed }) => `${name}${needed ? '' : ' (not needed)'}`);
  const consumer = (name: string, rest: Partial<Consumer>): Consumer => ({
    name,
    place: '',
    change: '',
    concern: 'none',
    ...rest,
  });

  test('one that trusts neither and verifies other certificates does not', async () => {
    const rotation = await rotate(createWorld(), [cas, signedBy('other', 'a')], {
      consumers: (pem) => [
        clientCa(pem('other')),
        consumer('webhook of another CA', { bundle: pem('other') }),
        consumer('webhook', { bundle: `text\n${pem('other', 'a')}` }),
        consumer('ready', { bundle: pem('b') }),
        consumer('kubelets', { concern: { kinds: ['kubelet-serving'] } }),
        consumer('bundle of the signer', { bundle: pem('a'), concern: { signerName: serving } }),
        consumer('bundle of another signer', { bundle: '', concern: { signerName: kubelet } }),
      ],
    });
    expect(names(rotation)).toEqual(['webhook', 'ready (not needed)', 'kubelets', 'bundle of the signer']);
    expect(told(rotation)).toBe('trust');
  });

  test('files beside the certificate of the API server do if kube-root-ca.crt has the old CA', async () => {
    const consumers = (root: string) => (pem: World['pem']) => [
      consumer('root', { concern: 'apiServer', bundle: pem(root) }),
      consumer('kubeconfigs', { concern: 'apiServer' }),
    ];
    const of = (root: string) => rotate(createWorld(), [cas, signedBy('a', 'a')], { consumers: consumers(root) });
    expect(names(await of('a'))).toEqual(['root', 'kubeconfigs']);
    expect(names(await of('other'))).toEqual([]);
  });
});

test('CAs below roots: a root that both need is no reason to wait, and a root of the old CA alone is', async () => {
  const world = createWorld();
  const roots = 'r: {subject: {commonName: R}, pathLen: 1}, s: {subject: {commonName: S}, pathLen: 1}';
  const below = (b2: string) =>
    `{${roots}, a: {kind: issued, issuedBy: r, subject: {commonName: A}, validity: 100d}, b: {kind: issued, issuedBy: ${b2}, replaces: a, subject: {commonName: B}, validity: 200d}}`;
  const reader = (bundle: string): Consumer => ({ name: 'reader', place: '', bundle, concern: 'none', change: '' });
  const shared = await rotate(world, [below('r'), signedBy('a', 'a')], { consumers: (pem) => [reader(pem('r'))] });
  expect(told(shared)).toBe('switch');
  expect(shared.consumers[0]?.trusts).toEqual({ old: true, new: true, keepsOld: false });
  const apart = createWorld();
  const before = await rotate(apart, [below('s'), signedBy('a', 'a')], { consumers: (pem) => [reader(pem('r'))] });
  expect(told(before)).toBe('trust');
  const after = await rotate(apart, [below('s'), signedBy('b', 'b')], { consumers: (pem) => [reader(pem('r', 's'))] });
  expect(after.consumers[0]?.trusts).toEqual({ old: true, new: true, keepsOld: true });
});

test('a root whose CAs are not replaced yet still signs', async () => {
  const cas =
    '{r: {subject: {commonName: R}, pathLen: 1}, r2: {subject: {commonName: R2}, pathLen: 1, replaces: r}, a: {kind: issued, issuedBy: r, subject: {commonName: A}}}';
  const rotation = await rotate(createWorld(), [cas, signedBy('a', 'a')], { name: 'r', consumers: () => [] });
  expect([told(rotation), rotation.issued]).toEqual(['switch', ['a']]);
});
