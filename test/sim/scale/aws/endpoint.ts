/** The signing endpoint of one cluster: front door, both functions with their environments, and what they ask. */
import { interpretAttest, interpretSign } from '../../../../adapters/signing-api/answers.ts';
import type { JsonObject } from '../../../../core/ports/kubernetes-api.ts';
import type {
  AttestAnswer,
  AttestVerdict,
  SignAnswer,
  SigningEndpoint,
} from '../../../../core/ports/signing-endpoint.ts';
import type { Account, World } from './account.ts';
import { Throttled } from './account.ts';
import type { Concluded } from './attest-function.ts';
import type { Attestations } from './attestations.ts';
import { createEnvironments } from './environments.ts';
import type { Environment } from './environments.ts';
import { clientMilliseconds, dynamodb, lambda, networkMilliseconds, prices } from '../numbers.ts';
import { createQuota } from './quota.ts';
import { signDeed } from './sign-function.ts';
import type { Deed, DeedPorts } from './sign-function.ts';
import { spreadOf } from './table.ts';
import type { Table } from './table.ts';

export interface EndpointOptions {
  /** The HTTP API's throttle. */
  readonly throttle: { readonly rate: number; readonly burst: number };
  readonly reservedConcurrency: number;
  /** What API Gateway answers if Lambda throttles. AWS documents 500, and 503 was seen. */
  readonly throttledStatus: 500 | 503;
  /** By spec.request. */
  readonly certificates: ReadonlyMap<string, string>;
  /** What it answers to every client from … to, in milliseconds. */
  readonly away?: { readonly from: number; readonly until: number; readonly retryAfterSeconds?: number };
}

type Busy = SignAnswer & AttestAnswer & { readonly kind: 'busy' };

export function createEndpoint(
  { timeline, random }: World,
  account: Account,
  table: Table,
  attestations: Attestations,
  options: EndpointOptions,
): SigningEndpoint {
  const chance = random.stream('endpoint');
  const door = createQuota(timeline, options.throttle.rate, options.throttle.burst);
  const signs = createEnvironments({ timeline }, account, options.reservedConcurrency);
  const attests = createEnvironments({ timeline }, account, options.reservedConcurrency);
  const deeds = new Map<string, Deed>();
  /** Of the front door, which gives no reason. */
  const busy = (retryAfterSeconds?: number): Busy => ({
    kind: 'busy',
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
  /** Lambda started no environment. */
  const notStarted = {
    status: options.throttledStatus,
    headers: {},
    body: Buffer.from('{"message":"Internal Server Error"}'),
  };
  /** As adapters/lambda/log.ts says it. */
  const later = (error: unknown): Busy =>
    error instanceof Throttled
      ? { kind: 'busy', why: 'Throttled', retryAfterSeconds: 1 }
      : { kind: 'busy', why: 'Unavailable', retryAfterSeconds: 1 + chance.below(4) };

  /** Through the front door, which all functions of a cluster share. */
  async function enter<T>(serve: () => Promise<T>): Promise<T | Busy> {
    const { away } = options;
    await account.wait(account.within(networkMilliseconds));
    const now = timeline.now();
    account.counts.frontDoor.calls += 1;
    if (away !== undefined && now >= away.from && now < away.until) {
      account.counts.frontDoor.throttled += 1;
      await account.wait(account.within(networkMilliseconds));
      return busy(away.retryAfterSeconds);
    }
    if (!door.take()) {
      account.counts.frontDoor.throttled += 1;
      await account.wait(account.within(networkMilliseconds));
      return busy();
    }
    account.pay(prices.httpCall);
    const said = await serve();
    await account.wait(account.within(networkMilliseconds));
    return said;
  }

  const signed = (uid: string, request: string): Promise<SignAnswer> =>
    enter(async () => {
      const said = await signs((environment) => serve(uid, request, environment).catch(later));
      return said ?? interpretSign(notStarted);
    });

  const attested = (uid: string): Promise<AttestAnswer> =>
    enter(async () => {
      const said = await attests(() => oracle(uid).catch(later));
      return said ?? interpretAttest(notStarted);
    });

  async function oracle(uid: string): Promise<AttestAnswer> {
    const work = account.within(lambda.workMilliseconds);
    await account.wait(work / 2);
    const verdict = await attestations.attest(uid);
    await account.wait(work / 2);
    return { kind: 'verdict', verdict: verdicts[verdict] };
  }

  async function serve(uid: string, request: string, environment: Environment): Promise<SignAnswer> {
    const work = account.within(lambda.workMilliseconds);
    await account.wait(work / 2);
    if (!environment.loaded) {
      // core/ca/authority.ts: the two items of the CA, and at the same time the key's own word.
      const items = async (): Promise<void> => {
        await table.read(1);
        await table.read(1);
      };
      const [read, asked] = await Promise.allSettled([items(), account.publicKey()]);
      if (read.status === 'rejected') throw read.reason;
      if (asked.status === 'rejected') throw asked.reason;
      environment.loaded = true;
      account.started();
    }
    await attestations.standing(uid);
    const outcome = await signDeed(portsOf(uid));
    await account.wait(work / 2);
    if (outcome === 'inProgress') return { kind: 'busy', why: 'InProgress', retryAfterSeconds: 1 };
    const certificatePem = options.certificates.get(request);
    if (certificatePem === undefined) throw new Error('a request of none of the kinds');
    return { kind: 'issued', certificatePem };
  }

  function portsOf(uid: string): DeedPorts {
    const spread = spreadOf(uid);
    const intent = dynamodb.intentUnits;
    return {
      now: () => timeline.now(),
      async open(leaseUntil) {
        const known = deeds.get(uid);
        if (known !== undefined) {
          await table.check(spread, intent);
          const { state, attempt, leaseUntil: until } = known;
          return { state, attempt, leaseUntil: until };
        }
        await table.write(spread, intent);
        // Two may have been on their way: the first one has it.
        const other = deeds.get(uid);
        if (other !== undefined) return { ...other };
        deeds.set(uid, { state: 'intent', attempt: 1, leaseUntil });
        return undefined;
      },
      async takeOver(attempt, leaseUntil) {
        await table.write(spread, intent);
        const deed = known(uid);
        if (deed.state !== 'intent' || deed.attempt !== attempt) return { ...deed };
        Object.assign(deed, { attempt: attempt + 1, leaseUntil });
        return undefined;
      },
      async release(attempt) {
        await table.write(spread, intent);
        const deed = known(uid);
        if (deed.state === 'intent' && deed.attempt === attempt) deed.leaseUntil = 0;
      },
      async complete() {
        await table.write(spread, dynamodb.recordUnits);
        const deed = known(uid);
        if (deed.state === 'issued') return { ...deed };
        deed.state = 'issued';
        return undefined;
      },
      sign: () => account.sign(),
    };
  }

  function known(uid: string): Deed {
    const deed = deeds.get(uid);
    if (deed === undefined) throw new Error('what is changed was opened');
    return deed;
  }

  /** As adapters/signing-api/client.ts. */
  function post<T>(
    object: JsonObject,
    signal: AbortSignal,
    answer: (uid: string, request: string) => Promise<T>,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      let over = false;
      const end = (settle: () => void): void => {
        if (over) return;
        over = true;
        cancel();
        signal.removeEventListener('abort', aborted);
        settle();
      };
      const aborted = (): void => end(() => reject(new Error('aborted')));
      const cancel = timeline.after(clientMilliseconds, () => end(() => reject(new Error('no answer in time'))));
      signal.addEventListener('abort', aborted);
      const { uid } = object['metadata'] as { readonly uid: string };
      const { request } = object['spec'] as { readonly request: string };
      answer(uid, request).then(
        (said) => end(() => resolve(said)),
        (error: unknown) => end(() => reject(error instanceof Error ? error : new Throttled(String(error)))),
      );
    });
  }

  return {
    sign: (object, signal) => post(object, signal, signed),
    attest: (object, _context, signal) => post(object, signal, attested),
  };
}

const verdicts: Readonly<Record<Concluded, AttestVerdict>> = {
  approve: {
    decision: 'approve',
    message: '',
    annotations: { 'countersign.dev/identity': 'aws#aws/111122223333/eu-central-1/i-0123456789abcdef0' },
  },
  deny: { decision: 'deny', reason: 'AttestationInvalid', message: 'too old', annotations: {} },
};
