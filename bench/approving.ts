/**
 * The whole way of a node that joins: its pending request is reviewed, approved and signed. Countersign's machines prove
 * themselves first, each with evidence of its own that the attest function verifies against the strict fakes of STS and
 * EC2; beside it the reference's approver and signer in one process, as kube-controller-manager runs them, which ask for
 * no proof. The requests are those of one bootstrap token, and come up at once before who is warm and idle.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../test/harness/api-client.ts';
import type { ControlPlane } from '../test/harness/control-plane.ts';
import { ensure, startBesideLocalStack, startReference, startTwoProcesses } from './contender-processes.ts';
import type { RunningContender, StartOptions, Surroundings } from './contender-processes.ts';
import type { ContenderName } from './contenders.ts';
import { attestationOf, attestedSigner } from './fake-aws.ts';
import type { FakeAws } from './fake-aws.ts';
import { deployedCluster } from './localstack.ts';
import { observeRequests, requestsPath } from './observer.ts';
import { quietMoment, quietShare } from './process-usage.ts';
import { checkCertificates, createGiven, kubeletRequests, requestObject, signerName } from './requests.ts';
import type { NodeRequest } from './requests.ts';
import type { MassResult, SequenceResult } from './results.ts';
import { burst, sequenceResult } from './scenarios.ts';
import { shelve } from './shelf.ts';

export type ApproverName = ContenderName | 'countersign-unproved';

export interface ApprovingResult {
  readonly approver: ApproverName;
  readonly label: string;
  /** Whether each machine had to prove itself. */
  readonly proved: boolean;
  /** By its own settings, so that it would not have used the machine anyway. */
  readonly throttled: boolean;
  readonly burst: MassResult;
  readonly sequence: SequenceResult;
}

export interface ApprovingPlan {
  readonly warmUp: number;
  readonly burst: number;
  readonly sequence: number;
  readonly restMilliseconds: number;
  readonly patienceMilliseconds: number;
  readonly attempts: number;
}

/** What an approver needs beside those of scenarios.ts. */
export interface ApprovingSurroundings extends Surroundings {
  readonly aws?: FakeAws;
}

export interface Approver {
  readonly name: ApproverName;
  readonly label: string;
  /** Of the configuration; absent: no proof is demanded. */
  readonly provedTo?: string;
  /** By its own settings. */
  readonly throttled?: true;
  /** Requests it is given instead of the plan's, when they would last. */
  readonly atMost?: number;
  start(surroundings: ApprovingSurroundings, options: StartOptions): Promise<RunningContender>;
}

/** What `docs/watch-relay.md` has people write for nodes that join. One token may have 8 in hand at once. */
function configurationFor(signer: string, attestation = ''): string {
  return `version: 1
clusters:
  bench:
    cas: { ca: { subject: { commonName: bench CA } } }
    profiles: { ${signer}: { maxTtl: 365d } }
    approval: { ${signer}: approve }
${attestation}`;
}

export const approvers: readonly Approver[] = [
  {
    name: 'countersign',
    label: 'Countersign: relay + sign server, with proof',
    provedTo: 'bench',
    start({ controlPlane, aws }, options) {
      if (aws === undefined) throw new Error('there is no AWS to ask about machines');
      const configuration = written(controlPlane, configurationFor(attestedSigner, attestationOf(aws, 'bench')));
      return startTwoProcesses(controlPlane, options, { configuration, aws });
    },
  },
  {
    name: 'localstack',
    label: 'Countersign: relay + LocalStack (an emulator), with proof',
    provedTo: deployedCluster,
    // Each takes a tenth of a second of processor time in the emulator.
    atMost: 200,
    start: (surroundings, options) => startBesideLocalStack(surroundings, options, 'approver'),
  },
  {
    name: 'countersign-unproved',
    label: 'Countersign: relay + sign server, no proof',
    start({ controlPlane }, options) {
      return startTwoProcesses(controlPlane, options, {
        configuration: written(controlPlane, configurationFor(signerName)),
      });
    },
  },
  {
    name: 'kcm-unthrottled',
    label: 'kube-controller-manager, approver + signer, qps 2000, no proof',
    start: ({ controlPlane }) =>
      startReference(controlPlane, { qps: 2_000, burst: 4_000 }, ['csrapproving', 'csrsigning']),
  },
  {
    name: 'kcm-default',
    label: 'kube-controller-manager, approver + signer, default, no proof',
    throttled: true,
    atMost: 200,
    start: ({ controlPlane }) => startReference(controlPlane, {}, ['csrapproving', 'csrsigning']),
  },
];

function written({ dir }: ControlPlane, configuration: string): string {
  const file = join(dir, `countersign-${randomBytes(4).toString('hex')}.yaml`);
  writeFileSync(file, configuration);
  return file;
}

const stalledMilliseconds = 60_000;

/** Again, twice at most, when others took part of the machine; whichever came out least disturbed counts. */
export async function measureApproving(
  approver: Approver,
  plan: ApprovingPlan,
  surroundings: ApprovingSurroundings,
  options: StartOptions,
  say: (what: string) => void,
): Promise<ApprovingResult> {
  const progress = (what: string): void => say(`${approver.label}: ${what}`);
  const token = await bootstrapUser(surroundings.controlPlane);
  try {
    let result = await attempt(approver, plan, surroundings, token, options, progress);
    for (let again = 1; again < plan.attempts && !result.throttled && result.burst.othersShare > quietShare; again++) {
      progress('not quiet; again');
      const next = await attempt(approver, plan, surroundings, token, options, progress);
      if (next.burst.othersShare < result.burst.othersShare) result = next;
    }
    return result;
  } finally {
    token.close();
  }
}

async function attempt(
  approver: Approver,
  plan: ApprovingPlan,
  surroundings: ApprovingSurroundings,
  token: ApiClient,
  options: StartOptions,
  say: (what: string) => void,
): Promise<ApprovingResult> {
  const { controlPlane, aws } = surroundings;
  const { name, label, provedTo, atMost } = approver;
  const signer = provedTo === undefined ? signerName : attestedSigner;
  /** Nobody has been here before: a machine that is known is another case. */
  const joining = randomBytes(3).toString('hex');
  const requestsOf = async (phase: string, count: number): Promise<readonly NodeRequest[]> => {
    const names = Array.from({ length: count }, (_, index) => `${joining}-${phase}-${String(index).padStart(5, '0')}`);
    if (provedTo === undefined) return kubeletRequests(names);
    if (aws === undefined) throw new Error('there is no AWS to ask about machines');
    return aws.evidence({ names, cluster: provedTo, signerName: signer });
  };

  const observer = await observeRequests(controlPlane);
  let running: RunningContender | undefined;
  try {
    say('requests');
    const together = await requestsOf('burst', Math.min(plan.burst, atMost ?? plan.burst));
    await createGiven(token, together, signer);
    const shelf = await shelve(controlPlane);
    say('warm-up');
    const throwAway = await createGiven(token, await requestsOf('warm-up', plan.warmUp), signer);
    running = await approver.start(surroundings, options);
    await observer.allCertified(throwAway, stalledMilliseconds, running.processes);
    await shelve(controlPlane);
    await sleep(plan.restMilliseconds);
    await quietMoment(plan.patienceMilliseconds);

    say(`burst of ${together.length}, pending`);
    const { caPem, kmsMilliseconds } = running;
    const check = (names: readonly string[]): Promise<void> => checkCertificates(controlPlane, names, caPem, together);
    const result = await burst({ controlPlane, observer, running }, shelf, check);
    await shelve(controlPlane);
    await sleep(plan.restMilliseconds);

    say(`${plan.sequence} one after the other`);
    const sequence = await requestsOf('one', plan.sequence); // only now: proofs grow old
    const latencies: number[] = [];
    const kms: number[] = [];
    for (const each of sequence) {
      const body = requestObject(each.name, Buffer.from(each.request), signer);
      const sent = performance.now();
      await token.expectOk(requestsPath, { method: 'POST', body });
      await observer.allCertified([each.name], stalledMilliseconds, running.processes);
      const certified = observer.certifiedAt.get(each.name) ?? Number.NaN;
      latencies.push(certified - sent);
      if (kmsMilliseconds !== undefined) kms.push(kmsMilliseconds(sent, certified));
    }
    await checkCertificates(
      controlPlane,
      sequence.map((each) => each.name),
      caPem,
      sequence,
    );
    return {
      approver: name,
      label,
      proved: provedTo !== undefined,
      throttled: approver.throttled === true,
      burst: result,
      sequence: sequenceResult(latencies, kms),
    };
  } catch (error) {
    const logs = running?.processes.map((process) => `${process.name}:\n${process.logTail(8)}`) ?? [];
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${logs.join('\n')}`, { cause: error });
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
  for (const name of ['system:node-bootstrapper', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient'])
    await ensure(controlPlane, 'ClusterRoleBinding', `bench:${name}`, {
      roleRef: { apiGroup, kind: 'ClusterRole', name },
      subjects: [{ apiGroup, kind: 'Group', name: group }],
    });
  return controlPlane.client({ user: 'system:bootstrap:bench0', groups: [group] });
}
