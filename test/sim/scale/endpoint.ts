/** The signing endpoint of one cluster: front door, function with its environments, and what the function asks. */
import type { JsonObject, SignAnswer, SigningEndpoint } from '../../../core/ports.ts';
import type { Account, World } from './account.ts';
import { Throttled } from './account.ts';
import { clientMilliseconds, dynamodb, lambda, networkMilliseconds, prices } from './numbers.ts';
import { createQuota } from './quota.ts';
import { signDeed } from './sign-function.ts';
import type { Deed, DeedPorts } from './sign-function.ts';
import { spreadOf } from './table.ts';
import type { Table } from './table.ts';

export interface EndpointOptions {
  /** The HTTP API's throttle. */
  readonly throttle: { readonly rate: number; readonly burst: number };
  readonly reservedConcurrency: number;
  readonly certificatePem: string;
  /** What it answers to everybody from … to, in milliseconds. */
  readonly away?: { readonly from: number; readonly until: number; readonly retryAfterSeconds?: number };
}

export function createEndpoint(
  { timeline, random }: World,
  account: Account,
  table: Table,
  options: EndpointOptions,
): SigningEndpoint {
  const chance = random.stream('endpoint');
  const door = createQuota(timeline, options.throttle.rate, options.throttle.burst);
  const calls = createQuota(timeline, options.reservedConcurrency * lambda.callsPerSecondEach);
  const starts = createQuota(timeline, lambda.startsPerTenSeconds / 10, lambda.startsPerTenSeconds);
  const deeds = new Map<string, Deed>();
  /** Environments that have been started and do nothing now; each has loaded its CA or not. */
  const idle: { loaded: boolean }[] = [];
  let environments = 0;
  const busy = (retryAfterSeconds?: number): SignAnswer => ({
    kind: 'busy',
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
  /** As adapters/lambda-log.ts says it. */
  const later = (error: unknown): SignAnswer => busy(error instanceof Throttled ? 1 : 1 + chance.below(4));

  async function answer(uid: string): Promise<SignAnswer> {
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
    const said = await invoke(uid);
    await account.wait(account.within(networkMilliseconds));
    return said;
  }

  async function invoke(uid: string): Promise<SignAnswer> {
    account.counts.lambda.calls += 1;
    const warm = idle.at(-1);
    const room = warm !== undefined || environments < options.reservedConcurrency;
    if (!room || !calls.take() || (warm === undefined && !starts.take()) || !account.enter()) {
      account.counts.lambda.throttled += 1;
      return busy(); // 503 of the front door
    }
    const environment = idle.pop() ?? { loaded: false };
    const begun = timeline.now();
    if (warm === undefined) {
      environments += 1;
      await account.wait(account.within(lambda.coldMilliseconds));
    }
    let said: SignAnswer;
    try {
      said = await serve(uid, environment);
    } catch (error) {
      said = later(error);
    }
    account.leave(timeline.now() - begun);
    idle.push(environment);
    return said;
  }

  async function serve(uid: string, environment: { loaded: boolean }): Promise<SignAnswer> {
    const work = account.within(lambda.workMilliseconds);
    await account.wait(work / 2);
    if (!environment.loaded) {
      // core/ca-authority.ts: the two items of the CA, and at the same time the key's own word.
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
    const outcome = await signDeed(portsOf(uid));
    await account.wait(work / 2);
    if (outcome === 'inProgress') return busy(1);
    return { kind: 'issued', certificatePem: options.certificatePem };
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

  return {
    sign: (object: JsonObject, signal: AbortSignal) =>
      new Promise((resolve, reject) => {
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
        answer(uid).then(
          (said) => end(() => resolve(said)),
          (error: unknown) => end(() => reject(error instanceof Error ? error : new Throttled(String(error)))),
        );
      }),
    attest: async () => {
      throw new Error('nothing is attested here');
    },
  };
}
