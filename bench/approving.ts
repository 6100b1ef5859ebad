/**
 * The whole way of a node that joins: its pending request is reviewed, approved and signed. Beside the reference's
 * approver and signer in one process, as kube-controller-manager runs them. The same phases as in scenarios.ts, but for
 * the burst: a pending request cannot be kept ready without its approver.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../test/harness/api-client.ts';
import type { ControlPlane } from '../test/harness/control-plane.ts';
import { startReference, startTwoProcesses } from './contenders.ts';
import type { RunningContender } from './contenders.ts';
import { observeRequests, requestsPath } from './observer.ts';
import { quietMoment, startedAt, usageOf, watchForOthers } from './process-usage.ts';
import { checkCertificates, createRequests, kubeletRequest, requestObject, signerName } from './requests.ts';
import { shelve } from './shelf.ts';
import { percentile } from './statistics.ts';

/** Times in seconds from the start of the first process; of the sequence in milliseconds from sending the request. */
export interface ApprovingResult {
  readonly label: string;
  readonly requests: number;
  readonly all: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly cpuSeconds: readonly number[];
  readonly othersShare: number;
  /** By its own settings, so that it would not have used the machine anyway. */
  readonly throttled: boolean;
  readonly sequence: { readonly requests: number; readonly p50: number; readonly p99: number };
}

export interface ApprovingPlan {
  readonly warmUp: number;
  readonly backlog: number;
  readonly sequence: number;
  readonly patienceMilliseconds: number;
}

interface Approver {
  readonly name: string;
  readonly label: string;
  /** Requests it is given instead of the plan's, when its own throttle would make them last. */
  readonly atMost?: number;
  readonly start: (controlPlane: ControlPlane) => Promise<RunningContender>;
}

/** What `docs/watch-relay.md` has people write for nodes that join without proof. One token may have 8 in hand at once. */
const configuration = `version: 1
clusters:
  bench:
    cas: { ca: { subject: { commonName: bench CA } } }
    profiles: { ${signerName}: { maxTtl: 365d } }
    approval: { ${signerName}: approve }
`;

const approvers: readonly Approver[] = [
  {
    name: 'countersign',
    label: 'Countersign: relay approves + sign server',
    start(controlPlane) {
      const file = join(controlPlane.dir, 'countersign.yaml');
      writeFileSync(file, configuration);
      return startTwoProcesses(controlPlane, {}, file);
    },
  },
  {
    name: 'kcm-unthrottled',
    label: 'kube-controller-manager, approver + signer, qps 2000',
    start: (controlPlane) => startReference(controlPlane, { qps: 2_000, burst: 4_000 }, ['csrapproving', 'csrsigning']),
  },
  {
    name: 'kcm-default',
    label: 'kube-controller-manager, approver + signer, default',
    atMost: 200,
    start: (controlPlane) => startReference(controlPlane, {}, ['csrapproving', 'csrsigning']),
  },
];

const giveUpMilliseconds = 180_000;
const restMilliseconds = 2_000;

export async function measureApproving(
  controlPlane: ControlPlane,
  plan: ApprovingPlan,
  say: (what: string) => void,
): Promise<readonly ApprovingResult[]> {
  const token = await bootstrapUser(controlPlane);
  try {
    const results: ApprovingResult[] = [];
    for (const approver of approvers) {
      const backlog = Math.min(plan.backlog, approver.atMost ?? plan.backlog);
      results.push(await measureOne(approver, { ...plan, backlog }, controlPlane, token, say));
    }
    return results;
  } finally {
    token.close();
  }
}

async function measureOne(
  { name, label, atMost, start }: Approver,
  plan: ApprovingPlan,
  controlPlane: ControlPlane,
  token: ApiClient,
  say: (what: string) => void,
): Promise<ApprovingResult> {
  const observer = await observeRequests(controlPlane);
  const create = async (phase: string, count: number): Promise<readonly string[]> =>
    (await createRequests({ admin: token }, `${name}-${phase}`, count)).map(({ metadata }) => metadata.name);
  let running: RunningContender | undefined;
  try {
    say(`${label}: warm-up`);
    const throwAway = await create('approved-warm-up', plan.warmUp);
    running = await start(controlPlane);
    await observer.allCertified(throwAway, giveUpMilliseconds);
    await running.stop();
    await shelve(controlPlane);

    const waiting = await create('approved', plan.backlog);
    await sleep(restMilliseconds);
    await quietMoment(plan.patienceMilliseconds);
    say(`${label}: ${plan.backlog} pending`);
    const others = watchForOthers();
    running = await start(controlPlane);
    const { processes, caPem } = running;
    const t0 = Math.min(...processes.map(({ pid }) => startedAt(pid)));
    await observer.allCertified(waiting, giveUpMilliseconds);
    const othersShare = others();
    const cpuSeconds = processes.map(({ pid }) => usageOf(pid).cpuSeconds);
    await checkCertificates(controlPlane, waiting, caPem);
    const seconds = waiting.map((each) => ((observer.certifiedAt.get(each) ?? Number.NaN) - t0) / 1_000);
    const all = Math.max(...seconds);
    await sleep(restMilliseconds);

    say(`${label}: ${plan.sequence} one after the other`);
    const latencies: number[] = [];
    for (let index = 0; index < plan.sequence; index += 1) {
      const each = `${name}-joins-${index}`;
      const body = requestObject(each, kubeletRequest(each, index));
      const sent = performance.now();
      await token.expectOk(requestsPath, { method: 'POST', body });
      await observer.allCertified([each], giveUpMilliseconds);
      latencies.push((observer.certifiedAt.get(each) ?? Number.NaN) - sent);
    }
    return {
      label,
      requests: waiting.length,
      all,
      perSecond: waiting.length / all,
      p50: percentile(seconds, 0.5),
      p99: percentile(seconds, 0.99),
      cpuSeconds,
      othersShare,
      throttled: atMost !== undefined,
      sequence: { requests: latencies.length, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) },
    };
  } finally {
    observer.close();
    await running?.stop();
    await shelve(controlPlane);
  }
}

/** As kubeadm binds its tokens: who joins may ask, and may have it approved. */
async function bootstrapUser(controlPlane: ControlPlane): Promise<ApiClient> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const group = 'system:bootstrappers';
  for (const name of ['system:node-bootstrapper', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient']) {
    const body = {
      apiVersion: `${apiGroup}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: `bench:${name}` },
      roleRef: { apiGroup, kind: 'ClusterRole', name },
      subjects: [{ apiGroup, kind: 'Group', name: group }],
    };
    await controlPlane.admin.expectOk(`/apis/${apiGroup}/v1/clusterrolebindings`, { method: 'POST', body });
  }
  return controlPlane.client({ user: 'system:bootstrap:bench0', groups: [group] });
}
