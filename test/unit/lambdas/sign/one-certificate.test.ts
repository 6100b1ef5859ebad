/** One certificate per UID: delivered a hundred times at once, and through every failure of every port. */
import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import type { HttpAnswer } from '../../../../adapters/lambda/http.ts';
import { openEmbeddedLedger } from '../../../../adapters/embedded/ledger.ts';
import { leaseMilliseconds } from '../../../../core/sign-once.ts';
import type { CertificateLedger, IssuingRecord, LedgerResult } from '../../../../core/ports/certificate-ledger.ts';
import { createSignHandler } from '../../../../lambdas/sign/handler.ts';
import { visitEveryFault } from '../../../contract/faulty.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import type { Faults } from '../../../contract/faulty.ts';
import { certificatesIn, csrFixture, eventFixture, startStack } from './stack.ts';
import type { Stack } from './stack.ts';

const stacks: Stack[] = [];
afterEach(() => {
  for (const each of stacks.splice(0)) each.close();
});

/** Holds every caller until `count` have arrived. */
function barrier(count: number): () => Promise<void> {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let waiting = 0;
  return async () => {
    waiting += 1;
    if (waiting >= count) open();
    await opened;
  };
}

describe('100 deliveries of one UID, released together at the ledger', () => {
  test('one record, one TBS, one certificate, one signature', async () => {
    const meet = barrier(100);
    const opened: LedgerResult[] = [];
    const completed: LedgerResult[] = [];
    const stack = await startStack({
      wrapLedger: (ledger): CertificateLedger => ({
        ...ledger,
        async open(intent) {
          await meet();
          const written = await ledger.open(intent);
          opened.push(written);
          return written;
        },
        async complete(uid, certificate) {
          const written = await ledger.complete(uid, certificate);
          completed.push(written);
          return written;
        },
      }),
    });
    stacks.push(stack);
    const csr = csrFixture();
    const answers = await Promise.all(Array.from({ length: 100 }, () => stack.post(csr)));

    // The race took place: 100 conditional writes, 99 of which met the first one's record.
    expect(opened.filter(({ kind }) => kind === 'written')).toHaveLength(1);
    expect(opened.filter(({ kind }) => kind !== 'written')).toHaveLength(99);
    expect(completed).toEqual([{ kind: 'written' }]);
    expect(stack.signatures()).toBe(1);

    const issued = answers.filter(({ statusCode }) => statusCode === 200);
    const busy = answers.filter(({ statusCode }) => statusCode === 503);
    expect(issued.length).toBeGreaterThanOrEqual(1);
    expect(issued.length + busy.length).toBe(100);
    const later = await Promise.all(busy.map(() => stack.post(csr)));
    expect(new Set([...issued, ...later].map(({ body }) => body)).size).toBe(1);
    expect(stack.signatures()).toBe(1);
    const record = await stack.ledger.find(csr.metadata.uid);
    expect(record).toMatchObject({ state: 'issued', attempt: 1 });
    expect(record?.certificate).toEqual(new Uint8Array(certificatesIn(issued[0]!)[0]!.raw));
  });

  test('workers that all sign, because each thinks the lease is over, still give out one certificate', async () => {
    const together = barrier(20);
    let asksTheKey = Promise.withResolvers<void>();
    const named = new Map<string, string>();
    const stack = await startStack({
      wrapSigner: (signer) => ({
        ...signer,
        // ECDSA signatures differ each time: twenty certificates of one TBS come into being.
        sign: async (tbs) => {
          asksTheKey.resolve();
          await together();
          const { bytes } = await signer.sign(tbs);
          const requestId = `request-${named.size}`;
          named.set(requestId, Buffer.from(bytes).toString('hex'));
          return { bytes, requestId };
        },
      }),
    });
    stacks.push(stack);
    const csr = csrFixture();
    const answers: Promise<HttpAnswer>[] = [];
    for (let i = 0; i < 20; i++) {
      asksTheKey = Promise.withResolvers();
      answers.push(stack.post(csr));
      // It has the lease: only then can the lease run out.
      await asksTheKey.promise;
      stack.clock.now += leaseMilliseconds + 1;
    }
    const bodies = new Set((await Promise.all(answers)).map(({ statusCode, body }) => `${statusCode} ${body}`));
    expect(stack.signatures()).toBe(20);
    expect(bodies.size).toBe(1);
    expect([...bodies][0]).toMatch(/^200 /);
    const record = await stack.ledger.find(csr.metadata.uid);
    expect(record?.attempt).toBe(20);
    // An auditor who follows the record's name to the log finds the signature in the certificate, not a lost one.
    const signature = named.get(record?.kmsRequestId ?? '') ?? 'none of the twenty';
    expect(Buffer.from(record!.certificate!).toString('hex').endsWith(signature)).toBe(true);
  });
});

describe('every port call failing, before and after it took effect, once or as the end of the process', () => {
  test('single faults and pairs: the request is issued in the end, with one content for its UID', async () => {
    const template = await startStack();
    stacks.push(template);
    const csr = csrFixture();
    let runs = 0;

    async function scenario(faults: Faults): Promise<void> {
      runs += 1;
      const store = openEmbeddedLedger(':memory:');
      const clock = { now: Date.now() };
      const seen: IssuingRecord[] = [];
      const tbsSigned = new Set<string>();
      // A process that crashed is followed by one that is not disturbed any more.
      const handlerOf = (disturbed: boolean) => {
        const wrap = <T extends object>(name: string, port: T): T => (disturbed ? faults.wrap(name, port) : port);
        return createSignHandler({
          ...template.ports,
          now: () => clock.now,
          randomBytes,
          log: () => {},
          ledger: () => wrap('ledger', store.ledger),
          authority: async () => {
            const ca = await wrap('authority', { load: () => template.ports.authority('demo', 'ca') }).load();
            const sign = (tbs: Uint8Array) => {
              tbsSigned.add(Buffer.from(tbs).toString('hex'));
              return ca.signer.sign(tbs);
            };
            return { ...ca, signer: { ...ca.signer, sign: wrap('signer', { sign }).sign } };
          },
        });
      };
      const event = eventFixture({ method: 'POST', path: '/v1/clusters/demo/sign', body: JSON.stringify(csr) });
      let handler = handlerOf(true);
      let restarted = false;
      const answers: HttpAnswer[] = [];
      for (let delivery = 0; delivery < 6; delivery++) {
        // Two lost answers may leave a lease each.
        if (delivery > 2) clock.now += leaseMilliseconds;
        const answer = await handler(event);
        const record = await store.ledger.find(csr.metadata.uid);
        if (record !== undefined) seen.push(record);
        // The answer of a dead process never reached a client.
        if (faults.crashed && !restarted) {
          handler = handlerOf(false);
          restarted = true;
        } else answers.push(answer);
      }

      expect(answers.filter(({ statusCode }) => statusCode !== 200 && statusCode !== 503)).toEqual([]);
      const disclosed = new Set(answers.filter(({ statusCode }) => statusCode === 200).map(({ body }) => body));
      expect(disclosed.size).toBe(1);
      expect(seen.at(-1)?.state).toBe('issued');
      expect(new Set(seen.map(({ tbs }) => Buffer.from(tbs).toString('hex')))).toEqual(tbsSigned);
      expect(tbsSigned.size).toBe(1);
      const [leaf] = certificatesIn({ statusCode: 200, headers: {}, body: [...disclosed][0] ?? '' });
      expect(new Uint8Array(leaf!.raw)).toEqual(seen.at(-1)?.certificate);
      store.close();
    }

    const plans = await visitEveryFault(scenario, { depth: 2, continueEach: byTier({ default: 3, deep: 1 }) });
    const points = new Set(plans.flatMap((plan) => plan.map(({ port, method, time }) => `${port}.${method} ${time}`)));
    // The list comes from the calls themselves; this says that the walk was not empty by accident.
    for (const call of [
      'authority.load',
      'ledger.open',
      'signer.sign',
      'ledger.complete',
      'ledger.takeOver',
      'ledger.release',
    ])
      for (const time of ['before', 'after']) expect(points).toContain(`${call} ${time}`);
    expect(plans.filter((plan) => plan.length === 2).length).toBeGreaterThan(50);
    expect(runs).toBeGreaterThan(plans.length);
  }, 60_000);
});
