/** A machine with a TPM becomes a node in two requests, renews with a quote alone, and comes back with another disk. */
import { afterEach, describe, expect, test } from 'vitest';
import type { NullDevice } from '../../../../harness/attestation/null-provider.ts';
import { newKey } from '../../../../harness/x509/requests.ts';
import { approvedOf, createWorld, requestOf, said, servingSigner, signed } from '../world.ts';
import type { Asked, World } from '../world.ts';

const annotation = 'countersign.dev/attestation-challenge';
const quote = (clock: number, more: Partial<NullDevice> = {}): NullDevice => ({
  akName: 'ak of m1',
  resetCount: 0,
  clock,
  ...more,
});
const asked = (device: NullDevice, more: Partial<Asked> = {}): Asked => ({
  evidence: { machine: 'm1', device },
  ...more,
});

const open: World[] = [];
afterEach(() => {
  for (const world of open.splice(0)) world.close();
});

async function settled(): Promise<World> {
  const world = await createWorld({ tpm: true });
  open.push(world);
  for (const id of ['m1', 'm2']) world.platform.machines.set(id, { nodeNames: ['node-*'], akName: `ak of ${id}` });
  return world;
}

/** Sends the request, and answers its challenge as that machine with the attestation key of the quote. */
async function answered(world: World, device: NullDevice, by = 'm1') {
  const outcome = await world.attest(requestOf(asked(device)));
  if (outcome.kind !== 'challenge') throw new Error(outcome.kind);
  const challenge = outcome.annotations[annotation] ?? '';
  return { challenge, answer: world.platform.activate(by, challenge) ?? { challenge, secret: 'unknown' } };
}

async function joined(): Promise<World> {
  const world = await settled();
  const { answer } = await answered(world, quote(1));
  expect(said(await world.attest(requestOf(asked(quote(2, { answer })))))).toBe('approve');
  return world;
}

describe('the first use of a machine with a TPM', () => {
  test('is denied with a challenge, registers nothing, and is not signed for', async () => {
    const world = await settled();
    const request = requestOf(asked(quote(1)));
    const outcome = await world.attest(request);
    expect(outcome).toMatchObject({ kind: 'challenge', repeat: false, violations: [{ code: 'AttestationChallenge' }] });
    // The same request again has the same challenge: its annotation may not have been written.
    expect(await world.attest(request)).toEqual({ ...outcome, repeat: true });
    expect(signed(await world.issue(approvedOf(request)))).toBe('AttestationChallenge');
    expect(await world.store.findIdentity('null#m1')).toBeUndefined();
  });

  test('ends with the answer, and the record holds the attestation key', async () => {
    const world = await joined();
    const record = await world.store.findIdentity('null#m1');
    expect(record?.device).toEqual({ akName: 'ak of m1', resetCount: 0, clock: 2 });
  });

  test('a challenge is answered once, in time, by the TPM that it was made for', async () => {
    const world = await settled();
    const { answer } = await answered(world, quote(1));
    const key = newKey('P-256');
    expect(said(await world.attest(requestOf(asked(quote(2, { answer, akName: 'ak of m2' })))))).toBe(
      'AttestationInvalid',
    );
    expect(said(await world.attest(requestOf(asked(quote(2, { answer }), { key }))))).toBe('approve');
    expect(said(await world.attest(requestOf(asked(quote(3, { answer })))))).toBe('AttestationInvalid');
    const foreign = await answered(world, quote(3, { akName: 'ak of m2' }), 'm2');
    const device = quote(4, { akName: 'ak of m2', answer: foreign.answer });
    expect(said(await world.attest(requestOf(asked(device))))).toBe('AttestationInvalid');
  });

  test('an answer that comes too late needs another challenge', async () => {
    const world = await settled();
    const { answer } = await answered(world, quote(1));
    world.clock.now += 120_000;
    expect(said(await world.attest(requestOf(asked(quote(2, { answer })))))).toBe('AttestationInvalid');
    const again = await answered(world, quote(3));
    expect(said(await world.attest(requestOf(asked(quote(4, { answer: again.answer })))))).toBe('approve');
  });
});

describe('a registered machine with a TPM', () => {
  test('renews with a quote alone', async () => {
    const world = await joined();
    expect(said(await world.attest(requestOf(asked(quote(3), { by: 'node', key: newKey('P-256') }))))).toBe('approve');
  });

  test('comes back with another disk and its bootstrap credentials', async () => {
    const world = await joined();
    expect(said(await world.attest(requestOf(asked(quote(3), { key: newKey('P-256') }))))).toBe('approve');
  });

  test('is challenged for another attestation key', async () => {
    const world = await joined();
    world.platform.machines.set('m1', { nodeNames: ['node-*'], akName: 'ak 2 of m1' });
    const { answer } = await answered(world, quote(3, { akName: 'ak 2 of m1' }));
    expect(said(await world.attest(requestOf(asked(quote(4, { akName: 'ak 2 of m1', answer })))))).toBe('approve');
    // Its first key does not count any more.
    expect(said(await world.attest(requestOf(asked(quote(5)))))).toBe('AttestationChallenge');
  });

  test('is refused for a quote that was made before its last use', async () => {
    const world = await joined();
    expect(said(await world.attest(requestOf(asked(quote(1)))))).toBe('AttestationInvalid');
    expect(said(await world.attest(requestOf(asked(quote(9, { resetCount: 1 })))))).toBe('approve');
    expect(said(await world.attest(requestOf(asked(quote(99)))))).toBe('AttestationInvalid');
  });

  test('may resume from an earlier clock after a power failure, and then goes on from there', async () => {
    const world = await joined();
    expect(said(await world.attest(requestOf(asked(quote(1, { resetCount: 1 })))))).toBe('approve');
    expect(said(await world.attest(requestOf(asked(quote(0, { resetCount: 1 })))))).toBe('AttestationInvalid');
    expect(said(await world.attest(requestOf(asked(quote(9)))))).toBe('AttestationInvalid');
  });

  test('quotes for serving certificates too, with the same key and a clock that goes on', async () => {
    const world = await joined();
    const serving = (device: NullDevice) =>
      requestOf(asked(device, { by: 'node', signerName: servingSigner, sans: { dns: ['node-1'] } }));
    expect(said(await world.attest(serving(quote(1))))).toBe('AttestationInvalid');
    expect(said(await world.attest(serving(quote(3, { akName: 'another' }))))).toBe('AttestationChallenge');
    expect(said(await world.attest(serving(quote(5))))).toBe('approve');
    // The clock of that quote is on record.
    expect(said(await world.attest(requestOf(asked(quote(4)))))).toBe('AttestationInvalid');
  });

  test("keeps its attestation key and its clock through a stock kubelet's request, which has no quote", async () => {
    const world = await joined();
    const stock = requestOf({ by: 'node', signerName: servingSigner, sans: { dns: ['node-1'] } });
    expect(said(await world.attest(stock))).toBe('approve');
    expect(said(await world.attest(requestOf(asked(quote(1)))))).toBe('AttestationInvalid');
    expect(said(await world.attest(requestOf(asked(quote(3), { key: newKey('P-256') }))))).toBe('approve');
  });

  test('keeps its name from another machine with a TPM', async () => {
    const world = await joined();
    const of2 = (device: NullDevice) => requestOf({ evidence: { machine: 'm2', device } });
    const outcome = await world.attest(of2(quote(1, { akName: 'ak of m2' })));
    if (outcome.kind !== 'challenge') throw new Error(outcome.kind);
    // Who holds the name is told only to a machine that has proved itself.
    const answer = world.platform.activate('m2', outcome.annotations[annotation] ?? '');
    if (answer === undefined) throw new Error('not activated');
    expect(said(await world.attest(of2(quote(2, { akName: 'ak of m2', answer }))))).toBe('TofuNodeTaken');
  });
});

test('audit mode denies nothing: it takes note that a challenge would have been sent', async () => {
  const world = await createWorld({ tpm: true, attestation: { mode: 'audit' } });
  open.push(world);
  world.platform.machines.set('m1', { nodeNames: ['node-*'], akName: 'ak of m1' });
  expect(await world.attest(requestOf(asked(quote(1))))).toMatchObject({
    kind: 'approve',
    annotations: {},
    audit: [{ code: 'AttestationChallenge' }],
  });
});
