import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { HttpAnswer, HttpHandler } from '../../../../adapters/lambda/http.ts';
import { loopbackCaller } from '../../../../dev/serve/loopback-caller.ts';
import { leaseMilliseconds } from '../../../../core/sign-once.ts';
import type { CertificateLedger, LedgerResult } from '../../../../core/ports/certificate-ledger.ts';
import type { Signer } from '../../../../core/ports/signer.ts';
import { noCrls } from '../../../harness/stack/no-crls.ts';
import { createSignHandler } from '../../../../lambdas/sign/handler.ts';
import { createBarrier } from '../../../harness/stack/barrier.ts';
import { certificateOf, postEvent, signedObject } from '../../../harness/stack/deliveries.ts';
import { contents, createCountingAuthority, tbsOf, type CountingAuthority } from '../../../harness/stack/key.ts';
import { cluster, clusterName, createWorld, type World } from '../../../harness/stack/world.ts';
import { noLocks } from '../../../harness/kubernetes/no-locks.ts';

const deliveries = 100;
/** Connections to one ledger file, as many processes would have. */
const ledgers = 4;

let key: CountingAuthority;
let world: World;
let closers: (() => void)[];

beforeAll(async () => {
  key = await createCountingAuthority();
});
beforeEach(() => {
  world = createWorld(key);
  closers = [];
});
afterEach(() => {
  for (const close of closers) close();
  world.close();
});

/** What the ledger said no to, seen on the port. */
interface Observed {
  readonly conditionalFailures: string[];
}

function observed(ledger: CertificateLedger, { conditionalFailures }: Observed): CertificateLedger {
  const note = (method: string, write: LedgerResult): LedgerResult => {
    if (write.kind !== 'written') conditionalFailures.push(`${method} ${write.found.state}`);
    return write;
  };
  return {
    ...ledger,
    open: async (intent) => note('open', await ledger.open(intent)),
    takeOver: async (...args) => note('takeOver', await ledger.takeOver(...args)),
    complete: async (...args) => note('complete', await ledger.complete(...args)),
  };
}

function handlerOver(ledger: CertificateLedger, signer: Signer, now = world.now): HttpHandler {
  return createSignHandler({
    crls: () => noCrls,
    version: 'test',
    caller: loopbackCaller,
    cluster: (name) => (name === clusterName ? cluster : undefined),
    ledger: () => ledger,
    locks: () => noLocks,
    authority: async () => ({ ...key.authority, signer }),
    now,
    randomBytes: (count) => new Uint8Array(randomBytes(count)),
    log: () => {},
  });
}

/** All deliveries of one object at once, through handlers that share the ledger file; busy ones come back. */
async function deliverAll(
  makeHandler: (ledger: CertificateLedger) => HttpHandler,
  observations: Observed,
): Promise<{ first: HttpAnswer[]; final: HttpAnswer[]; uid: string }> {
  const uid = randomUUID();
  const event = postEvent(signedObject(uid));
  const handlers = Array.from({ length: ledgers }, () => {
    const { ledger, close } = world.openLedger();
    closers.push(close);
    return makeHandler(observed(ledger, observations));
  });
  const deliver = (_: unknown, i: number): Promise<HttpAnswer> => handlers[i % ledgers]!(event);
  const first = await Promise.all(Array.from({ length: deliveries }, deliver));
  const final = await Promise.all(
    first.map(async (answer, i) => {
      let last = answer;
      for (let retries = 0; last.statusCode === 503 && retries < 10; retries += 1) last = await deliver(undefined, i);
      return last;
    }),
  );
  return { first, final, uid };
}

async function expectOneCertificate(uid: string, answers: readonly HttpAnswer[]): Promise<void> {
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200));
  const certificates = new Set(answers.map((answer) => certificateOf(answer).toString('hex')));
  expect(certificates.size).toBe(1);
  const record = await world.ledger.find(uid);
  expect(record?.state).toBe('issued');
  expect([...certificates]).toEqual([Buffer.from(record!.certificate!).toString('hex')]);
  expect(contents(key.signed)).toEqual([tbsOf(record!.certificate!)]);
}

describe(`${deliveries} deliveries of one request at once`, () => {
  test('all at the door of the ledger: one record, one signature, one certificate', async () => {
    const observations: Observed = { conditionalFailures: [] };
    const barrier = createBarrier(deliveries);
    const { first, final, uid } = await deliverAll(
      (ledger) =>
        handlerOver(
          { ...ledger, open: async (intent) => (await barrier.pass(), ledger.open(intent)) },
          key.authority.signer,
        ),
      observations,
    );
    expect(barrier.held).toBe(deliveries);
    expect(observations.conditionalFailures.length).toBeGreaterThanOrEqual(deliveries - 1);
    expect(first.filter(({ statusCode }) => statusCode === 503).length).toBeGreaterThan(0);
    await expectOneCertificate(uid, final);
    expect(key.signed).toHaveLength(1);
    expect((await world.ledger.find(uid))?.attempt).toBe(1);
  });

  test('all to take over what a dead worker began: one of them signs, and what it had begun', async () => {
    const uid = randomUUID();
    const event = postEvent(signedObject(uid));
    const death = createBarrier(2);
    const dying = { ...key.authority.signer, sign: async () => (await death.pass(), { bytes: new Uint8Array() }) };
    void handlerOver(world.ledger, dying)(event);
    await death.arrived(1); // and it never continues
    const record = await world.ledger.find(uid);
    expect(record?.state).toBe('intent');

    const later = (): number => world.now() + leaseMilliseconds + 1;
    const observations: Observed = { conditionalFailures: [] };
    const barrier = createBarrier(deliveries);
    const { ledger } = world;
    const seen = observed(ledger, observations);
    const handler = handlerOver(
      { ...seen, takeOver: async (...args) => (await barrier.pass(), seen.takeOver(...args)) },
      key.authority.signer,
      later,
    );
    const answers = await Promise.all(Array.from({ length: deliveries }, () => handler(event)));
    expect(observations.conditionalFailures.filter((failure) => failure.startsWith('takeOver'))).toHaveLength(
      deliveries - 1,
    );
    await expectOneCertificate(uid, [
      ...answers.filter(({ statusCode }) => statusCode !== 503),
      ...(await Promise.all(answers.map(() => handler(event)))),
    ]);
    expect(key.signed).toHaveLength(1);
    expect(contents(key.signed)).toEqual([Buffer.from(record!.tbs).toString('hex')]);
  });

  test('workers slower than their lease sign the same content, and all tell the one that was recorded', async () => {
    const barrier = createBarrier(deliveries);
    let elapsed = 0;
    const slow: Signer = {
      ...key.authority.signer,
      async sign(tbs) {
        const signature = await key.authority.signer.sign(tbs);
        await barrier.pass();
        return signature;
      },
    };
    const observations: Observed = { conditionalFailures: [] };
    const uid = randomUUID();
    const event = postEvent(signedObject(uid));
    const handler = handlerOver(observed(world.ledger, observations), slow, () => world.now() + elapsed);
    const answers: Promise<HttpAnswer>[] = [];
    for (let i = 1; i <= deliveries; i += 1) {
      answers.push(handler(event));
      await barrier.arrived(i);
      elapsed += leaseMilliseconds + 1;
    }
    await expectOneCertificate(uid, await Promise.all(answers));
    expect(key.signed).toHaveLength(deliveries);
    expect(observations.conditionalFailures.filter((failure) => failure === 'complete issued')).toHaveLength(
      deliveries - 1,
    );
  });

  test('of which half carry other content under the UID: the first record wins, the others learn nothing', async () => {
    const uid = randomUUID();
    const barrier = createBarrier(deliveries);
    const { ledger } = world;
    const handler = handlerOver(
      { ...ledger, open: async (intent) => (await barrier.pass(), ledger.open(intent)) },
      key.authority.signer,
    );
    const objects = [signedObject(uid, 'alice'), signedObject(uid, 'mallory')];
    const events = objects.map((object) => postEvent(object));
    await Promise.all(Array.from({ length: deliveries }, (_, i) => handler(events[i % 2]!)));
    const [alice, mallory] = await Promise.all(events.map((event) => handler(event)));
    expect([alice!.statusCode, mallory!.statusCode].toSorted((a, b) => a - b)).toEqual([200, 422]);
    const loser = alice!.statusCode === 422 ? alice! : mallory!;
    expect(loser.body).toContain('UidReused');
    expect(loser.body).not.toContain(Buffer.from((await world.ledger.find(uid))!.certificate!).toString('base64'));
    expect(key.signed).toHaveLength(1);
  });
});
