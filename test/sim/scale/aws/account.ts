/** What all clusters of an account and region share: the quotas of KMS, STS and EC2, the concurrency of Lambda, and the bill. */
import type { Random } from '../../random.ts';
import type { Timeline } from '../../../harness/determinism/virtual-time.ts';
import { ec2, kms, lambda, prices, sts } from '../numbers.ts';
import { createQuota } from './quota.ts';
import type { Quota } from './quota.ts';

/** Calls that were made, and how many of them were told to slow down. */
export interface Count {
  calls: number;
  throttled: number;
}
export const services = ['frontDoor', 'lambda', 'kms', 'kmsPublicKey', 'dynamodb', 'apiServer', 'sts', 'ec2'] as const;
export type Service = (typeof services)[number];

export interface AccountOptions {
  readonly signaturesPerSecond: number;
  readonly concurrency: number;
  readonly describes: { readonly perSecond: number; readonly atOnce: number };
  /** KMS answers no call from … to, in milliseconds. */
  readonly outage?: readonly [number, number];
}

/** Time and chance of a run: nothing in the models has any other. */
export interface World {
  readonly timeline: Timeline;
  readonly random: Random;
}

export class Throttled extends Error {
  override readonly name = 'Throttled';
}

export type Account = ReturnType<typeof createAccount>;

export function createAccount({ timeline, random }: World, options: AccountOptions) {
  const counts = Object.fromEntries(services.map((service) => [service, { calls: 0, throttled: 0 }])) as Record<
    Service,
    Count
  >;
  const signatures = createQuota(timeline, options.signaturesPerSecond);
  const publicKeys = createQuota(timeline, kms.publicKeysPerSecond);
  const identities = createQuota(timeline, sts.callsPerSecond);
  const describes = createQuota(timeline, options.describes.perSecond, options.describes.atOnce);
  const chance = random.stream('account');
  let dollars = 0;
  let running = 0;
  let mostRunning = 0;
  let starts = 0;

  const wait = (milliseconds: number): Promise<void> =>
    new Promise((resolve) => void timeline.after(milliseconds, resolve));
  const within = ([least, most]: readonly [number, number]): number => chance.between(least, most);

  /** Throws when told to slow down: counted, never billed. */
  function counted(service: Service, let_through: boolean): void {
    counts[service].calls += 1;
    if (let_through) return;
    counts[service].throttled += 1;
    throw new Throttled(service);
  }

  async function kmsCall(service: 'kms' | 'kmsPublicKey', price: number): Promise<void> {
    const milliseconds = within(kms.milliseconds);
    await wait(milliseconds / 2);
    const [from, to] = options.outage ?? [0, 0];
    const now = timeline.now();
    if (now >= from && now < to) {
      counts[service].calls += 1;
      await wait(kms.patienceMilliseconds);
      throw new Error('KMS does not answer');
    }
    const letThrough = (service === 'kms' ? signatures : publicKeys).take();
    await wait(milliseconds / 2);
    counted(service, letThrough);
    dollars += price;
  }

  async function ask(service: 'sts' | 'ec2', milliseconds: number, quota: Quota): Promise<void> {
    await wait(milliseconds / 2);
    const letThrough = quota.take();
    await wait(milliseconds / 2);
    counted(service, letThrough);
  }

  return {
    counts,
    wait,
    within,
    chance,
    counted,
    sign: () => kmsCall('kms', prices.sign),
    publicKey: () => kmsCall('kmsPublicKey', prices.publicKey),
    callerIdentity: () => ask('sts', within(sts.milliseconds), identities),
    describeInstance: () => ask('ec2', within(ec2.milliseconds), describes),
    pay(amount: number): void {
      dollars += amount;
    },
    dollars: () => dollars,
    /** One more call under way in any function, if the account may have one. */
    enter(): boolean {
      if (running >= options.concurrency) return false;
      running += 1;
      mostRunning = Math.max(mostRunning, running);
      return true;
    },
    leave(milliseconds: number): void {
      running -= 1;
      dollars +=
        prices.invocation + prices.logs + (milliseconds / 1_000) * lambda.memoryGigabytes * prices.gigabyteSecond;
    },
    /** An environment is ready. */
    started(): void {
      starts += 1;
    },
    starts: () => starts,
    mostRunning: () => mostRunning,
  };
}
