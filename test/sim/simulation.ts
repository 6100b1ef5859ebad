/** One seed, from its beginning to its end: a life with faults for a while, then none until everything has come to an end. */
import { insecureProvider } from '../../core/attestation/evidence/insecure.ts';
import { createNullPlatform } from '../harness/attestation/null-provider.ts';
import { createSimulatedAttestations } from './ports/attestations.ts';
import { createAuthorizer } from './ports/authorizer.ts';
import type { Counts } from './coverage.ts';
import { createEndpoint } from './ports/endpoint.ts';
import { createFleetPlan } from './fleet-plan.ts';
import { createFunctions } from './ports/functions.ts';
import { caNames, createScenario } from './scenario.ts';
import type { InForce } from './scenario.ts';
import { createOracle } from './oracle/oracle.ts';
import { createSimulatedLedger } from './ports/ledger.ts';
import { createMachineObjects } from './ports/machine-objects.ts';
import { createMaintenance } from './ports/maintenance.ts';
import { settleMachines } from './actors/machines.ts';
import { settleClusterApi } from './actors/cluster-api.ts';
import { settleFleet } from './actors/fleet.ts';
import { settleOperator } from './actors/operator.ts';
import { settleOwnSigner } from './actors/own-signer.ts';
import { startUsers } from './actors/users.ts';
import { createRandom } from './random.ts';
import type { Random } from './random.ts';
import { startRelays } from './actors/relays.ts';
import { createRequests } from './ports/request-api.ts';
import type { SimulatedRequests } from './ports/request-api.ts';
import type { SimulatedAuthorities } from './actors/requests.ts';
import { createRuntime } from './runtime.ts';
import type { FaultRates, Runtime } from './runtime.ts';
import { startAttacker, settleWebhook } from './actors/attacker.ts';
import { createLives } from './actors/simulated-cluster.ts';
import type { MachineFacts, GroundTruth } from './ground-truth.ts';

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
  /** Whether the trace is kept. It changes nothing. */
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
  const first = ratesOf(random.stream('rates'));
  const fleet = createFleetPlan(random.stream('fleet'), first.until);
  const rates: FaultRates = { ...first, later: fleet?.faults ?? [] };
  const runtime = createRuntime(random, rates, telling, counts);
  const scenario = createScenario(random.stream('house'), rates.until);
  runtime.tell(() => `seed ${seed}: ${describe(rates)}; ${scenario.words}${fleet === undefined ? '' : '; a fleet'}`);
  if (!scenario.leased) runtime.count('trouble: two leaders');
  if (rates.skew > 0) runtime.count(`trouble: clocks ${skewWords[rates.skew] ?? ''} off`);

  const ledger = createSimulatedLedger();
  const attestations = createSimulatedAttestations();
  // The kubelet of a node reports its machine.
  const providerIdOf = (node: string): string | undefined => attestations.names.get(node)?.replace('#', ':///');
  const objects = scenario.clusterApi
    ? createMachineObjects(runtime, random.stream('objects'), providerIdOf)
    : undefined;
  const platform = createNullPlatform({
    allowRestart: scenario.allowRestart,
    listed: scenario.listed,
    tpm: scenario.tpm,
    reuses: scenario.reuses,
  });
  const authorizer = createAuthorizer();
  const truths = new Map<string, GroundTruth>();
  const facts = new Map<string, MachineFacts>();
  const oracle = createOracle({
    runtime,
    scenario,
    ledger,
    attestations,
    authorities,
    truths,
    facts,
    requests: () => requests,
    objects,
  });
  const choice = random.stream('choices');
  const requests: SimulatedRequests = createRequests(runtime, oracle, authorizer.permits, choice.pick([2, 3, 500]));
  const providers = [platform.provider, insecureProvider];
  const functions = createFunctions(
    runtime,
    { scenario, ledger, store: attestations.store, providers, authorities },
    oracle,
  );
  const connect = createEndpoint(runtime, functions.invoke);
  startRelays({
    runtime,
    requests,
    connect,
    scenario,
    objects,
    options: {
      concurrency: choice.pick([1, 2, 8]),
      inFlightPerRequester: choice.pick([1, 4, 24]),
      graceMilliseconds: 5_000,
    },
  });
  const life = createLives({
    runtime,
    scenario,
    platform,
    attestations,
    requests,
    authorizer,
    connect,
    oracle,
    truths,
    facts,
  });
  const controllers = settleClusterApi(life('management cluster'), objects);
  const machines = settleMachines(life('machines'), controllers);
  const maintenance = { ...createMaintenance(runtime, functions), controllers };
  const waiting = fleet === undefined ? () => [] : settleFleet(life('fleet'), fleet, maintenance).waiting;
  startUsers(life('people'));
  settleOwnSigner(life('own signer'));
  settleOperator(life('operator'), machines);
  settleWebhook(life('webhook'));
  startAttacker(life('thief'), machines);
  for (const [index, rules] of scenario.epochs.entries())
    if (index > 0)
      runtime.timeline.after(rules.from, () => announceRules(rules, scenario.epochs[index - 1] ?? rules, runtime));

  const endsAt = fleet?.endsAt ?? rates.until;
  let steps = 0;
  let over: number | undefined;
  while (runtime.failure === undefined && (await runtime.timeline.step())) {
    steps += 1;
    const now = runtime.timeline.now();
    if (runtime.troubled() || now < endsAt) continue;
    const open = [...oracle.unfinished(), ...waiting()];
    over = open.length > 0 ? undefined : (over ?? now);
    if (over !== undefined && now - over > afterwardsMilliseconds) break;
    if (now - endsAt > quietMilliseconds || steps > mostSteps) runtime.fail(`does not end: ${open.join('; ')}`);
  }
  const all = requests.objects();
  const issued = all.filter(({ status }) => status['certificate'] !== undefined).length;
  const failed = all.filter(({ status }) => JSON.stringify(status).includes('"Failed"')).length;
  runtime.tell(() => `the end: ${issued} issued, ${failed} failed, of ${all.length}`);
  const { failure, lines } = runtime;
  return {
    seed,
    ...(failure === undefined ? {} : { failure }),
    milliseconds: runtime.timeline.now(),
    steps,
    requests: truths.size,
    issued,
    failed,
    lines,
  };
}

function announceRules({ cas, demands }: InForce, before: InForce, runtime: Runtime): void {
  const changed = [...cas].filter(([signerName, ca]) => before.cas.get(signerName) !== ca);
  const signing = new Set(cas.values());
  const what =
    changed.length === 0
      ? 'enforced from now on'
      : changed.some(([, ca]) => ca === caNames[0])
        ? 'the CA of before'
        : signing.size > 1
          ? 'another CA for some signers'
          : 'another CA';
  runtime.count(`step: rules: ${what}`);
  const modes = [...demands].map(([signerName, { mode }]) => `${signerName} ${mode}`);
  const signers = changed.map(([signerName, ca]) => `${signerName} by ${ca}`);
  runtime.tell(() => `new rules: ${[...modes, ...signers].join(', ')}`);
}

/** Some seeds have one kind of trouble, some have all of it, some little. */
function ratesOf(random: Random): Omit<FaultRates, 'later'> {
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
  const { later: _, ...numbers } = rates;
  return Object.entries(numbers)
    .map(([name, rate]) => `${name} ${Number(rate.toFixed(3))}`)
    .join(', ');
}
