/**
 * What a record in the ledger answers to a later delivery of the same UID: after a crash, after a change of the CA or of the
 * policy, and when two workers meet. The races themselves are in one-certificate.test.ts.
 */
import { X509Certificate } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { embeddedSigner } from '../../../../adapters/embedded/signer.ts';
import type { Authority } from '../../../../core/x509/leaf-certificate.ts';
import { defaultCluster } from '../../../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../../../core/configuration/model/cluster.ts';
import { leaseMilliseconds } from '../../../../core/sign-once.ts';
import type { CertificateLedger } from '../../../../core/ports/certificate-ledger.ts';
import type { Profile } from '../../../../core/policy/profile.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { certificatesIn, csrFixture, errorIn, outcomeOf, startStack } from './stack.ts';
import type { Stack } from './stack.ts';

const hour = 3_600_000;
const day = 24 * hour;

const stacks: Stack[] = [];
afterEach(() => {
  for (const each of stacks.splice(0)) each.close();
});

interface World {
  readonly stack: Stack;
  /** Signatures asked of the key. */
  readonly signatures: () => number;
  /** What the next delivery meets; each may be replaced between two deliveries. */
  readonly next: {
    authority: Authority;
    profile: Partial<Profile>;
    failKey: boolean;
    ledger: Partial<CertificateLedger>;
  };
}

async function authorityNamed(commonName: string, intermediates: readonly Uint8Array[] = []): Promise<Authority> {
  const ca = await createTestAuthority(commonName);
  const certificate = new Uint8Array(new X509Certificate(ca.certificatePem).raw);
  return { name: 'ca', certificate, intermediates, signer: embeddedSigner(ca.keyPem) };
}

async function startWorld(): Promise<World> {
  const next: World['next'] = {
    authority: await authorityNamed('first ca'),
    profile: {},
    failKey: false,
    ledger: {},
  };
  let signatures = 0;
  const plain = defaultCluster('demo', { maxTtlSeconds: 86_400 });
  const cluster = (): ClusterConfiguration => ({
    ...plain,
    profiles: new Map([...plain.profiles].map(([name, profile]) => [name, { ...profile, ...next.profile }])),
  });
  const stack = await startStack({
    cluster: (name) => (name === 'demo' ? cluster() : undefined),
    authority: () =>
      Promise.resolve({
        ...next.authority,
        signer: {
          ...next.authority.signer,
          sign: (tbs) => {
            if (next.failKey) return Promise.reject(new Error('the key does not answer'));
            signatures += 1;
            return next.authority.signer.sign(tbs);
          },
        },
      }),
    wrapLedger: (ledger) => ({ ...ledger, ...next.ledger }),
  });
  stacks.push(stack);
  return { stack, next, signatures: () => signatures };
}

/** A delivery that dies after the intent is written: the key does not answer. */
async function beginOnly({ stack, next }: World, csr: object): Promise<void> {
  next.failKey = true;
  expect((await stack.post(csr)).statusCode).toBe(503);
  next.failKey = false;
}

const codeOf = (answer: Parameters<typeof errorIn>[0]) => errorIn(answer).details?.causes[0]?.reason;

describe('an intent that was left behind', () => {
  test('is signed by the next delivery: the same bytes', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    await beginOnly(world, csr);
    const intent = await world.stack.ledger.find(csr.metadata.uid);
    world.stack.clock.now += hour;
    const [leaf] = certificatesIn(await world.stack.post(csr));
    expect(leaf?.serialNumber.toLowerCase()).toBe(intent?.serial);
  });

  test.each<[string, (world: World) => Promise<void> | void]>([
    [
      'another CA key is in force',
      async ({ next }) => {
        next.authority = await authorityNamed('second ca');
      },
    ],
    [
      'more than half of the life it promises is over',
      ({ stack }) => {
        stack.clock.now += 12.5 * hour;
      },
    ],
    [
      'the profile now gives less than the recorded bytes promise',
      ({ next }) => {
        next.profile = { maxTtlSeconds: 7200 };
      },
    ],
  ])('is given up when %s, once and for good', async (_, change) => {
    const world = await startWorld();
    const csr = csrFixture();
    await beginOnly(world, csr);
    await change(world);
    world.stack.clock.now += 1;
    expect(codeOf(await world.stack.post(csr))).toBe('IntentExpired');
    expect((await world.stack.ledger.find(csr.metadata.uid))?.state).toBe('expired');
    expect(codeOf(await world.stack.post(csr))).toBe('IntentExpired');
    expect(world.signatures()).toBe(0);
  });

  test('is still signed just before half of its life is over, and by a clock that was set back a little', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    await beginOnly(world, csr);
    world.stack.clock.now += 11.5 * hour;
    expect(outcomeOf(await world.stack.post(csr))).toBe('issued');
    const other = csrFixture();
    await beginOnly(world, other);
    world.stack.clock.now -= 60_000;
    expect(outcomeOf(await world.stack.post(other))).toBe('issued');
  });

  test('is left to the worker that holds its lease', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    world.next.ledger = { release: () => Promise.resolve() };
    await beginOnly(world, csr);
    world.stack.clock.now += leaseMilliseconds - 1;
    const answer = await world.stack.post(csr);
    expect([answer.statusCode, errorIn(answer).retryAfterSeconds]).toEqual([503, 1]);
    world.stack.clock.now += 1;
    expect(outcomeOf(await world.stack.post(csr))).toBe('issued');
  });

  test('stays unsigned while a rule forbids it, and other content under its UID is told nothing of it', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    await beginOnly(world, csr);
    world.next.profile = { keys: ['RSA'] };
    expect(codeOf(await world.stack.post(csr))).toBe('KeyNotPermitted');
    const other = csrFixture({ metadata: { uid: csr.metadata.uid } });
    expect(codeOf(await world.stack.post(other))).toBe('UidReused');
    expect(world.signatures()).toBe(0);
  });
});

describe('two workers at one intent', () => {
  test('the one that meets a record given up meanwhile says so', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    const { ledger } = world.stack;
    world.next.ledger = {
      complete: async (uid) => {
        await ledger.expire(uid, 1);
        return ledger.complete(uid, new Uint8Array(1));
      },
    };
    expect(codeOf(await world.stack.post(csr))).toBe('IntentExpired');
  });

  test('the one that is overtaken when it gives an intent up answers what it finds', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    await beginOnly(world, csr);
    const { ledger } = world.stack;
    const stored = new Uint8Array((await createTestAuthority('any certificate')).certificatePem.length);
    world.stack.clock.now += 13 * hour;
    world.next.ledger = {
      expire: async (uid, attempt) => {
        await ledger.complete(uid, stored);
        return ledger.expire(uid, attempt);
      },
    };
    expect(outcomeOf(await world.stack.post(csr))).toBe('issued');
  });

  test('the one whose intent is taken over while it gives it up waits', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    await beginOnly(world, csr);
    const { ledger } = world.stack;
    world.stack.clock.now += 13 * hour;
    world.next.ledger = {
      expire: async (uid, attempt) => {
        await ledger.takeOver(uid, attempt, world.stack.clock.now + leaseMilliseconds);
        return ledger.expire(uid, attempt);
      },
    };
    expect((await world.stack.post(csr)).statusCode).toBe(503);
  });

  test('the one that takes over too late waits', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    await beginOnly(world, csr);
    const { ledger } = world.stack;
    world.stack.clock.now += leaseMilliseconds;
    world.next.ledger = {
      takeOver: async (uid, attempt, leaseUntil) => {
        await ledger.takeOver(uid, attempt, leaseUntil);
        return ledger.takeOver(uid, attempt, leaseUntil);
      },
    };
    expect((await world.stack.post(csr)).statusCode).toBe(503);
  });

  test('the one that completes second while the record is an intent again waits', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    const { ledger } = world.stack;
    world.next.ledger = {
      complete: async (uid) => {
        const found = await ledger.find(uid);
        if (found === undefined) throw new Error('no record');
        return { kind: 'found', found };
      },
    };
    expect((await world.stack.post(csr)).statusCode).toBe(503);
  });
});

describe('a certificate on record', () => {
  test('is answered although a rule forbids the request today', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    const [first] = certificatesIn(await world.stack.post(csr));
    world.next.profile = { keys: ['RSA'] };
    const [again] = certificatesIn(await world.stack.post(csr));
    expect(again?.fingerprint256).toBe(first?.fingerprint256);
    const other = csrFixture({ metadata: { uid: csr.metadata.uid } });
    expect(codeOf(await world.stack.post(other))).toBe('UidReused');
  });

  test('is answered without another write, also after the lease of its intent', async () => {
    const { stack, next } = await startWorld();
    const csr = csrFixture();
    const [first] = certificatesIn(await stack.post(csr));
    stack.clock.now += leaseMilliseconds + 1;
    const noWrite = () => Promise.reject(new Error('a repeat wrote to the ledger'));
    next.ledger = { expire: noWrite, takeOver: noWrite };
    const [second] = certificatesIn(await stack.post(csr));
    expect(second?.fingerprint256).toBe(first?.fingerprint256);
  });

  test('comes with the intermediates of its own CA, and of no other', async () => {
    const world = await startWorld();
    const middle = await authorityNamed('middle ca');
    const withChain = { ...world.next.authority, intermediates: [middle.certificate] };
    world.next.authority = withChain;
    const csr = csrFixture();
    const chain = certificatesIn(await world.stack.post(csr));
    expect(chain.map(({ subject }) => subject)).toEqual([expect.stringContaining('system:node:n1'), 'CN=middle ca']);
    world.next.authority = { ...(await authorityNamed('second ca')), intermediates: [middle.certificate] };
    expect(certificatesIn(await world.stack.post(csr))).toHaveLength(1);
    world.next.authority = withChain;
    expect(certificatesIn(await world.stack.post(csr))).toHaveLength(2);
  });

  test('that cannot be read back is an error, not an answer', async () => {
    const world = await startWorld();
    const csr = csrFixture();
    await world.stack.post(csr);
    const { ledger } = world.stack;
    world.next.ledger = {
      open: async (intent) => {
        const write = await ledger.open(intent);
        if (write.kind === 'written') return write;
        const { certificate: _, ...found } = write.found;
        return { kind: 'found', found };
      },
    };
    const answer = await world.stack.post(csr);
    expect(answer.statusCode).toBe(503);
    expect(answer.body).not.toContain('BEGIN CERTIFICATE');
    expect(world.stack.log.at(-1)?.error).toMatchObject({ name: 'CertificateDefectError' });
  });
});

describe('a CA whose time is over', () => {
  test('signs nothing', async () => {
    const world = await startWorld();
    world.stack.clock.now += 2 * day;
    const answer = await world.stack.post(csrFixture());
    expect(answer.statusCode).toBe(503);
    expect(world.stack.log.at(-1)?.error).toMatchObject({ name: 'CertificateDefectError' });
  });
});

describe('fresh keys', () => {
  test('a key that was certified before is refused, the same request is answered again', async () => {
    const world = await startWorld();
    world.next.profile = { freshKeys: true };
    const csr = csrFixture();
    expect(outcomeOf(await world.stack.post(csr))).toBe('issued');
    expect(outcomeOf(await world.stack.post(csr))).toBe('issued');
    const sameBytes = csrFixture({ spec: { request: csr.spec.request } });
    expect(outcomeOf(await world.stack.post(sameBytes))).toBe('issued');
    // Signed anew with the same key: other bytes.
    const sameKey = csrFixture({ request: { subject: { O: 'system:nodes', CN: 'system:node:n2' } } });
    expect(codeOf(await world.stack.post(sameKey))).toBe('KeyReused');
  });
});
