/** The modelled attest function, call by call beside the real one over the real adapters, stores and evidence. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedRetries } from '../../../adapters/aws/ec2.ts';
import { ledgerClientConfig } from '../../../adapters/dynamodb/ledger.ts';
import type { AttestationStore } from '../../../core/ports/attestation-store.ts';
import type { AwsPorts } from '../../../core/attestation/aws/endpoints.ts';
import { storyClusters } from '../../contract/attested-story.ts';
import {
  openSite,
  provedRequest,
  requestFor,
  signers,
  startAwsPlatform,
} from '../../harness/attestation/attested-site.ts';
import type { AwsPlatform } from '../../harness/attestation/attested-site.ts';
import { newKey } from '../../harness/x509/requests.ts';
import { callsOf } from '../../suites/control-plane/counting/budget.ts';
import { attestProof, attestServing } from '../../sim/scale/aws/attest-function.ts';
import type { Concluded } from '../../sim/scale/aws/attest-function.ts';
import { attestation, dynamodb, ec2 } from '../../sim/scale/numbers.ts';
import { descriptionLasts } from '../../../core/attestation/evidence/last-description.ts';

let platform: AwsPlatform;
beforeAll(async () => {
  platform = await startAwsPlatform();
});
afterAll(() => platform.close());

/** What the calls of a try do; the others succeed. `at`: milliseconds after the evidence was made. */
interface Try {
  /** Of the stock kubelet, for the serving certificate of the machine that joined before. */
  readonly serving?: true;
  readonly at: number;
  readonly fails?: string;
  /** So many claims meet another machine's claim. */
  readonly beaten?: number;
}
type Calls = readonly (readonly string[])[];

async function realCalls(tries: readonly Try[]): Promise<Calls> {
  const name = `worker-${Math.random().toString(36).slice(2, 8)}`;
  const instance = platform.launch(name, { privateIp: '10.0.0.7' });
  const object = provedRequest(platform, instance, { node: name, key: newKey('P-256') });
  const madeAt = platform.now();
  let [at, calls, fails, beaten]: [number, string[], string | undefined, number] = [0, [], undefined, 0];
  const noted = <A extends unknown[], T>(call: string, act: (...asked: A) => Promise<T>) => {
    return async (...asked: A): Promise<T> => {
      calls.push(call);
      if (fails === call) throw new Error(call);
      return act(...asked);
    };
  };
  const site = await openSite({ clusters: storyClusters, aws: platform.ports, now: () => madeAt + at });
  const { sts, ec2: instances, regionCertificates } = platform.ports;
  const aws: AwsPorts = {
    sts: noted('callerIdentity', sts),
    ec2: {
      describeInstance: noted('describeInstance', (...asked: Parameters<typeof instances.describeInstance>) =>
        instances.describeInstance(...asked),
      ),
    },
    regionCertificates,
  };
  const store = (real: AttestationStore): AttestationStore => ({
    findVerdict: noted('findVerdict', (uid, now) => real.findVerdict(uid, now)),
    findLock: noted('findLock', (subject) => real.findLock(subject)),
    findIdentity: noted('findIdentity', (identity) => real.findIdentity(identity)),
    findNode: noted('findNode', (node) => real.findNode(node)),
    findMachine: noted('findMachine', (name) => real.findMachine(name)),
    lookup: noted('lookup', (question) => real.lookup(question)),
    recall: noted('recall', (...asked) => real.recall(...asked)),
    observe: noted('observe', (record) => real.observe(record)),
    retire: noted('retire', (...asked) => real.retire(...asked)),
    countRefusal: noted('countRefusal', (count) => real.countRefusal(count)),
    claim: noted('claim', async (claim, now) => {
      if (beaten > 0) {
        beaten -= 1;
        return { kind: 'changed' };
      }
      return real.claim(claim, now);
    }),
  });
  try {
    const functions = site.functions({ aws, store });
    const told: string[][] = [];
    for (const each of tries) {
      [at, calls, fails, beaten] = [each.at, [], each.fails, each.beaten ?? 0];
      const asked = each.serving === true ? servingOf(name) : object;
      const { said } = await functions.attest(asked);
      told.push([...calls, said === 'approve' || said === 'busy' ? said : 'deny']);
    }
    return told;
  } finally {
    site.close();
  }
}

const servingOf = (node: string) =>
  requestFor({ node, by: 'node', signerName: signers.serving, csr: { sans: { ip: ['10.0.0.7'] } } });

async function modelCalls(tries: readonly Try[]): Promise<Calls> {
  let verdict: Concluded | undefined;
  let seenAt: number | undefined;
  const told: string[][] = [];
  for (const { at, fails, serving, beaten = 0 } of tries) {
    const calls: string[] = [];
    if (serving === true) verdict = undefined;
    let left = beaten;
    const note = async (call: string): Promise<void> => {
      calls.push(call);
      if (fails === call) throw new Error(call);
    };
    const asking = serving === true ? attestServing : attestProof;
    const end = await asking({
      seen: () => seenAt !== undefined && at - seenAt < attestation.seenMilliseconds,
      findLock: () => note('findLock'),
      async recall() {
        await note('recall');
        return verdict;
      },
      fresh: () => at <= attestation.freshMilliseconds,
      lookup: () => note('lookup'),
      callerIdentity: () => note('callerIdentity'),
      async describeInstance() {
        await note('describeInstance');
        seenAt = at;
      },
      async claim(wanted) {
        await note('claim');
        if (left > 0) {
          left -= 1;
          return 'changed';
        }
        verdict = wanted;
        return undefined;
      },
    }).catch(() => 'busy');
    told.push([...calls, end]);
  }
  return told;
}

/** The locks of the key and of the node, and at the same time the verdict. */
const locks = ['findLock', 'findLock', 'recall'];
const asked = [...locks, 'lookup', 'callerIdentity', 'describeInstance'];

describe('the modelled function makes the calls of the real one', () => {
  test.each<readonly [string, readonly Try[], Calls]>([
    ['at first', [{ at: 0 }], [[...asked, 'claim', 'approve']]],
    [
      'when it is asked again',
      [{ at: 0 }, { at: 5_000 }],
      [
        [...asked, 'claim', 'approve'],
        [...locks, 'approve'],
      ],
    ],
    [
      'after EC2 was throttled',
      [{ at: 0, fails: 'describeInstance' }, { at: 2_000 }],
      [
        [...asked, 'busy'],
        [...asked, 'claim', 'approve'],
      ],
    ],
    ['when STS is throttled', [{ at: 0, fails: 'callerIdentity' }], [[...locks, 'lookup', 'callerIdentity', 'busy']]],
    ['when the store is throttled', [{ at: 0, fails: 'lookup' }], [[...locks, 'lookup', 'busy']]],
    [
      'with evidence that has grown old',
      [{ at: 301_000 }, { at: 302_000 }],
      [
        [...locks, 'claim', 'deny'],
        [...locks, 'deny'],
      ],
    ],
    [
      'when its kubelet then asks for a serving certificate',
      [
        { at: 0 },
        { at: attestation.seenMilliseconds - 1, serving: true },
        { at: attestation.seenMilliseconds, serving: true },
      ],
      [
        [...asked, 'claim', 'approve'],
        [...locks, 'lookup', 'claim', 'approve'],
        [...locks, 'lookup', 'describeInstance', 'claim', 'approve'],
      ],
    ],
    [
      'when others claim at the same time',
      [{ at: 0, beaten: 2 }],
      [[...asked, 'claim', 'lookup', 'claim', 'lookup', 'claim', 'approve']],
    ],
    [
      'when others never cease to',
      [{ at: 0, beaten: 9 }],
      [[...asked, 'claim', 'lookup', 'claim', 'lookup', 'claim', 'lookup', 'claim', 'busy']],
    ],
  ])('%s', async (_, tries, expected) => {
    expect(await realCalls(tries)).toEqual(expected);
    expect(await modelCalls(tries)).toEqual(expected);
  });
});

test('the numbers that are ours are ours', async () => {
  expect(ec2.attempts).toBe(1);
  expect(attestation.seenMilliseconds).toBe(descriptionLasts);
  expect(attestation.patienceMilliseconds).toBe(attestation.freshMilliseconds);
  const first = await sharedRetries.acquireInitialRetryToken();
  const throttled = { errorType: 'THROTTLING' } as const;
  await expect(sharedRetries.refreshRetryTokenForRetry(first, throttled)).rejects.toThrow('no retry is left');
  expect(dynamodb.attempts).toBe(ledgerClientConfig.maxAttempts);
});

/** The items of a call of attest about a node that joins, which the counting suites hold to the code. */
function itemsOf(action: string, way: 'proved' | 'servingSeen' = 'proved'): readonly number[] {
  const start = `DynamoDB of attest: ${action} `;
  return Object.keys(callsOf(way))
    .filter((call) => call.startsWith(start))
    .map((call) => call.slice(start.length).split(' ').length);
}

test('the units are those of the counted items, and in a transaction twice as many', () => {
  expect([attestation.recallUnits]).toEqual(itemsOf('BatchGetItem'));
  expect([attestation.lookUnits / 2]).toEqual(itemsOf('TransactGetItems'));
  expect([attestation.claimItems]).toEqual(itemsOf('TransactWriteItems'));
  const { holderUnits, servingLookUnits, servingItems } = attestation;
  expect([holderUnits / 2, servingLookUnits / 2]).toEqual(itemsOf('TransactGetItems', 'servingSeen'));
  expect([servingItems]).toEqual(itemsOf('TransactWriteItems', 'servingSeen'));
});
