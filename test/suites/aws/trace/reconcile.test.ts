/**
 * `countersign audit reconcile` against the deployed functions and MiniStack's CloudTrail. MiniStack names neither the role of a session
 * nor a failed call as such, and answers the 50 newest events only; the unit tests have what it lacks.
 */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AttachRolePolicyCommand, IAMClient } from '@aws-sdk/client-iam';
import { KMSClient, SignCommand } from '@aws-sdk/client-kms';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { ask, questionFor } from '../../../conformance/questions.ts';
import {
  createRole,
  deployOnMiniStack,
  synthesiseClusters,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { operatorLogin } from '../../../harness/aws/operator-login.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { requireTools } from '../../../tools/tools.ts';
import { run } from '../../../unit/cli/run.ts';
import { doors, postAt } from '../ministack/doors.ts';

const { skip } = await requireTools('ministack');
const profiles = { 'kubernetes.io/kube-apiserver-client': { ca: 'ca', maxTtl: '1d' } };

interface Shown {
  readonly signatures: number;
  readonly recorded: number;
  readonly openIntents: readonly unknown[];
  readonly gaps: readonly { readonly kind: string; readonly event?: { readonly requestId: string } }[];
}

describe.skipIf(skip)('the signatures of a deployed cluster', () => {
  let deployment: MiniStackDeployment;
  let begun: number;
  const folder = temporaryFolder('reconcile');

  beforeAll(async () => {
    const emulator = await startMiniStack({
      auth: true,
      functionEnvironment: { CLOUDTRAIL_RECORDING: '1', CLOUDTRAIL_MAX_EVENTS: '1000000' },
    });
    begun = Date.now() - 1_000;
    deployment = await deployOnMiniStack(synthesiseClusters({ demo: { profiles } }), { emulator });
    const authorize = await doors.httpApi.authorize(deployment);
    for (let i = 0; i < 3; i += 1) {
      const { object } = ask(questionFor('kubernetes.io/kube-apiserver-client', { username: 'suite', groups: [] }));
      const { outcome, text } = await postAt(deployment, doors.httpApi, 'sign', object, authorize);
      if (outcome !== 'issued') throw new Error(text);
    }
  });
  afterAll(async () => {
    folder.remove();
    await deployment?.stop();
  });
  afterEach(() => vi.unstubAllEnvs());

  /** By a role with the operator policy and these rights. */
  async function countersign(argv: readonly string[], ...actions: readonly string[]) {
    const { emulator, outputs } = deployment;
    const role = `auditor-${randomUUID().slice(0, 8)}`;
    const arn = await createRole(emulator, role, ...actions);
    const iam = new IAMClient(emulator.client);
    await iam.send(new AttachRolePolicyCommand({ RoleName: role, PolicyArn: outputs['demo']?.['OperatorPolicyArn'] }));
    iam.destroy();
    const session = await deployment.assume(arn, await deployment.relay('demo'));
    for (const [key, value] of Object.entries(operatorLogin(emulator, session))) vi.stubEnv(key, value);
    return run([...argv, '--cluster', 'demo'], { world: { now: Date.now } });
  }
  const range = () => ['--from', new Date(begun).toISOString(), '--to', new Date(Date.now() + 60_000).toISOString()];
  const reconcile = (...flags: readonly string[]) =>
    countersign(['audit', 'reconcile', ...range(), ...flags, '-o', 'json'], 'cloudtrail:LookupEvents');

  test('each has its record, by the table and by an export', async () => {
    const live = await reconcile();
    expect([live.code, live.err]).toEqual([0, '']);
    expect(JSON.parse(live.out)).toMatchObject({
      signatures: 4,
      recorded: 3,
      openIntents: [],
      caFunction: [{ signature: { ca: 'ca', action: 'deploy' } }],
      gaps: [],
    });
    const exported = await countersign(['cert', 'export', '--from', new Date(begun - 1_000).toISOString()]);
    expect(exported.code).toBe(0);
    const file = join(folder.path, 'demo.jsonl');
    writeFileSync(file, exported.out);
    const { from: _, to: __, ...compared } = JSON.parse(live.out) as Shown & Record<'from' | 'to', string>;
    const again = await reconcile('--ledger', file);
    expect([again.code, JSON.parse(again.out)]).toMatchObject([0, compared]);
  });

  test('the signature of a CRL that an operator has issued has its record, which names the CRL', async () => {
    const listed = await countersign(['cert', 'list', '-o', 'json']);
    const [{ serial } = { serial: '' }] = (JSON.parse(listed.out) as { certificates: { serial: string }[] })
      .certificates;
    const why = ['--reason', 'superseded', '--note', 'suite'];
    const revoked = await countersign(['cert', 'revoke', '--serial', serial, ...why], 'lambda:InvokeFunction');
    expect([revoked.code, revoked.out]).toEqual([0, expect.stringContaining('CRL of ca: number 1, 1 entries')]);
    const { code, out } = await reconcile();
    expect([code, JSON.parse(out)]).toMatchObject([
      0,
      { signatures: 5, recorded: 3, caFunction: [{ signature: { ca: 'ca', action: 'crl' } }, {}], gaps: [] },
    ]);
  });

  test('without the right to read the trail the command names it', async () => {
    const { code, err } = await countersign(['audit', 'reconcile', ...range()]);
    expect([code, err]).toEqual([3, expect.stringContaining('cloudtrail:LookupEvents')]);
  });

  test('a signature that the sign function did not make is an alarm', async () => {
    const kms = new KMSClient(deployment.emulator.client);
    const KeyId = deployment.outputs['demo']?.['CaKeyArns'];
    const signed = await kms.send(
      new SignCommand({ KeyId, Message: Buffer.from('x'), SigningAlgorithm: 'ECDSA_SHA_256', MessageType: 'RAW' }),
    );
    kms.destroy();
    const { code, out } = await reconcile();
    const { gaps, recorded } = JSON.parse(out) as Shown;
    expect([code, recorded, gaps.map(({ kind, event }) => [kind, event?.requestId])]).toEqual([
      1,
      3,
      [['noRecord', signed.$metadata.requestId]],
    ]);
  });
});
