/**
 * The life of a machine where signatures and permissions are checked: it comes, renews, serves under an address of a
 * range, ends, and another takes its name. Each permission that attest and sign have for it is left out in turn, and AWS
 * then refuses what it is for, by name. EC2 is MiniStack's; STS, which must know instances' keys, is the strict fake.
 */
import { CreateTagsCommand, EC2Client, RunInstancesCommand, TerminateInstancesCommand } from '@aws-sdk/client-ec2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { prove, requestFor, signers, startAwsPlatform } from '../../../harness/attestation/attested-site.ts';
import type { AwsPlatform } from '../../../harness/attestation/attested-site.ts';
import {
  deployOnMiniStack,
  synthesiseClusters,
  withoutRegions,
  type MiniStackDeployment,
} from '../../../harness/aws/ministack-deployment.ts';
import { emulatedRegion } from '../../../harness/aws/emulator.ts';
import type { FakeInstance } from '../../../harness/fake-aws/machine/instance.ts';
import { regionCa } from '../../../harness/fake-aws/machine/region-ca.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { requireTools } from '../../../tools/tools.ts';
import { doors, postAt } from '../ministack/doors.ts';
import { logOf } from '../ministack/function-logs.ts';
import { machineTable } from './tables.ts';
import { permissionsOf, withoutPermissions } from './statements.ts';

const { skip } = await requireTools('ministack');

const account = '000000000000';
const attested = { ca: 'ca', maxTtl: '1d', attestation: { providers: ['aws'] } };
const settings = {
  profiles: { [signers.client]: attested, [signers.serving]: attested },
  attestation: {
    addressRanges: ['192.168.0.0/24'],
    aws: {
      accounts: { [account]: {} },
      regions: [emulatedRegion],
      tags: { cluster: 'demo' },
      nodeName: ['tag:Name'],
      // MiniStack tells nothing of metadata options and interfaces.
      instance: { httpTokensRequired: false, maxHopLimit: 'any', maxAttachSkewSeconds: 'any' },
      certificates: { [emulatedRegion]: [regionCa(emulatedRegion).certificatePem] },
    },
  },
};

const { exercised, reviewed } = machineTable;

describe.skipIf(skip)('permissions for the life of a machine', () => {
  const assembly = skip ? undefined : synthesiseClusters({ demo: settings });
  let platform: AwsPlatform;
  beforeAll(async () => {
    platform = await startAwsPlatform();
  });
  afterAll(() => platform?.close());

  test('are all exercised here, or reviewed', () => {
    const given = [...assembly!.templates.values()].flatMap(permissionsOf);
    const plain = new Set([...synthesiseClusters({ demo: {} }).templates.values()].flatMap(permissionsOf));
    const own = given.filter((each) => /^(Attest|Sign)Policy/.test(each) && !plain.has(each));
    expect(own.toSorted()).toEqual([...Object.keys(exercised), ...Object.keys(reviewed)].toSorted());
  });

  /** In MiniStack's EC2, and with what proves it in the fake one. */
  async function launch(ec2: EC2Client): Promise<FakeInstance> {
    const { Instances: [made] = [] } = await ec2.send(
      new RunInstancesCommand({ ImageId: 'ami-00000000', MinCount: 1, MaxCount: 1 }),
    );
    const { InstanceId: instanceId = '', Placement: { AvailabilityZone: availabilityZone = '' } = {} } = made ?? {};
    const tags = { cluster: 'demo', Name: 'w1' };
    const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
    await ec2.send(new CreateTagsCommand({ Resources: [instanceId], Tags }));
    return platform.aws.launch({ account, region: emulatedRegion, instanceId, availabilityZone, tags, interfaces: [] });
  }

  function firstOf(instance: FakeInstance): string {
    const evidence = { clusterName: 'demo', audience: `${account}/${emulatedRegion}/demo` };
    return prove(platform, instance, { node: 'w1', evidence }).request;
  }

  async function post(deployment: MiniStackDeployment, path: 'sign' | 'attest', body: object): Promise<string> {
    const door = doors.httpApi;
    const { status, outcome } = await postAt(deployment, door, path, body, await door.authorize(deployment));
    return outcome ?? String(status);
  }

  /** What is answered on the way, and what the functions logged. */
  async function live(
    left: readonly string[],
  ): Promise<{ readonly outcomes: readonly string[]; readonly log: string }> {
    const emulator = await startMiniStack({
      auth: true,
      functionEnvironment: { AWS_ENDPOINT_URL_STS: platform.sts.url },
    });
    const deployment = await deployOnMiniStack(assembly!, {
      emulator,
      change: (template) => withoutRegions(withoutPermissions(template, left)),
    });
    const ec2 = new EC2Client(emulator.client);
    try {
      const [first, second] = [await launch(ec2), await launch(ec2)];
      const objects = [
        requestFor({ request: firstOf(first) }),
        requestFor({ request: firstOf(first), by: { username: 'system:node:w1', groups: ['system:nodes'] } }),
        requestFor({ node: 'w1', signerName: signers.serving, by: 'node', csr: { sans: { ip: ['192.168.0.7'] } } }),
      ];
      const outcomes: string[] = [];
      for (const object of objects) outcomes.push(await post(deployment, 'sign', object));
      await ec2.send(new TerminateInstancesCommand({ InstanceIds: [first.instanceId] }));
      const next = requestFor({ request: firstOf(second) });
      outcomes.push(await post(deployment, 'attest', { request: next }), await post(deployment, 'sign', next));
      return { outcomes, log: await logOf(deployment) };
    } finally {
      ec2.destroy();
      await deployment.stop();
    }
  }
  const all = ['issued', 'issued', 'issued', 'verdict', 'issued'];

  test('are enough, all together', async () => {
    const { outcomes, log: said } = await live([]);
    expect(outcomes, said).toEqual(all);
    expect(said).not.toContain('not authorized');
  });

  test('are as little exercised as the review says: without all of those, the same comes of it', async () => {
    expect((await live(Object.keys(reviewed))).outcomes).toEqual(all);
  });

  test.each(Object.entries(exercised))('without %s, AWS says: %s', async (permission, says) => {
    const { outcomes, log: said } = await live([permission]);
    expect(outcomes).not.toEqual(all);
    expect(outcomes).toContain('busy');
    expect(said).toContain(says);
  });
});
