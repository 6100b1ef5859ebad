/** One seed, from its beginning to its end: a life with faults for a while, then none until everything has come to an end. */
import { insecureProvider } from '../../core/attestation/evidence/insecure.ts';
import { createNullPlatform } from '../harness/attestation/null-provider.ts';
import { createSimulatedAttestations } from './attestations.ts';
import { createAuthorizer } from './authorizer.ts';
import type { Counts } from './coverage.ts';
import { createEndpoint } from './endpoint.ts';
import { createFunctions } from './functions.ts';
import { createHouse } from './house.ts';
import { createJudge } from './judge.ts';
import { createSimulatedLedger } from './ledger.ts';
import { settleMachines } from './machines.ts';
import { settleOperator } from './operator.ts';
import { settleOwnSigner } from './own-signer.ts';
import { settlePeople } from './people.ts';
import { createRandom } from './random.ts';
import type { Random } from './random.ts';
import { startRelays } from './relays.ts';
import { createRequests } from './request-api.ts';
import type { SimulatedRequests } from './request-api.ts';
import type { SimulatedAuthorities } from './requests.ts';
import { createStage } from './stage.ts';
import type { FaultRates } from './stage.ts';
import { settleThief, settleWebhook } from './thief.ts';
import { createLives } from './town.ts';
import type { MachineFacts, Truth } from './truth.ts';

export interface Outcome {
  readonly seed: number;
  /** What was broken; absent = nothing. */
  readonly failure?: string;
  /** Virtual. */
  readonly milliseconds: number;
  readonly steps: number;
  readonly requests: number;
  readonly issued: number;
  readonly failed: number;
  readonly lines: readonly string[];
}

/** As long as everything may take to come to an end when nothing fails any more. */
const quietMilliseconds = 3_600_000;
/** Answers on their way when all is answered may still do harm. */
const afterwardsMilliseconds = 60_000;
const mostSteps = 200_000;

export interface Watching {
  /** Whether the story is kept. It changes nothing. */
  readonly telling?: boolean;
  /** What was met is added to these. */
  readonly counts?: Counts;
}

export async function simulate(
  seed: number,
  authorities: SimulatedAuthorities,
  { telling = false, counts = new Map() }: Watching = {},
): Promise<Outcome> {
  const random = createRandom(`seed ${seed}`);
  const rates = ratesOf(random.stream('rates'));
  const stage = createStage(random, rates, telling, counts);
  const house = createHouse(random.stream('house'), rates.until);
  stage.tell(() => `seed ${seed}: ${describe(rates)}; ${house.words}`);
  if (!house.leased) stage.count('trouble: two leaders');
  if (rates.skew > 0) stage.count(`trouble: clocks ${skewWords[rates.skew] ?? ''} off`);

  const ledger = createSimulatedLedger();
  const attestations = createSimulatedAttestations();
  const platform = createNullPlatform({ allowRestart: house.allowRestart, listed: house.listed });
  const authorizer = createAuthorizer();
  const truths = new Map<string, Truth>();
  const facts = new Map<string, MachineFacts>();
  const judge = createJudge({
    stage,
    house,
    ledger,
    attestations,
    authorities,
    truths,
    facts,
    requests: () => requests,
  });
  const choice = random.stream('choices');
  const requests: SimulatedRequests = createRequests(stage, judge, authorizer.permits, choice.pick([2, 3, 500]));
  const providers = [platform.provider, insecureProvider];
  const invoke = createFunctions(stage, { house, ledger, store: attestations.store, providers, authorities }, judge);
  const connect = createEndpoint(stage, invoke);
  startRelays({
    stage,
    requests,
    connect,
    house,
    options: {
      concurrency: choice.pick([1, 2, 8]),
      inFlightPerRequester: choice.pick([1, 4, 24]),
      graceMilliseconds: 5_000,
    },
  });
  const life = createLives({
    stage,
    house,
    platform,
    attestations,
    requests,
    authorizer,
    connect,
    judge,
    truths,
    facts,
  });
  const machines = settleMachines(life('machines'));
  settlePeople(life('people'));
  settleOwnSigner(life('own signer'));
  settleOperator(life('operator'), machines);
  settleWebhook(life('webhook'));
  settleThief(life('thief'), machines);
  for (const { from, demands, ca } of house.epochs.slice(1))
    stage.timeline.after(from, () => {
      stage.count(`step: rules: ${ca === house.at(from - 1).ca ? 'enforced from now on' : 'another CA'}`);
      const modes = [...demands].map(([signerName, { mode }]) => `${signerName} ${mode}`);
      stage.tell(() => `new rules: ${modes.join(', ')}, signed by ${ca}`);
    });

  let steps = 0;
  let over: number | undefined;
  while (stage.failure === undefined && (await stage.timeline.step())) {
    steps += 1;
    if (stage.troubled()) continue;
    const now = stage.timeline.now();
    const open = judge.unfinished();
    over = open.length > 0 ? undefined : (over ?? now);
    if (over !== undefined && now - over > afterwardsMilliseconds) break;
    if (now - rates.until > quietMilliseconds || steps > mostSteps) stage.fail(`does not end: ${open.join('; ')}`);
  }
  const objects = requests.objects();
  const issued = objects.filter(({ status }) => status['certificate'] !== undefined).length;
  const failed = objects.filter(({ status }) => JSON.stringify(status).includes('"Failed"')).length;
  stage.tell(() => `the end: ${issued} issued, ${failed} failed, of ${objects.length}`);
  const { failure, lines } = stage;
  return {
    seed,
    ...(failure === undefined ? {} : { failure }),
    milliseconds: stage.timeline.now(),
    steps,
    requests: truths.size,
    issued,
    failed,
    lines,
  };
}

/** Some seeds have one kind of trouble, some have all of it, some little. */
function ratesOf(random: Random): FaultRates {
  const rate = (most: number): number => (random.chance(0.35) ? 0 : most * random.next() ** 2);
  return {
    until: random.between(30_000, 120_000),
    crash: rate(0.08),
    lost: rate(0.25),
    throttled: rate(0.15),
    late: rate(0.1),
    slow: rate(0.1),
    forbidden: rate(0.1),
    pause: rate(0.02),
    duplicate: rate(0.4),
    watch: rate(0.3),
    staleList: rate(0.8),
    // From synchronised to wrong; the last is more than sign allows for (clockLeewayMilliseconds, five minutes).
    skew: random.pick([0, 50, 2_000, 120_000, 1_200_000]),
  };
}

/** As the coverage names them. */
const skewWords: Readonly<Record<number, string>> = {
  50: '50 ms',
  2_000: '2 s',
  120_000: '2 min',
  1_200_000: '20 min',
};

function describe(rates: FaultRates): string {
  return Object.entries(rates)
    .map(([name, rate]) => `${name} ${Number((rate as number).toFixed(3))}`)
    .join(', ');
}
