/**
 * What every CertificateLedger must do, whatever it is made of: core/ports/ as tests. The embedded store and the one
 * in DynamoDB run the same suite.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type {
  CertificateLedger,
  FreshKey,
  Intent,
  IssuingRecord,
  LedgerResult,
  OpenResult,
} from '../../core/ports/certificate-ledger.ts';

export interface LedgerUnderTest {
  readonly ledger: CertificateLedger;
  /** Another handle on the same store, as a second process or a restarted one would open it. */
  readonly reopen: () => Promise<CertificateLedger>;
  /** Another cluster's ledger. */
  readonly other: CertificateLedger;
  readonly close: () => Promise<void>;
}

/** A fresh intent; each test uses UIDs of its own, so that the suite also runs on a table that is not empty. */
export function intentFixture(change: Partial<Intent> = {}): Intent {
  return {
    uid: randomUUID(),
    requestDigest: randomBytes(32).toString('hex'),
    caKeyId: `embedded:${randomBytes(32).toString('hex')}`,
    tbs: new Uint8Array(randomBytes(700)),
    serial: randomBytes(16).toString('hex'),
    notAfter: 1_800_000_000_123,
    openedAt: 1_700_000_000_456,
    leaseUntil: 1_700_000_030_456,
    ...change,
  };
}

const later = 1_700_000_090_789;
const certificate = new Uint8Array(randomBytes(900));
const kmsRequestId = randomUUID();
const otherCertificate = new Uint8Array(randomBytes(901));

/** How a record got where a test finds it. */
type State = 'none' | 'intent' | 'intent, second attempt' | 'intent, released' | 'issued' | 'expired';
/** What a test then does to it. */
type Action =
  | 'open again'
  | 'open with other content'
  | 'takeOver'
  | 'takeOver of another attempt'
  | 'release'
  | 'release of another attempt'
  | 'complete'
  | 'complete, with the name of the signature'
  | 'expire'
  | 'expire of another attempt';
/** `=`: refused, record unchanged. `!`: throws. `.`: no effect and no answer. Otherwise what the write changed. */
type Effect = '=' | '!' | '.' | 'opened' | 'next attempt' | 'lease ended' | 'issued' | 'issued by name' | 'expired';

const intents = {
  'open again': '=',
  'open with other content': '=',
  takeOver: 'next attempt',
  'takeOver of another attempt': '=',
  release: 'lease ended',
  'release of another attempt': '.',
  complete: 'issued',
  'complete, with the name of the signature': 'issued by name',
  expire: 'expired',
  'expire of another attempt': '=',
} as const satisfies Record<Action, Effect>;

const ended = {
  'open again': '=',
  'open with other content': '=',
  takeOver: '=',
  'takeOver of another attempt': '=',
  release: '.',
  'release of another attempt': '.',
  complete: '=',
  'complete, with the name of the signature': '=',
  expire: '=',
  'expire of another attempt': '=',
} as const satisfies Record<Action, Effect>;

const transitions: Record<State, Record<Action, Effect>> = {
  none: {
    'open again': 'opened',
    'open with other content': 'opened',
    // Nothing but a mistake of the caller leads here: there is no record to give.
    takeOver: '!',
    'takeOver of another attempt': '!',
    release: '.',
    'release of another attempt': '.',
    complete: '!',
    'complete, with the name of the signature': '!',
    expire: '!',
    'expire of another attempt': '!',
  },
  intent: intents,
  'intent, second attempt': intents,
  'intent, released': intents,
  issued: ended,
  expired: ended,
};

export function certificateLedgerContract(name: string, make: () => Promise<LedgerUnderTest>): void {
  describe(`CertificateLedger contract: ${name}`, () => {
    let made: LedgerUnderTest;
    let ledger: CertificateLedger;
    beforeAll(async () => {
      made = await make();
      ledger = made.ledger;
    });
    afterAll(() => made.close());

    describe.each(Object.entries(transitions))('a record that is %s', (state, actions) => {
      test.each(Object.entries(actions))('%s: %s', async (action, effect) => {
        const intent = intentFixture();
        const before = await bring(ledger, intent, state as State);
        const answer = await attempt(() => act(ledger, intent, before?.attempt ?? 1, action as Action));
        const begun = { ...contentOf(intent, action as Action), state: 'intent', attempt: 1 } as const;
        const expected = outcomeOf(effect, before, begun);
        expect(answer).toEqual(expected.answer);
        expect(await ledger.find(intent.uid)).toEqual(expected.record);
      });
    });

    describe('a key that must be fresh', () => {
      const written = { kind: 'written' };
      const keyUsed = { kind: 'keyUsed' };
      const keyFixture = (change: Partial<FreshKey> = {}): FreshKey => ({
        spkiSha256: randomBytes(32).toString('hex'),
        requestSha256: randomBytes(32).toString('hex'),
        ...change,
      });
      /** Refused: no intent was written, and so the UID is still free. */
      const refuses = async (intent: Intent, key: FreshKey): Promise<void> => {
        expect(await ledger.open(intent, key)).toEqual(keyUsed);
        expect(await ledger.find(intent.uid)).toBeUndefined();
      };

      test('is taken by the first intent that brings it, and by no other', async () => {
        const [key, first] = [keyFixture(), intentFixture({ identity: 'aws#i-1' })];
        expect(await ledger.open(first, key)).toEqual(written);
        expect(await ledger.find(first.uid)).toEqual({ ...first, state: 'intent', attempt: 1 });
        const others = keyFixture({ spkiSha256: key.spkiSha256 });
        await refuses(intentFixture(), others);
        await refuses(intentFixture({ identity: 'aws#i-1' }), others);
        await ledger.complete(first.uid, certificate);
        await refuses(intentFixture(), others);
        expect(await ledger.open(intentFixture(), keyFixture())).toEqual(written);
      });

      test('stays taken when its intent ends without a certificate, and in every other handle', async () => {
        const [key, first] = [keyFixture(), intentFixture()];
        await ledger.open(first, key);
        await ledger.expire(first.uid, 1);
        const again = await made.reopen();
        const intent = intentFixture();
        expect(await again.open(intent, keyFixture({ spkiSha256: key.spkiSha256 }))).toEqual(keyUsed);
        expect(await made.other.open(intent, key)).toEqual(written);
      });

      test('may come again with the very same bytes, as often as they come', async () => {
        const key = keyFixture();
        for (let i = 0; i < 3; i += 1) expect(await ledger.open(intentFixture(), key)).toEqual(written);
        await refuses(intentFixture(), keyFixture({ spkiSha256: key.spkiSha256 }));
      });

      test('may come again for the machine that brought it first, while its caller allows that', async () => {
        const [identity, spkiSha256] = [`aws#${randomUUID()}`, keyFixture().spkiSha256];
        const own = () => keyFixture({ spkiSha256, identity });
        expect(await ledger.open(intentFixture({ identity }), own())).toEqual(written);
        expect(await ledger.open(intentFixture({ identity }), own())).toEqual(written);
        await refuses(intentFixture({ identity }), keyFixture({ spkiSha256 }));
        const other = `${identity}0`;
        await refuses(intentFixture({ identity: other }), keyFixture({ spkiSha256, identity: other }));
        expect(await ledger.open(intentFixture({ identity }), own())).toEqual(written);
      });

      test('that an intent without an identity brought first has no identity for good, also when a machine brings the same bytes later', async () => {
        const [identity, key] = [`aws#${randomUUID()}`, keyFixture()];
        await ledger.open(intentFixture(), key);
        expect(await ledger.open(intentFixture({ identity }), { ...key, identity })).toEqual(written);
        await refuses(intentFixture({ identity }), keyFixture({ spkiSha256: key.spkiSha256, identity }));
      });

      test('keeps the bytes of its first request: those of an exception are no exception themselves', async () => {
        const [identity, first] = [`aws#${randomUUID()}`, keyFixture()];
        await ledger.open(intentFixture({ identity }), first);
        const second = keyFixture({ spkiSha256: first.spkiSha256 });
        expect(await ledger.open(intentFixture({ identity }), { ...second, identity })).toEqual(written);
        await refuses(intentFixture({ identity }), second);
        expect(await ledger.open(intentFixture({ identity }), first)).toEqual(written);
      });

      test('does not stand before the record of its UID, which is told as ever', async () => {
        const [key, first] = [keyFixture(), intentFixture()];
        await ledger.open(first, key);
        const found = { ...first, state: 'intent', attempt: 1 };
        const used = keyFixture({ spkiSha256: key.spkiSha256 });
        for (const each of [key, used, keyFixture(), undefined])
          expect(await ledger.open({ ...first, requestDigest: 'bb' }, each)).toEqual({ kind: 'found', found });
        // And a UID that was there leaves no mark of the key that came with it.
        const late = keyFixture();
        await ledger.open(first, late);
        expect(await ledger.open(intentFixture(), keyFixture({ spkiSha256: late.spkiSha256 }))).toEqual(written);
      });

      test('is not asked for where none is given', async () => {
        const intent = intentFixture();
        expect(await ledger.open(intent, undefined)).toEqual(written);
        expect(await ledger.find(intent.uid)).toEqual({ ...intent, state: 'intent', attempt: 1 });
      });

      test('50 intents of other bytes with one key at once: one is written', async () => {
        const handles = [ledger, await made.reopen()] as const;
        const spkiSha256 = keyFixture().spkiSha256;
        const intents = Array.from({ length: 50 }, () => intentFixture());
        const answers: readonly OpenResult[] = await Promise.all(
          intents.map((intent, i) => handles[i % 2 === 0 ? 0 : 1].open(intent, keyFixture({ spkiSha256 }))),
        );
        expect(answers.filter((answer) => answer.kind === 'written')).toHaveLength(1);
        expect(answers.filter((answer) => answer.kind === 'keyUsed')).toHaveLength(49);
        const found = await Promise.all(intents.map(({ uid }) => ledger.find(uid)));
        expect(found.flatMap((record, i) => (record === undefined ? [] : [i]))).toEqual(
          answers.flatMap(({ kind }, i) => (kind === 'written' ? [i] : [])),
        );
      });
    });

    test('a worker that lost the lease may still complete: all sign the same bytes', async () => {
      const intent = intentFixture();
      await ledger.open(intent);
      await ledger.takeOver(intent.uid, 1, later);
      expect(await ledger.complete(intent.uid, certificate)).toEqual({ kind: 'written' });
    });

    test('a worker that lost the lease can neither end it, nor take it back, nor expire the record', async () => {
      const intent = intentFixture();
      await ledger.open(intent);
      await ledger.takeOver(intent.uid, 1, later);
      await ledger.release(intent.uid, 1);
      const held = { ...intent, state: 'intent', attempt: 2, leaseUntil: later };
      expect(await ledger.takeOver(intent.uid, 1, later + 1)).toEqual({ kind: 'found', found: held });
      expect(await ledger.expire(intent.uid, 1)).toEqual({ kind: 'found', found: held });
      expect(await ledger.find(intent.uid)).toEqual(held);
    });

    test('the record names the invocation that got the lease last', async () => {
      const intent = intentFixture({ lambdaRequestId: 'first' });
      const { uid } = intent;
      const named = async () => (await ledger.find(uid))?.lambdaRequestId;
      await ledger.open(intent);
      expect(await named()).toBe('first');
      await ledger.takeOver(uid, 2, later, 'of another attempt');
      expect(await named()).toBe('first');
      await ledger.takeOver(uid, 1, later, 'second');
      await ledger.release(uid, 2);
      expect(await named()).toBe('second');
      await ledger.takeOver(uid, 2, later);
      expect(await named()).toBeUndefined();
      await ledger.takeOver(uid, 3, later, 'fourth');
      await ledger.complete(uid, certificate);
      expect(await named()).toBe('fourth');
    });

    test('bytes, digits and names come back exactly', async () => {
      const everyByte = Uint8Array.from({ length: 256 }, (_, value) => value);
      for (const change of [
        { tbs: everyByte },
        { tbs: Uint8Array.of(0) },
        { tbs: new Uint8Array(randomBytes(100_000)) },
        { serial: `00${'f'.repeat(38)}` },
        { serial: '0123' },
        { uid: `A.b:c-${randomUUID()}${'9'.repeat(211)}` },
        { caKeyId: 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab' },
        { notAfter: 253_402_300_799_999, openedAt: 0, leaseUntil: 1 },
        { identity: 'aws:111122223333:eu-central-1:i-0123456789abcdef0' },
      ]) {
        const intent = intentFixture(change);
        await ledger.open(intent);
        expect(await ledger.find(intent.uid)).toEqual({ ...intent, state: 'intent', attempt: 1 });
        await ledger.complete(intent.uid, everyByte);
        expect((await ledger.find(intent.uid))?.certificate).toEqual(everyByte);
      }
    });

    test('a view into a larger buffer is stored as the view', async () => {
      const buffer = randomBytes(64);
      const intent = intentFixture({ tbs: buffer.subarray(10, 20) });
      await ledger.open(intent);
      await ledger.complete(intent.uid, buffer.subarray(30, 33));
      const found = await ledger.find(intent.uid);
      expect(Buffer.from(found?.tbs ?? [])).toEqual(buffer.subarray(10, 20));
      expect(Buffer.from(found?.certificate ?? [])).toEqual(buffer.subarray(30, 33));
    });

    test('what a caller does to its own bytes later changes nothing', async () => {
      const intent = intentFixture({ tbs: Uint8Array.of(1, 2, 3) });
      await ledger.open(intent);
      intent.tbs.fill(9);
      (await ledger.find(intent.uid))?.tbs.fill(8);
      expect((await ledger.find(intent.uid))?.tbs).toEqual(Uint8Array.of(1, 2, 3));
    });

    test('UIDs that differ in case or by a suffix are different records', async () => {
      const uid = `Case-${randomUUID()}`;
      for (const each of [uid, uid.toLowerCase(), `${uid}0`])
        expect(await ledger.open(intentFixture({ uid: each }))).toEqual({ kind: 'written' });
      await ledger.complete(uid, certificate);
      expect((await ledger.find(uid.toLowerCase()))?.state).toBe('intent');
      expect((await ledger.find(`${uid}0`))?.state).toBe('intent');
    });

    test('another cluster knows nothing of it', async () => {
      const intent = intentFixture();
      await ledger.open(intent);
      expect(await made.other.find(intent.uid)).toBeUndefined();
      expect(await made.other.open({ ...intent, requestDigest: 'aa' })).toEqual({ kind: 'written' });
      expect((await ledger.find(intent.uid))?.requestDigest).toBe(intent.requestDigest);
    });

    test('its identity stays with the record to its end, whichever that is', async () => {
      for (const state of ['intent, second attempt', 'intent, released', 'issued', 'expired'] as const)
        expect(await bring(ledger, intentFixture({ identity: 'tpm:ek-1' }), state)).toMatchObject({
          identity: 'tpm:ek-1',
        });
    });

    test('another handle sees each write as soon as it has returned, in every state', async () => {
      const again = await made.reopen();
      for (const state of Object.keys(transitions) as State[]) {
        const intent = intentFixture();
        const record = await bring(ledger, intent, state);
        expect(await again.find(intent.uid)).toEqual(record);
      }
    });

    test('100 concurrent opens of one UID: one is written, 99 get that one', async () => {
      const handles = [ledger, await made.reopen()] as const;
      const uid = randomUUID();
      const intents = Array.from({ length: 100 }, () => intentFixture({ uid }));
      const answers = await Promise.all(intents.map((intent, i) => handles[i % 2 === 0 ? 0 : 1].open(intent)));
      const { winner } = oneWinner(answers);
      const record = { ...intents[winner], state: 'intent', attempt: 1 };
      expect(foundBy(answers)).toEqual(Array.from({ length: 99 }, () => record));
      expect(await ledger.find(uid)).toEqual(record);
    });

    test('calls made together answer each for itself: a mistake among them takes no other along', async () => {
      const [first, second] = [intentFixture(), intentFixture()];
      const settled = await Promise.allSettled([
        ledger.open(first),
        ledger.complete(randomUUID(), certificate),
        ledger.open({ ...first, requestDigest: 'aa' }),
        ledger.open(second),
        ledger.release(first.uid, 1),
      ]);
      expect(settled.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'fulfilled',
        'fulfilled',
      ]);
      const found = await Promise.all([first, second].map(({ uid }) => ledger.find(uid)));
      expect(found.map((record) => record?.requestDigest)).toContain(second.requestDigest);
      expect(found.map((record) => record?.state)).toEqual(['intent', 'intent']);
    });

    test('50 concurrent takeovers of one attempt: one is written, the attempt counts by one', async () => {
      const handles = [ledger, await made.reopen()] as const;
      const intent = intentFixture();
      await ledger.open(intent);
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => handles[i % 2 === 0 ? 0 : 1].takeOver(intent.uid, 1, later + i)),
      );
      const { winner } = oneWinner(answers);
      expect(await ledger.find(intent.uid)).toMatchObject({ attempt: 2, leaseUntil: later + winner });
    });

    test('50 concurrent completions with different bytes: one certificate, and all losers are given it', async () => {
      const handles = [ledger, await made.reopen()] as const;
      const intent = intentFixture();
      await ledger.open(intent);
      const certificates = Array.from({ length: 50 }, () => new Uint8Array(randomBytes(40)));
      const answers = await Promise.all(
        certificates.map((bytes, i) => handles[i % 2 === 0 ? 0 : 1].complete(intent.uid, bytes)),
      );
      const { winner } = oneWinner(answers);
      const record = { ...intent, state: 'issued', attempt: 1, certificate: certificates[winner] };
      expect(foundBy(answers)).toEqual(Array.from({ length: 49 }, () => record));
    });

    test('complete against expire against takeOver, 40 times: exactly one end, never both', async () => {
      const again = await made.reopen();
      for (let round = 0; round < 40; round++) {
        const intent = intentFixture();
        await ledger.open(intent);
        const actions = [
          () => ledger.complete(intent.uid, certificate),
          () => again.expire(intent.uid, 1),
          () => ledger.takeOver(intent.uid, 1, later),
        ];
        const order = [0, 1, 2].map((i) => (i + round) % 3);
        const answers = await Promise.all(order.map(async (i) => ({ i, answer: await actions[i]?.() })));
        const written = new Set(answers.filter(({ answer }) => answer?.kind === 'written').map(({ i }) => i));
        const found = await ledger.find(intent.uid);
        // takeOver and complete may both be written, in that order; complete and expire never.
        expect(written.has(0) && written.has(1)).toBe(false);
        expect(found?.state).toBe(written.has(0) ? 'issued' : written.has(1) ? 'expired' : 'intent');
        expect(found?.certificate).toEqual(written.has(0) ? certificate : undefined);
      }
    });
  });
}

/** Brings a new record into a state by the port's own methods and gives it as found. */
async function bring(ledger: CertificateLedger, intent: Intent, state: State): Promise<IssuingRecord | undefined> {
  if (state !== 'none') await ledger.open(intent);
  if (state === 'intent, second attempt') await ledger.takeOver(intent.uid, 1, later - 1);
  if (state === 'intent, released') await ledger.release(intent.uid, 1);
  // Other bytes than the actions use, so that an overwrite would be seen.
  if (state === 'issued') await ledger.complete(intent.uid, otherCertificate, 'another-request');
  if (state === 'expired') await ledger.expire(intent.uid, 1);
  const found = await ledger.find(intent.uid);
  expect(found?.state).toBe(state === 'none' ? undefined : state.split(',')[0]);
  return found;
}

function contentOf(intent: Intent, action: Action): Intent {
  return action === 'open with other content'
    ? {
        ...intent,
        requestDigest: 'ff'.repeat(32),
        tbs: Uint8Array.of(6, 6, 6),
        serial: '66',
        caKeyId: 'embedded:other',
      }
    : intent;
}

async function act(
  ledger: CertificateLedger,
  intent: Intent,
  current: number,
  action: Action,
): Promise<LedgerResult | void> {
  const { uid } = intent;
  switch (action) {
    case 'open again':
    case 'open with other content':
      return ledger.open(contentOf(intent, action));
    case 'takeOver':
      return ledger.takeOver(uid, current, later);
    case 'takeOver of another attempt':
      return ledger.takeOver(uid, current + 1, later);
    case 'release':
      return ledger.release(uid, current);
    case 'release of another attempt':
      return ledger.release(uid, current + 1);
    case 'complete':
      return ledger.complete(uid, certificate);
    case 'complete, with the name of the signature':
      return ledger.complete(uid, certificate, kmsRequestId);
    case 'expire':
      return ledger.expire(uid, current);
    case 'expire of another attempt':
      return ledger.expire(uid, current + 1);
  }
}

type Answer = { readonly gave: LedgerResult | void } | 'threw';

/** Rejected, never thrown from the call itself: a caller that does `.catch` must see it. */
async function attempt(work: () => Promise<LedgerResult | void>): Promise<Answer> {
  const promise = work();
  return promise.then(
    (gave) => ({ gave }),
    () => 'threw' as const,
  );
}

/** What an effect looks like from outside: the answer to the caller, and the record found afterwards. */
function outcomeOf(
  effect: Effect,
  before: IssuingRecord | undefined,
  begun: IssuingRecord,
): { answer: Answer; record: IssuingRecord | undefined } {
  if (effect === 'opened') return { answer: { gave: { kind: 'written' } }, record: begun };
  if (effect === '!') return { answer: 'threw', record: before };
  if (effect === '.') return { answer: { gave: undefined }, record: before };
  if (before === undefined) throw new Error(`the table says "${effect}" of a record that does not exist`);
  switch (effect) {
    case '=':
      return { answer: { gave: { kind: 'found', found: before } }, record: before };
    case 'lease ended':
      return { answer: { gave: undefined }, record: { ...before, leaseUntil: 0 } };
    case 'next attempt':
      return {
        answer: { gave: { kind: 'written' } },
        record: { ...before, attempt: before.attempt + 1, leaseUntil: later },
      };
    case 'issued':
      return { answer: { gave: { kind: 'written' } }, record: { ...before, state: 'issued', certificate } };
    case 'issued by name':
      return {
        answer: { gave: { kind: 'written' } },
        record: { ...before, state: 'issued', certificate, kmsRequestId },
      };
    case 'expired':
      return { answer: { gave: { kind: 'written' } }, record: { ...before, state: 'expired' } };
  }
}

function oneWinner(answers: readonly LedgerResult[]): { winner: number } {
  const winners = answers.flatMap(({ kind }, i) => (kind === 'written' ? [i] : []));
  expect(winners).toHaveLength(1);
  return { winner: winners[0] ?? -1 };
}

function foundBy(answers: readonly LedgerResult[]): readonly IssuingRecord[] {
  return answers.flatMap((answer) => (answer.kind === 'written' ? [] : [answer.found]));
}
