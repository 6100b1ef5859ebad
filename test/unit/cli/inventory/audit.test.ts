/** `countersign audit reconcile` over records of core/issue.ts and log files as CloudTrail writes them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../run.ts';
import { day } from './ledger.ts';
import { eventOf, key, now, seconds, signedAt, twoCertificates } from './trail.ts';

test('log files and an export, without a call to AWS: each signature has its record', async () => {
  const { log, reconcile } = await twoCertificates();
  log(eventOf('kms-1'), eventOf('kms-2'), eventOf('kms-2'), eventOf('crl-1', 'ca'));
  const { code, out, err } = await reconcile('-o', 'json');
  expect([code, err]).toEqual([0, '']);
  expect(JSON.parse(out)).toMatchObject({
    signatures: 3,
    recorded: 2,
    openIntents: [],
    caFunction: [{ requestId: 'crl-1', signature: { ca: 'nodes', action: 'crl' } }],
    gaps: [],
  });
  expect((await reconcile()).out).toContain('Nothing is unaccounted for.');
});

test('a signature without a record, and a record without a signature: an alarm that names them', async () => {
  const { log, reconcile, records } = await twoCertificates();
  log(eventOf('kms-1'), eventOf('crl-1', 'ca'), eventOf('stolen', 'thief'));
  const { code, out } = await reconcile('-o', 'json');
  expect(code).toBe(1);
  const { gaps } = JSON.parse(out) as {
    gaps: { kind: string; record?: { uid: string }; event?: { principal: string } }[];
  };
  const [{ uid }] = [records[1]];
  expect(gaps.filter(({ kind }) => kind === 'noEvent')).toMatchObject([{ record: { uid, kmsRequestId: 'kms-2' } }]);
  expect(gaps.some(({ kind, event }) => kind === 'noRecord' && event?.principal.endsWith('role/thief'))).toBe(true);
  const table = await reconcile();
  expect([table.code, table.out]).toEqual([
    1,
    expect.stringMatching(/ALARM: no record +by arn:aws:iam::111122223333:role\/thief/),
  ]);
});

test('a signature of the ca function without a record is an alarm, and so is a record without its signature', async () => {
  const { log, reconcile, exportWith, signature } = await twoCertificates();
  log(eventOf('kms-1'), eventOf('kms-2'), eventOf('crl-9', 'ca'));
  const ran = await reconcile();
  expect(ran.code).toBe(1);
  expect(ran.out).toMatch(/ALARM: no record +by arn:aws:iam::111122223333:role\/ca +crl-9\n/);
  expect(ran.out).toMatch(/ALARM: no signature +ca function, crl of nodes +crl-1\n/);
  // Begun, and its answer lost: the record explains it.
  const { kmsRequestId: _, ...begun } = signature;
  exportWith(begun);
  const open = await reconcile();
  expect([open.code, open.out]).toEqual([0, expect.stringMatching(/open intent +ca function, crl of nodes +crl-9\n/)]);
  const json = JSON.parse((await reconcile('-o', 'json')).out) as object;
  expect(json).toMatchObject({ openIntents: [{ requestId: 'crl-9', signature: { id: begun.id } }] });
  // A cut export is refused: a signature that is missing would be an alarm, one too many hides nothing.
  exportWith();
  expect((await reconcile()).code).toBe(1);
});

test('what cannot be read is an error, and never nothing', async () => {
  const { log, logs, reconcile } = await twoCertificates();
  log(eventOf('kms-1'), eventOf('kms-2'), eventOf('crl-1', 'ca'));
  const broken = join(logs, 'b.json');
  writeFileSync(broken, '{"Records": [{"eventSource": "kms.amazonaws.com", "eventName": "Sign"}]}');
  expect(await reconcile()).toMatchObject({ code: 3, err: expect.stringContaining('names no event') as string });
  writeFileSync(broken, '{}');
  expect(await reconcile()).toMatchObject({ code: 3, err: expect.stringContaining('it has no Records') as string });
  writeFileSync(broken, '{"Records": []}');
  expect(await reconcile()).toMatchObject({ code: 0 });
  writeFileSync(join(logs, 'c.json.gz'), 'no gzip');
  expect(await reconcile()).toMatchObject({ code: 3, err: expect.stringContaining('cannot be expanded') as string });
  expect(await reconcile('--logs', '/nonexistent')).toMatchObject({ code: 4 });
});

test('an export of another time is refused: its records would be missing', async () => {
  const { log, reconcile } = await twoCertificates();
  log(eventOf('kms-1'), eventOf('kms-2'), eventOf('crl-1', 'ca'));
  const early = await reconcile('--from', seconds(signedAt - 3 * day));
  expect(early).toMatchObject({ code: 3, err: expect.stringContaining('and not all that were signed') as string });
});

test('without log files CloudTrail’s event history is asked; a cluster of this machine has none', async () => {
  const asked: object[] = [];
  const flags = ['--key', key, '--sign-role', 's', '--ca-role', 'r', '--cluster', 'demo'];
  const { code } = await run(['audit', 'reconcile', ...flags], {
    world: {
      now: () => now,
      openTrace: async () => ({
        findRecord: async () => undefined,
        findSerial: async () => undefined,
        findVerdict: async () => undefined,
        async *listByExpiry(range) {
          yield* [];
          asked.push(range);
        },
        async *listAudit() {},
        findRevocation: async () => undefined,
        async *listRevocations() {},
        async *listSignatures(range) {
          yield* [];
          asked.push({ signatures: range });
        },
        output: async () => undefined,
        searchLog: async () => undefined,
        close() {},
      }),
      async *lookUpSignatures(search) {
        yield* [];
        asked.push(search);
      },
    },
  });
  const to = now - 30 * 60_000;
  expect([code, asked]).toEqual([
    0,
    [
      { from: to - day, to: to + 366 * day },
      // A record is written shortly before its signature.
      { signatures: { from: to - day - 300_000, to } },
      { region: undefined, from: to - day, to },
    ],
  ]);
  expect(await run(['audit', 'reconcile', '--data', '/nonexistent'])).toMatchObject({ code: 2 });
});
