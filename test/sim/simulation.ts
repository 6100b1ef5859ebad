/** One seed, from its beginning to its end: a life with faults for a while, then none until everything has come to an end. */
import type { ClusterAttestation, ProfileAttestation } from '../../core/attestation-configuration.ts';
import { defaultCluster } from '../../core/configuration.ts';
import type { ClusterConfiguration } from '../../core/configuration.ts';
import type { SignerPolicy } from '../../lambdas/watch-relay/approval.ts';
import { createNullPlatform } from '../harness/null-provider.ts';
import { createSimulatedAttestations } from './attestations.ts';
import { createFunctions } from './functions.ts';
import { createJudge } from './judge.ts';
import type { Truth } from './judge.ts';
import { createSimulatedLedger } from './ledger.ts';
import { createRandom } from './random.ts';
import type { Random } from './random.ts';
import { startRelays } from './relays.ts';
import { createRequests } from './request-api.ts';
import type { SimulatedRequests } from './request-api.ts';
import type { SimulatedAuthority } from './requests.ts';
import { createStage } from './stage.ts';
import type { FaultRates } from './stage.ts';
import { nodeSigner, servingSigner, settle, userSigner } from './workload.ts';

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

export async function simulate(seed: number, authority: SimulatedAuthority, telling = false): Promise<Outcome> {
  const random = createRandom(`seed ${seed}`);
  const rates = ratesOf(random.stream('rates'));
  const stage = createStage(random, rates, telling);
  const choice = random.stream('choices');
  const approver = choice.chance(0.7);
  const leased = choice.chance(0.65);
  const cluster = clusterOf(choice.chance(0.5));
  stage.tell(
    () =>
      `seed ${seed}: ${describe(rates)}; ${approver ? 'the relay' : 'people'} approve nodes; ${leased ? 'one leader' : 'two leaders'}`,
  );

  const ledger = createSimulatedLedger();
  const attestations = createSimulatedAttestations();
  const platform = createNullPlatform();
  const truths = new Map<string, Truth>();
  const gone = new Map<string, number>();
  const judge = createJudge({
    stage,
    cluster,
    ledger,
    attestations,
    truths,
    requests: () => requests,
    goneAt: (identity) => gone.get(identity),
  });
  const requests: SimulatedRequests = createRequests(stage, judge, choice.pick([2, 3, 500]));
  const { provider } = platform;
  const functions = createFunctions(stage, { cluster, ledger, store: attestations.store, provider, authority }, judge);
  startRelays({
    stage,
    requests,
    functions,
    leased,
    options: {
      signerNames: [nodeSigner, servingSigner, userSigner],
      policies: policiesOf(cluster, approver),
      concurrency: choice.pick([1, 2, 8]),
      inFlightPerRequester: choice.pick([1, 4, 24]),
      graceMilliseconds: 5_000,
    },
  });
  settle({ stage, cluster, platform, attestations, requests, functions, judge, truths, gone, approver });

  let steps = 0;
  let over: number | undefined;
  while (stage.failure === undefined && (await stage.timeline.step())) {
    steps += 1;
    if (stage.troubled()) continue;
    const now = stage.timeline.now();
    const open = judge.unfinished(approver);
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

function describe(rates: FaultRates): string {
  return Object.entries(rates)
    .map(([name, rate]) => `${name} ${Number((rate as number).toFixed(3))}`)
    .join(', ');
}

export function clusterOf(freshKeys: boolean): ClusterConfiguration {
  const cluster = defaultCluster('demo', { maxTtlSeconds: 86_400 });
  const attestation: ProfileAttestation = {
    providers: ['null'],
    required: true,
    mode: 'enforce',
    subjectAccessReview: true,
  };
  const profiles = new Map(cluster.profiles);
  for (const signerName of [nodeSigner, servingSigner]) {
    const profile = profiles.get(signerName);
    if (profile === undefined) throw new Error(`no profile ${signerName}`);
    const groups = signerName === nodeSigner ? ['system:bootstrappers', 'system:bootstrappers:*'] : [];
    const requester = { users: [], groups, nodeItself: true } as const;
    const fresh = freshKeys && signerName === nodeSigner ? ({ freshKeys: true } as const) : {};
    profiles.set(signerName, { ...profile, requester, attestation, ...fresh });
  }
  const settings: ClusterAttestation = {
    audience: 'account/region/demo',
    serving: { addressRanges: [], reservedAddresses: [], reservedNames: [] },
  };
  return { ...cluster, profiles, attestation: settings };
}

function policiesOf({ profiles }: ClusterConfiguration, approver: boolean): ReadonlyMap<string, SignerPolicy> {
  return new Map(
    [nodeSigner, servingSigner].flatMap((signerName) => {
      const profile = profiles.get(signerName);
      if (profile?.attestation === undefined) return [];
      const { kind, attestation } = profile;
      return [[signerName, { approval: approver ? 'approve' : 'manual', kind, attestation }] as const];
    }),
  );
}
