/** `countersign trace` about a certificate that the deployed functions issued, with the rights of an operator and with fewer. */
import { randomUUID } from 'node:crypto';
import { AttachRolePolicyCommand, IAMClient } from '@aws-sdk/client-iam';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  createRole,
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { startControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { ask, questionFor } from '../../../conformance/questions.ts';
import { requireTools } from '../../../tools/tools.ts';
import { run } from '../../../unit/cli/run.ts';
import { doors, postAt } from '../ministack/doors.ts';
import { insecureSigner, nodeRequests } from '../ministack/node-requests.ts';

const { skip } = await requireTools('ministack', 'etcd', 'kube-apiserver', 'kubectl');

interface Shown {
  readonly uid: string;
  readonly ledger?: { readonly state: string; readonly kmsRequestId?: string; readonly lambdaRequestId?: string };
  readonly certificate?: { readonly serial: string; readonly fingerprintSha256: string };
  readonly timeline: readonly {
    readonly source: string;
    readonly what: string;
    readonly details: Record<string, unknown>;
  }[];
  readonly unread: readonly { readonly what: string; readonly hint?: string }[];
}

/**
 * In policies about the events of a log group AWS's ARN of the group ends in `:*`, except for tags. MiniStack compares the ARN
 * without it. https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/iam-access-control-overview-cwl.html
 */
function withMiniStacksLogArn<T>(part: T): T {
  if (Array.isArray(part)) return part.map((each: unknown) => withMiniStacksLogArn(each)) as T;
  if (typeof part !== 'object' || part === null) return part;
  const entries = Object.entries(part).map(([key, value]: [string, unknown]) => [key, withMiniStacksLogArn(value)]);
  const copy = Object.fromEntries(entries) as T & { readonly Sid?: string; Resource?: unknown };
  const arns = ['Sign', 'Attest'].map((service) => `arn:aws:logs:*:*:log-group:*${service}Log*`);
  return copy.Sid === 'ReadLogs' ? { ...copy, Resource: arns } : copy;
}

const profile = { ca: 'ca', maxTtl: '1d' };
const settings = { profiles: { 'kubernetes.io/kubelet-serving': profile, [insecureSigner]: profile } };

describe.skipIf(skip)('a deployed cluster', () => {
  let deployment: MiniStackDeployment;
  let policy: string;
  const outcomes: unknown[] = [];
  const uid = randomUUID();
  const name = `csr-${uid.slice(0, 8)}`;

  beforeAll(async () => {
    deployment = await deployOnMiniStack(synthesiseClusters({ demo: settings }), { change: withMiniStacksLogArn });
    policy = deployment.outputs['demo']?.['OperatorPolicyArn'] ?? '';
    const { object } = ask(questionFor('kubernetes.io/kubelet-serving', { username: 'suite', groups: [] }));
    const { metadata } = object as { metadata: object };
    const request = { ...object, metadata: { ...metadata, name, uid } };
    const authorize = await doors.httpApi.authorize(deployment);
    for (let delivery = 0; delivery < 2; delivery += 1)
      outcomes.push((await postAt(deployment, doors.httpApi, 'sign', request, authorize)).outcome);
  });
  afterAll(() => deployment?.stop());
  afterEach(() => vi.unstubAllEnvs());

  /** With a role of these rights; without any: the operator's policy of the stack. */
  async function trace(
    argv: readonly string[],
    actions: readonly string[] = [],
    kubeconfig = '/nonexistent/kubeconfig',
  ) {
    const { emulator } = deployment;
    const role = `operator-${randomUUID().slice(0, 8)}`;
    const arn = await createRole(emulator, role, ...actions);
    if (actions.length === 0) {
      const iam = new IAMClient(emulator.client);
      await iam.send(new AttachRolePolicyCommand({ RoleName: role, PolicyArn: policy }));
      iam.destroy();
    }
    const { accessKeyId, secretAccessKey, sessionToken } = await deployment.assume(arn, {
      ...(await deployment.relay('demo')),
    });
    const environment = {
      AWS_ENDPOINT_URL: emulator.url,
      AWS_REGION: emulator.client.region,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_SESSION_TOKEN: sessionToken,
      AWS_CONFIG_FILE: '/nonexistent',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
      AWS_EC2_METADATA_DISABLED: 'true',
    };
    for (const [key, value] of Object.entries(environment)) vi.stubEnv(key, value);
    const { code, out, err } = await run(['trace', ...argv, '--cluster', 'demo', '-o', 'json'], {
      environment: { KUBECONFIG: kubeconfig },
      world: { now: Date.now },
    });
    return { code, err, shown: out === '' ? undefined : (JSON.parse(out) as Shown) };
  }

  test('one timeline, with the invocation and the KMS request that the log and the record both name', async () => {
    expect(outcomes).toEqual(['issued', 'issued']);
    const { code, err, shown } = await trace([uid]);
    expect([code, err]).toEqual([0, '']);
    expect(shown).toMatchObject({ uid, ledger: { state: 'issued' } });
    const { kmsRequestId, lambdaRequestId } = shown!.ledger!;
    expect(kmsRequestId).toMatch(/^[0-9a-f-]{20,}$/i);
    expect(lambdaRequestId).toMatch(/^[0-9a-f-]{20,}$/i);
    const answers = shown!.timeline.filter(({ source }) => source === 'sign').map(({ details }) => details);
    expect(answers).toMatchObject([
      { outcome: 'issued', repeat: false, kmsRequestId, lambdaRequestId, serial: shown!.certificate!.serial },
      { outcome: 'issued', repeat: true, kmsRequestId },
    ]);
    expect(answers[1]!['lambdaRequestId']).not.toBe(lambdaRequestId);
    // The cluster is not there; all of AWS was read.
    expect(shown!.unread.map(({ what }) => what)).toEqual(['the cluster']);
  });

  test('by the name, which only the functions’ log has, and by the serial number: the same', async () => {
    const { shown } = await trace([uid]);
    expect((await trace([name])).shown).toEqual(shown);
    expect((await trace(['--serial', shown!.certificate!.serial])).shown).toEqual(shown);
  });

  test('a node that proved itself to attest: the request of a real API server, both logs and the verdict', async () => {
    const plane = await startControlPlane();
    try {
      const [made] = nodeRequests(1);
      const { status: _, ...object } = made!;
      const bootstrapper = ['--as=system:bootstrap:suite', '--as-group=system:bootstrappers'];
      const binding = ['clusterrolebinding', 'bootstrap', '--clusterrole=system:node-bootstrapper'];
      await plane.kubectl(['create', ...binding, '--group=system:bootstrappers']);
      await plane.kubectl(['create', '-f', '-', ...bootstrapper], { input: JSON.stringify(object) });
      const { name: node } = object.metadata;
      await plane.kubectl(['certificate', 'approve', node]);
      const stored = JSON.parse(await plane.kubectl(['get', 'csr', node, '-o', 'json'])) as {
        readonly metadata: { readonly uid: string };
      };
      const authorize = await doors.httpApi.authorize(deployment);
      const answer = await postAt(deployment, doors.httpApi, 'sign', stored, authorize);
      expect(answer.outcome, answer.text).toBe('issued');

      const { code, err, shown } = await trace([node], [], plane.adminKubeconfig);
      expect([code, err]).toEqual([0, '']);
      expect(shown).toMatchObject({ uid: stored.metadata.uid, ledger: { state: 'issued' } });
      const sources = new Set(shown!.timeline.map(({ source }) => source));
      expect([...sources].toSorted()).toEqual(['attest', 'cluster', 'ledger', 'sign', 'verdict']);
      // No relay runs here.
      expect(shown!.unread.map(({ what }) => what)).toEqual(['the log of the relay']);
    } finally {
      await plane.stop();
    }
  });

  const rights = {
    'cloudformation:DescribeStacks': ['the record in the ledger', 'the verdict', 'the log of the attest function'],
    'dynamodb:GetItem': ['the record in the ledger', 'the verdict'],
    'logs:FilterLogEvents': ['the log of the sign function', 'the log of the attest function'],
  } as const;
  test.each(Object.entries(rights))(
    'without %s the rest is shown, and the permission is named',
    async (left, whats) => {
      const { shown, code, err } = await trace(
        [uid],
        Object.keys(rights).filter((action) => action !== left),
      );
      const denied = left === 'cloudformation:DescribeStacks' ? err : JSON.stringify(shown?.unread);
      for (const what of whats) expect(denied).toContain(what);
      expect(denied).toContain(`it needs ${left}`);
      expect(code).toBe(left === 'cloudformation:DescribeStacks' ? 5 : 0);
    },
  );

  test('without dynamodb:Query a serial number is not found', async () => {
    const { code, err } = await trace(['--serial', 'abcd'], Object.keys(rights));
    expect([code, err]).toEqual([5, expect.stringContaining('it needs dynamodb:Query on the index serial')]);
    expect(await trace(['--serial', 'abcd'])).toMatchObject({ code: 4 });
  });
});
