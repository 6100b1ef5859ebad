import { describe, expect, test } from 'vitest';
import { kmsClientConfig } from '../../../adapters/aws/kms-client.ts';
import { ledgerClientConfig } from '../../../adapters/dynamodb/ledger.ts';
import { defaultCluster } from '../../../core/configuration/parse.ts';
import { issue } from '../../../core/issue.ts';
import { leaseMilliseconds as realLease } from '../../../core/sign-once.ts';
import { decodeRequestObject } from '../../../core/kubernetes/certificate-signing-request.ts';
import type { CertificateLedger } from '../../../core/ports/certificate-ledger.ts';
import { createSimulatedLedger } from '../../sim/ports/ledger.ts';
import { authorityWith, createAuthorities, userRequest } from '../../sim/actors/requests.ts';
import { dynamodb, kms } from '../../sim/scale/numbers.ts';
import { createQuota } from '../../sim/scale/aws/quota.ts';
import { leaseMilliseconds, signDeed } from '../../sim/scale/aws/sign-function.ts';
import type { Deed } from '../../sim/scale/aws/sign-function.ts';
import { epoch } from '../../sim/runtime.ts';
import { noLocks } from '../../harness/kubernetes/no-locks.ts';

const cluster = defaultCluster('demo', { maxTtlSeconds: 86_400 });
const [simulated] = [...(await createAuthorities()).values()];

/** What each call of the key or the store does in a try, by number; the others succeed. */
interface Try {
  readonly at: number;
  readonly fails?: readonly string[];
}

/** The calls of the real story, try by try. */
async function realCalls(tries: readonly Try[]): Promise<readonly (readonly string[])[]> {
  const store = createSimulatedLedger();
  const decoded = decodeRequestObject({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'r', uid: 'uid-r' },
    spec: {
      request: userRequest('alice', 0),
      signerName: 'kubernetes.io/kube-apiserver-client',
      usages: ['client auth'],
      username: 'alice',
      groups: [],
    },
    status: { conditions: [{ type: 'Approved', status: 'True' }] },
  });
  if (!decoded.ok) throw new Error(decoded.problem.message);
  const told: string[][] = [];
  for (const { at, fails = [] } of tries) {
    const calls: string[] = [];
    const noted = <A extends unknown[], T>(name: string, act: (...asked: A) => Promise<T>) => {
      return async (...asked: A): Promise<T> => {
        calls.push(name);
        if (fails.includes(name)) throw new Error(name);
        return act(...asked);
      };
    };
    const ledger: CertificateLedger = {
      find: noted('find', (uid: string) => store.find(uid)),
      open: noted('open', (...asked: Parameters<CertificateLedger['open']>) =>
        store.open(...asked),
      ) as CertificateLedger['open'],
      takeOver: noted('takeOver', (...asked: Parameters<CertificateLedger['takeOver']>) => store.takeOver(...asked)),
      release: noted('release', (...asked: Parameters<CertificateLedger['release']>) => store.release(...asked)),
      complete: noted('complete', (...asked: Parameters<CertificateLedger['complete']>) => store.complete(...asked)),
      expire: noted('expire', (...asked: Parameters<CertificateLedger['expire']>) => store.expire(...asked)),
    };
    if (simulated === undefined) throw new Error('there is a CA');
    const sign = noted('sign', async (tbs: Uint8Array) => ({ bytes: simulated.sign(tbs) }));
    const authority = authorityWith(simulated, sign);
    const end = await issue(decoded.value, cluster, {
      ledger,
      locks: noLocks,
      authority: async () => authority,
      now: () => epoch + at,
      randomBytes: (count) => new Uint8Array(count).fill(7),
    }).then(
      ({ kind }) => (kind === 'busy' ? 'inProgress' : kind),
      () => 'throws',
    );
    told.push([...calls, end]);
  }
  return told;
}

async function modelCalls(tries: readonly Try[]): Promise<readonly (readonly string[])[]> {
  let deed: Deed | undefined;
  const told: string[][] = [];
  for (const { at, fails = [] } of tries) {
    const calls: string[] = [];
    const note = (name: string): void => {
      calls.push(name);
      if (fails.includes(name)) throw new Error(name);
    };
    const end = await signDeed({
      now: () => at,
      async open(leaseUntil) {
        note('open');
        if (deed !== undefined) return { ...deed };
        deed = { state: 'intent', attempt: 1, leaseUntil };
        return undefined;
      },
      async takeOver(attempt, leaseUntil) {
        note('takeOver');
        deed = { state: 'intent', attempt: attempt + 1, leaseUntil };
        return undefined;
      },
      async release() {
        note('release');
        if (deed !== undefined) deed.leaseUntil = 0;
      },
      async complete() {
        note('complete');
        if (deed !== undefined) deed.state = 'issued';
        return undefined;
      },
      async sign() {
        note('sign');
      },
    }).catch(() => 'throws');
    told.push([...calls, end]);
  }
  return told;
}

describe('the modelled function makes the calls of the real one', () => {
  test.each<readonly [string, readonly Try[], readonly (readonly string[])[]]>([
    ['at first', [{ at: 0 }], [['open', 'sign', 'complete', 'issued']]],
    [
      'when it is asked again',
      [{ at: 0 }, { at: 5_000 }],
      [
        ['open', 'sign', 'complete', 'issued'],
        ['open', 'issued'],
      ],
    ],
    [
      'after a throttled key',
      [{ at: 0, fails: ['sign'] }, { at: 2_000 }],
      [
        ['open', 'sign', 'release', 'throws'],
        ['open', 'takeOver', 'sign', 'complete', 'issued'],
      ],
    ],
    ['when the store is throttled', [{ at: 0, fails: ['open'] }], [['open', 'throws']]],
    [
      'while another may have it',
      [{ at: 0, fails: ['sign', 'release'] }, { at: 2_000 }, { at: 31_000 }],
      [
        ['open', 'sign', 'release', 'throws'],
        ['open', 'inProgress'],
        ['open', 'takeOver', 'sign', 'complete', 'issued'],
      ],
    ],
  ])('%s', async (_, tries, expected) => {
    expect(await realCalls(tries)).toEqual(expected);
    expect(await modelCalls(tries)).toEqual(expected);
  });
});

test('the numbers that are ours are ours', async () => {
  expect(kms.attempts).toBe(1);
  const first = await kmsClientConfig.retryStrategy.acquireInitialRetryToken();
  const throttled = { errorType: 'THROTTLING' };
  await expect(kmsClientConfig.retryStrategy.refreshRetryTokenForRetry(first, throttled)).rejects.toThrow('no retry');
  expect(kms.patienceMilliseconds).toBe(kmsClientConfig.requestHandler.requestTimeout);
  expect(dynamodb.attempts).toBe(ledgerClientConfig.maxAttempts);
  expect(leaseMilliseconds).toBe(realLease);
});

test('a quota lets through what it says, and what is not used is lost beyond a second', () => {
  let now = 0;
  const quota = createQuota({ now: () => now }, 100);
  const passes = (): number => Array.from({ length: 500 }, () => quota.take()).filter(Boolean).length;
  expect(passes()).toBe(100);
  now = 500;
  expect(passes()).toBe(50);
  now = 60_000;
  expect(passes()).toBe(100);
});
