import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { QueueCounts } from '../schedule/queue.ts';
import type { RestartReason } from '../cluster/reflector.ts';
import type { ClusterApiMetrics, MirroredResource, MirrorState } from '../cluster-api/session.ts';
import type { HintResult } from '../cluster-api/hints.ts';
import type { InfraClusterResult } from '../cluster-api/infra-cluster.ts';
import { causes } from '../request/result.ts';
import type { Decision, End, RetryCause } from '../request/result.ts';
import type { TrustResult, TrustSubject } from '../trust/keep-trust.ts';
import { endpointSteps, priorityClasses } from '../schedule/fair-queue.ts';
import type { EndpointStep, PriorityClass } from '../schedule/fair-queue.ts';

/** docs/watch-relay.md describes each metric. */
export type RelayMetrics = ReturnType<typeof createRelayMetrics>;

/** Values that are read at each scrape. */
export interface RelayGauges {
  readonly waiting: QueueCounts;
  readonly longestQueue: number;
  /** Age of the oldest request, by priority class. */
  readonly oldestSeconds: Readonly<Record<PriorityClass, number>>;
  readonly inFlight: number;
  readonly concurrencyLimit: Readonly<Record<EndpointStep, number>>;
  readonly heldBytes: number;
}

// The last bucket is for requests that waited through an outage.
const latencyBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900];
// A warm function answers in tens of milliseconds; 29 s is the client's limit.
const signBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 29];

const none = { ready: 0, delayed: 0 };
const idle: RelayGauges = {
  waiting: { renewal: none, other: none },
  longestQueue: 0,
  oldestSeconds: { renewal: 0, other: 0 },
  inFlight: 0,
  concurrencyLimit: { sign: 0, attest: 0, approve: 0 },
  heldBytes: 0,
};

export function createRelayMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> =>
    new Counter({ name: `countersign_relay_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[]): Gauge<L> =>
    new Gauge({ name: `countersign_relay_${name}`, help, labelNames, registers });

  const requests = counter('requests_total', 'Requests that the relay completed, by outcome.', ['signer', 'outcome']);
  const decisions = counter('decisions_total', 'What attest concluded about pending requests.', [
    'signer',
    'decision',
    'code',
  ]);
  const retries = counter('retries_total', 'Tries that will be repeated, by cause.', ['cause']);
  const alarms = counter('alarms_total', 'Tries that will be repeated until an operator acts, by cause.', ['cause']);
  // From 0 on: Prometheus sees no increase in a counter whose first value is 1.
  alarms.inc({ cause: 'TrustBundle' }, 0);
  alarms.inc({ cause: 'InfraCluster' }, 0);
  for (const [cause, { alarm }] of Object.entries(causes)) if (alarm !== 'never') alarms.inc({ cause }, 0);
  const apiErrors = counter('api_errors_total', 'Failed calls to the API server.', ['verb', 'code']);
  const lists = counter('lists_total', 'Complete lists: one at the start, more only after lost watches.', ['signer']);
  const restarts = counter('watch_restarts_total', 'Watches and lists that ended early.', ['signer', 'reason']);
  const malformed = counter('malformed_objects_total', 'Objects from the API server that could not be read.', [
    'signer',
  ]);
  const oversized = counter('oversized_objects_total', 'Objects that are too large, each time they are seen.', [
    'signer',
  ]);
  const events = counter('events_total', 'Events about requests.', ['result']);
  const trust = counter(
    'trust_bundles_total',
    'CA certificates of signers: each object, and what it needs, once a round.',
    ['subject', 'result'],
  );
  const mirrorLists = counter('mirror_lists_total', 'Complete lists of the objects that the relay keeps copies of.', [
    'resource',
  ]);
  const mirrorRestarts = counter('mirror_restarts_total', 'Watches and lists of these objects that ended early.', [
    'resource',
    'reason',
  ]);
  const hints = counter('hints_total', 'Names of nodes whose machines attest shall look at.', ['result']);
  const infraClusters = counter('infra_cluster_total', 'Signers named in the InfraCluster, once a round.', ['result']);
  const mirrorObjects = gauge('mirror_objects', 'Objects of which the relay keeps a copy.', ['resource']);
  const mirrorAge = gauge('mirror_age_seconds', 'Since the API server was last heard about these objects.', [
    'resource',
  ]);
  const webhook = counter('webhook_requests_total', 'Answers to webhook clients.', ['outcome']);
  const queue = gauge('queue_depth', 'Requests waiting: ready for a worker, or delayed after a try.', [
    'priority',
    'state',
  ]);
  const longest = gauge('longest_queue', 'Ready requests of the requester that has the most.', []);
  const oldest = gauge('oldest_request_seconds', 'Age of the oldest request the relay has to answer.', ['priority']);
  const inFlight = gauge('in_flight', 'Requests being worked on.', []);
  const limit = gauge('concurrency_limit', 'Concurrency limit of the step.', ['step']);
  const held = gauge('held_object_bytes', 'Size of the objects cached for the next try.', []);
  const leader = gauge('leader', '1 on the leader.', []);
  const latency = new Histogram({
    name: 'countersign_relay_issue_latency_seconds',
    help: 'From the approval (its condition time, whole seconds) to the certificate being written.',
    labelNames: ['signer'] as const,
    buckets: latencyBuckets,
    registers,
  });
  const callDuration = (endpoint: 'sign' | 'attest') =>
    new Histogram({
      name: `countersign_relay_${endpoint}_duration_seconds`,
      help: `Calls to the ${endpoint} endpoint.`,
      labelNames: ['outcome'] as const,
      buckets: signBuckets,
      registers,
    });
  const signing = callDuration('sign');
  const attesting = callDuration('attest');

  let gauges = (): RelayGauges => idle;
  let mirrors: () => ReadonlyMap<MirroredResource, MirrorState> = () => new Map();
  const clusterApi: ClusterApiMetrics = {
    mirrorListed: (resource) => mirrorLists.inc({ resource }),
    mirrorRestarted: (resource, reason) => mirrorRestarts.inc({ resource, reason }),
    hinted: (result: HintResult, nodeNames) => hints.inc({ result }, nodeNames),
    infraCluster: (result: InfraClusterResult) => infraClusters.inc({ result }),
    infraClusterAlarmed: () => alarms.inc({ cause: 'InfraCluster' }),
    watchMirrors(read) {
      mirrors = read;
      return () => {
        if (mirrors === read) mirrors = () => new Map();
      };
    },
  };

  return {
    registry,
    finished: (signer: string, outcome: End) => requests.inc({ signer, outcome }),
    decided: (signer: string, { kind, code }: Decision) => decisions.inc({ signer, decision: kind, code }),
    retried: (cause: RetryCause) => retries.inc({ cause }),
    alarmed: (cause: RetryCause) => alarms.inc({ cause }),
    apiError: (verb: string, code: string) => apiErrors.inc({ verb, code }),
    listed: (signer: string) => lists.inc({ signer }),
    restarted: (signer: string, reason: RestartReason) => restarts.inc({ signer, reason }),
    malformed: (signer: string) => malformed.inc({ signer }),
    oversized: (signer: string) => oversized.inc({ signer }),
    trust: (subject: TrustSubject, result: TrustResult) => trust.inc({ subject, result }),
    trustAlarmed: () => alarms.inc({ cause: 'TrustBundle' }),
    webhookAnswered: (outcome: string) => webhook.inc({ outcome }),
    event: (result: string) => events.inc({ result }),
    issuedAfter: (signer: string, seconds: number) => latency.observe({ signer }, seconds),
    signed: (outcome: string, seconds: number) => signing.observe({ outcome }, seconds),
    attested: (outcome: string, seconds: number) => attesting.observe({ outcome }, seconds),
    leads: (yes: boolean) => leader.set(yes ? 1 : 0),
    ...clusterApi,
    /** `read` gives the gauges until the returned function is called. */
    watchGauges(read: () => RelayGauges): () => void {
      gauges = read;
      return () => {
        if (gauges === read) gauges = () => idle;
      };
    },
    /** The text format of Prometheus. */
    async exposition(): Promise<string> {
      const now = gauges();
      for (const priority of priorityClasses)
        for (const state of ['ready', 'delayed'] as const) queue.set({ priority, state }, now.waiting[priority][state]);
      longest.set(now.longestQueue);
      for (const priority of priorityClasses) oldest.set({ priority }, now.oldestSeconds[priority]);
      inFlight.set(now.inFlight);
      for (const step of endpointSteps) limit.set({ step }, now.concurrencyLimit[step]);
      held.set(now.heldBytes);
      for (const each of [mirrorObjects, mirrorAge]) each.reset();
      for (const [resource, { objects, ageSeconds }] of mirrors()) {
        mirrorObjects.set({ resource }, objects);
        mirrorAge.set({ resource }, ageSeconds);
      }
      return registry.metrics();
    },
  };
}
