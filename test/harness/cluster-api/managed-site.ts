import { resolve } from 'node:path';
import { openSignService, type SignService } from '../../../dev/serve/sign-service.ts';
import { postNodeRequest, startApprovalStack, type ApprovalStack } from '../stack/approval.ts';
import {
  awsSettings,
  audience,
  prove,
  signers,
  startAwsPlatform,
  type AwsPlatform,
} from '../attestation/attested-site.ts';
import type { FakeInstance } from '../fake-aws/machine/instance.ts';
import type { ApiClient } from '../kubernetes/api-client.ts';
import { clusterRole, createObject, subject } from '../kubernetes/objects.ts';
import { untilGranted } from '../kubernetes/rights.ts';
import { conditionOf, eventually, readRequest } from '../stack/requests.ts';
import { manifestObjects } from '../stack/stack.ts';
import { newKey, type TestKey } from '../x509/requests.ts';
import { installClusterApi } from './definitions.ts';
import { createCluster, type ManagedCluster } from './machine-life.ts';

/*
 * Two workload clusters and one management cluster, on one AWS account and in one VPC: nothing but the Machine objects says
 * which machine belongs to which cluster. Cluster API runs in blue, which manages itself; the relay of green logs in there.
 */

export interface ManagedSite {
  readonly platform: AwsPlatform;
  readonly blue: Workload;
  readonly green: Workload;
  stop(): Promise<void>;
}

export interface Workload {
  readonly name: string;
  readonly stack: ApprovalStack;
  /** The Cluster object, in the management cluster. */
  readonly cluster: ManagedCluster;
  readonly service: SignService;
  /** Sends a request with evidence of this instance. `issued`, or the reason of the denial. */
  ask(instance: FakeInstance, asked?: Asked): Promise<Answer>;
}

interface Asked {
  /** Default: the instance's name. */
  readonly node?: string;
  /** Of the extension of the request. Default: the instance's own. */
  readonly providerId?: string;
}

export interface Answer {
  readonly reason: string;
  readonly message: string;
  readonly key: TestKey;
  readonly certificatePem?: string;
}

/** The user as whom the relay of green logs in to the management cluster. */
export const relayOfGreen = 'relay-of-green';

const settingsOf = (cluster: string) => ({
  cas: { ca: { subject: { commonName: `${cluster} CA` } } },
  profiles: {
    [signers.awsClient]: { maxTtl: '1h' },
    [signers.serving]: { maxTtl: '1h', attestation: { providers: ['aws'] } },
  },
  approval: { [signers.awsClient]: 'approve', [signers.serving]: 'approve' },
  attestation: {
    audience: audience(cluster),
    aws: awsSettings,
    machines: 'clusterApi',
    clusterApi: { cluster },
  },
});

export async function startManagedSite(): Promise<ManagedSite> {
  const cleanups: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  };
  try {
    const platform = await startAwsPlatform();
    cleanups.push(() => platform.close());

    async function startStack(cluster: string) {
      let service: SignService | undefined;
      const stack = await startApprovalStack(
        // The harness serves a cluster of this name. Its Cluster object and its audience have another.
        JSON.stringify({ version: 1, clusters: { demo: settingsOf(cluster) } }),
        undefined,
        { apiServerArgs: ['--enable-admission-plugins=NodeRestriction'] },
        async (configuration) =>
          (service = await openSignService({
            clusters: [configuration],
            log: () => {},
            aws: platform.ports,
            now: platform.now,
          })),
      );
      cleanups.push(() => stack.stop());
      const requester = await stack.bootstrap('aaaaaa');
      return { name: cluster, stack, service: service!, ask: askFor(platform, { cluster, stack, requester }) };
    }

    const blue = await startStack('blue');
    const green = await startStack('green');
    const management = blue.stack.plane;
    await installClusterApi(management);
    const [blueCluster, greenCluster] = [
      await createCluster(management.admin, { name: 'blue' }),
      await createCluster(management.admin, { name: 'green' }),
    ];

    const user = relayOfGreen;
    await mayReadMachines(blue.stack, 'blue', {
      kind: 'ServiceAccount',
      name: blue.stack.identity.name,
      namespace: blue.stack.identity.namespace,
    });
    await mayReadMachines(blue.stack, 'green', subject('User', user));
    for (const { stack } of [blue, green]) await mayReadNodes(stack);
    await blue.stack.relay();
    await green.stack.relay('--machines-kubeconfig', await management.kubeconfigFor({ user }));
    return { platform, blue: { ...blue, cluster: blueCluster }, green: { ...green, cluster: greenCluster }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const manifest = resolve(import.meta.dirname, '../../../deploy/manifests/watch-relay-cluster-api-rbac.yaml');

/** The rights that the manifest gives in a management cluster. It names the Cluster `prod`. */
export function machineRights(cluster: string): readonly Rule[] {
  const rules = manifestObjects(manifest).flatMap(({ rules: own = [] }) => own);
  return rules.map((rule) => (rule.resourceNames === undefined ? rule : { ...rule, resourceNames: [cluster] }));
}

type Rule = NonNullable<ReturnType<typeof manifestObjects>[number]['rules']>[number];

async function mayReadMachines({ plane }: ApprovalStack, cluster: string, who: object): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const [apiVersion, name] = [`${apiGroup}/v1`, `relay-of-${cluster}`];
  const metadata = { name, namespace: 'default' };
  await createObject(plane.admin, { apiVersion, kind: 'Role', metadata, rules: machineRights(cluster) });
  const roleRef = { apiGroup, kind: 'Role', name };
  await createObject(plane.admin, { apiVersion, kind: 'RoleBinding', metadata, roleRef, subjects: [who] });
}

async function mayReadNodes({ plane, identity }: ApprovalStack): Promise<void> {
  const name = 'relay-reads-nodes';
  const [kind, apiGroup] = ['ServiceAccount', 'rbac.authorization.k8s.io'];
  await createObject(
    plane.admin,
    clusterRole(name, [{ apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] }]),
  );
  await createObject(plane.admin, {
    apiVersion: `${apiGroup}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects: [{ kind, name: identity.name, namespace: identity.namespace }],
  });
  await untilGranted(plane, identity, { verb: 'list', group: '', resource: 'nodes' });
}

export function providerIdOf({ availabilityZone, instanceId }: FakeInstance): string {
  return `aws:///${availabilityZone}/${instanceId}`;
}

interface Requester {
  readonly cluster: string;
  readonly stack: ApprovalStack;
  readonly requester: ApiClient;
}

function askFor(platform: AwsPlatform, { cluster, stack, requester }: Requester): Workload['ask'] {
  const keys = new Map<string, TestKey>();
  let count = 0;
  return async (instance, { node = instance.tags['Name'] ?? '', providerId = providerIdOf(instance) } = {}) => {
    const key = keys.get(instance.instanceId) ?? newKey('P-256');
    keys.set(instance.instanceId, key); // a machine keeps its key
    const signerName = signers.awsClient;
    const evidence = { clusterName: 'demo', audience: audience(cluster), providerId };
    const { request } = prove(platform, instance, { node, key, signerName, evidence });
    const name = `${cluster}-${++count}`;
    await postNodeRequest(requester, name, node, { pem: request, signerName });
    return { ...(await answerTo(stack, name)), key };
  };
}

/** Resolves when the request has its certificate or is denied. */
export async function answerTo({ plane }: Pick<ApprovalStack, 'plane'>, name: string): Promise<Omit<Answer, 'key'>> {
  let answer: Omit<Answer, 'key'> | undefined;
  await eventually(async () => {
    const object = await readRequest(plane, name);
    const denied = conditionOf(object, 'Denied') ?? conditionOf(object, 'Failed');
    const { certificate } = object.status;
    if (denied !== undefined) answer = { reason: denied.reason ?? '', message: denied.message ?? '' };
    else if (certificate !== undefined)
      answer = { reason: 'issued', message: '', certificatePem: Buffer.from(certificate, 'base64').toString() };
    return answer !== undefined;
  }, `${name} is answered`);
  return answer!;
}

/**
 * Asks until the answer is this one: a change of an object reaches the relay's copies a moment after the write. Every answer
 * before it must be one of those from before the change, `before`.
 */
export async function untilAnswered(
  ask: () => Promise<Answer>,
  { reason, before }: { readonly reason: string; readonly before: string | readonly string[] },
): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.reason === reason) return answer;
    if (![before].flat().includes(answer.reason))
      throw new Error(`${answer.reason} instead of ${reason}: ${answer.message}`);
  }
}
