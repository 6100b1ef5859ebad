/**
 * What holds in one seed: who approves, which signers demand which proof, under which CA, and what of it changes while
 * everything runs: proof becomes mandatory, and a CA is replaced, one profile after another and sometimes back. A part that starts goes by what is in force then, until it ends.
 */
import type { ClusterAttestation } from '../../core/configuration/model/attestation.ts';
import type { ProfileAttestation, Profile } from '../../core/policy/profile.ts';
import { defaultCluster } from '../../core/configuration/parse.ts';
import type { ClusterConfiguration } from '../../core/configuration/model/cluster.ts';
import type { Reserved } from '../../core/policy/reserved-names.ts';
import type { SignerPolicy } from '../../lambdas/watch-relay/settings/options.ts';
import { ownProfile, ownSigner } from './own-profile.ts';
import type { Random } from './random.ts';
import { ranges } from '../harness/attestation/address-ranges.ts';

export const nodeSigner = 'kubernetes.io/kube-apiserver-client-kubelet';
export const servingSigner = 'kubernetes.io/kubelet-serving';
export const userSigner = 'kubernetes.io/kube-apiserver-client';
/** The relay never approves for these: people do. */
export const handApproved: ReadonlySet<string> = new Set([userSigner, ownSigner]);
/** For serving requests that bring evidence. */
export const provenServingSigner = 'cluster.x-k8s.io/kubelet-serving-null';
export const insecureSigner = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure';
export const servingSigners: ReadonlySet<string> = new Set([servingSigner, provenServingSigner]);

/** What a signer demands; absent = no proof of anything. */
export interface Demand {
  readonly mode: 'enforce' | 'audit';
  /** Otherwise a request without evidence is one like any other. */
  readonly required: boolean;
  /** Whether the relay asks the API server for leave though there is proof. */
  readonly review: boolean;
  readonly provider: 'null' | 'insecure';
}

export interface InForce {
  readonly from: number;
  /** The CA that the profile of each signer names. */
  readonly cas: ReadonlyMap<string, string>;
  readonly demands: ReadonlyMap<string, Demand>;
  readonly cluster: ClusterConfiguration;
}

export interface Scenario {
  /** Whether the relay approves node requests; otherwise people do. */
  readonly approver: boolean;
  readonly leased: boolean;
  readonly freshKeys: boolean;
  /** Whether machines must be on the operator's list. */
  readonly listed: boolean;
  /** Whether a machine that was started anew may come with another key. */
  readonly allowRestart: boolean;
  readonly insecure: boolean;
  /** Whether machines have TPMs, whose attestation keys must be activated. */
  readonly tpm: boolean;
  /** Whether a machine must have a Machine object of Cluster API. */
  readonly clusterApi: boolean;
  /** Whether a serving certificate may be decided by what the platform said moments ago. */
  readonly reuses: boolean;
  readonly signerNames: readonly string[];
  /** In order, the first one from the beginning. */
  readonly epochs: readonly [InForce, ...InForce[]];
  at(time: number): InForce;
  /** Whether the key of that CA signs no more. */
  disabled(ca: string, time: number): boolean;
  /** For the trace. */
  readonly words: string;
}

/** The Cluster object whose machines may join. */
export const clusterReference = { cluster: 'demo', namespace: 'default' } as const;
export const caNames = ['ca', 'ca-2'] as const;
/** Operator's ranges: an address there is whose it is first. */
export const rangePrefix = '10.9.0.';
export const reservedAddress = '10.9.0.7';
const addressRanges = ranges('10.9.0.0/29');
const reserved: Reserved = { names: ['api.*'], addresses: ranges(reservedAddress), clusterDomain: 'cluster.local' };

export function createScenario(random: Random, until: number): Scenario {
  const kind = random.pick(['proven', 'proven', 'proven', 'audited', 'audited', 'optional', 'insecure'] as const);
  const approver = random.chance(0.7);
  const leased = random.chance(0.65);
  const freshKeys = random.chance(0.5);
  const listed = random.chance(0.3);
  const allowRestart = random.chance(0.5);
  const review = random.chance(0.6);
  const servingAudited = kind !== 'proven' && random.chance(0.4);
  const enforcedAt = kind === 'audited' && random.chance(0.6) ? until * random.between(0.1, 0.8) : Infinity;
  // A signer that trusts the first machine of a name makes the proof of another signer worthless: no configuration has both.
  const insecure = kind === 'insecure' || (kind === 'optional' && random.chance(0.5));
  const replacedAt = random.chance(0.6) ? until * random.between(0.05, 0.9) : Infinity;
  // Most keys are replaced because they were disabled.
  const disabledAt = random.chance(0.7) ? replacedAt - random.between(1_000, 20_000) : Infinity;

  const tpm = random.chance(0.35);
  // Only a relay that approves looks for Machine objects.
  const clusterApi = approver && !insecure && random.stream('objects').chance(0.6);
  const reuses = !tpm && !allowRestart && random.stream('reuse').chance(0.7);
  const signerNames = [
    nodeSigner,
    servingSigner,
    provenServingSigner,
    userSigner,
    ownSigner,
    ...(insecure ? [insecureSigner] : []),
  ];
  // All profiles switch at once, or some follow later. An operator may go back while the old key still signs.
  const gradual = random.chance(0.5);
  const slow = new Set(signerNames.filter(() => gradual && random.chance(0.6)));
  const between = (from: number): number => from + (until - from) * random.between(0.05, 0.6);
  const followedAt = replacedAt === Infinity ? Infinity : between(replacedAt);
  const backAt = gradual && disabledAt === Infinity && followedAt < until ? between(followedAt) : Infinity;

  function inForce(from: number): InForce {
    const mode = (audited: boolean): Demand['mode'] => (audited && from < enforcedAt ? 'audit' : 'enforce');
    const demand = { required: kind !== 'optional', review, provider: 'null' } as const;
    const ofServing: Demand = { ...demand, mode: mode(servingAudited) };
    const demands = new Map<string, Demand>([
      [nodeSigner, { ...demand, mode: mode(kind === 'audited' || kind === 'insecure') }],
      [servingSigner, ofServing],
      [provenServingSigner, { ...ofServing, required: true }],
    ]);
    if (insecure) demands.set(insecureSigner, { mode: 'enforce', required: true, review, provider: 'insecure' });
    const caOf = (signerName: string): string =>
      from >= (slow.has(signerName) ? followedAt : replacedAt) && from < backAt ? 'ca-2' : 'ca';
    const cas = new Map(signerNames.map((signerName) => [signerName, caOf(signerName)]));
    return { from, cas, demands, cluster: clusterOf(demands, cas, { freshKeys, clusterApi }) };
  }
  const changes = [enforcedAt, replacedAt, followedAt, backAt].filter((time) => time < until).toSorted((a, b) => a - b);
  const epochs: [InForce, ...InForce[]] = [inForce(0), ...changes.map(inForce)];

  return {
    approver,
    leased,
    freshKeys,
    listed,
    allowRestart,
    insecure,
    tpm,
    clusterApi,
    reuses,
    signerNames,
    epochs,
    disabled: (ca, time) => ca === 'ca' && time >= disabledAt,
    at: (time) => epochs.findLast(({ from }) => from <= time) ?? epochs[0],
    words: [
      kind,
      `${approver ? 'the relay' : 'people'} approve nodes`,
      leased ? 'one leader' : 'two leaders',
      ...(freshKeys ? ['fresh keys'] : []),
      ...(listed ? ['a list of machines'] : []),
      ...(allowRestart ? ['restarts allowed'] : []),
      ...(insecure ? ['an insecure signer'] : []),
      ...(tpm ? ['TPMs'] : []),
      ...(clusterApi ? ['Machine objects'] : []),
      ...(reuses ? ['descriptions reused'] : []),
      ...(servingAudited ? ['serving audited'] : []),
      ...(review ? ['reviews'] : []),
    ].join(', '),
  };
}

function clusterOf(
  demands: ReadonlyMap<string, Demand>,
  caOf: ReadonlyMap<string, string>,
  { freshKeys, clusterApi }: { readonly freshKeys: boolean; readonly clusterApi: boolean },
): ClusterConfiguration {
  const cluster = defaultCluster('demo', { maxTtlSeconds: 86_400, ca: caNames[0] });
  const second = defaultCluster('demo', { ca: caNames[1] });
  const profiles = new Map([...cluster.profiles, [ownSigner, ownProfile(cluster)]]);
  for (const [signerName, demand] of demands) {
    const kind = servingSigners.has(signerName) ? 'kubelet-serving' : 'kube-apiserver-client-kubelet';
    const base = profiles.get(`kubernetes.io/${kind}`);
    if (base === undefined) throw new Error(`no profile ${kind}`);
    const { provider, ...rest } = demand;
    const attestation: ProfileAttestation = { ...withoutReview(rest), providers: [provider] };
    const fresh = freshKeys && signerName === nodeSigner ? ({ freshKeys: true } as const) : {};
    profiles.set(signerName, {
      ...base,
      signerName,
      requester: requesterOf(signerName, demand),
      attestation,
      reserved,
      ...fresh,
    });
  }
  const attestation: ClusterAttestation = {
    audience: 'account/region/demo',
    retireTerminated: true,
    addressRanges,
    ...(clusterApi ? { clusterApi: clusterReference } : {}),
  };
  for (const [signerName, profile] of profiles) {
    const ca = caOf.get(signerName);
    if (ca !== undefined) profiles.set(signerName, { ...profile, ca });
  }
  const replacing = [...second.cas].map(([name, ca]) => [name, { ...ca, replaces: caNames[0] }] as const);
  return { ...cluster, cas: new Map([...cluster.cas, ...replacing]), profiles, attestation };
}

function withoutReview({ review, ...rest }: Omit<Demand, 'provider'>): Omit<ProfileAttestation, 'providers'> {
  return { ...rest, subjectAccessReview: review };
}

/** As a configuration is resolved: a requester without proof is let in by the review, or by the approver. */
function requesterOf(signerName: string, { mode, required }: Demand): Profile['requester'] {
  const bootstrappers = ['system:bootstrappers', 'system:bootstrappers:*'];
  if (signerName === insecureSigner) return { users: [], groups: bootstrappers };
  const proven = mode === 'enforce' && required;
  if (signerName !== provenServingSigner && !proven) return { users: [], groups: [] };
  return { users: [], groups: signerName === nodeSigner ? bootstrappers : [], nodeItself: true };
}

/** What a relay is told of it. */
export function policiesOf({ demands, cluster }: InForce, approver: boolean): ReadonlyMap<string, SignerPolicy> {
  return new Map(
    [...demands.keys()].flatMap((signerName) => {
      const profile = cluster.profiles.get(signerName);
      if (profile?.attestation === undefined) return [];
      const { kind, attestation } = profile;
      return [[signerName, { approval: approver ? 'approve' : 'manual', kind, attestation }] as const];
    }),
  );
}
