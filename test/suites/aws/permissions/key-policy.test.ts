/** The policy of a CA key as its administrators and deleters meet it: what each statement gives, and what is refused without. */
import { CreateAccessKeyCommand, CreateUserCommand, IAMClient } from '@aws-sdk/client-iam';
import { DescribeKeyCommand, GetKeyPolicyCommand, KMSClient } from '@aws-sdk/client-kms';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  assumeRole,
  createRole,
  synthesiseClusters,
  withoutKmsConditions,
  type ClusterSettings,
} from '../../../harness/aws/ministack-deployment.ts';
import { createStack, publishAssets, type Template } from '../../../harness/aws/sdk-stacks.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { requireTools } from '../../../tools/tools.ts';
import { administration, deletion, refusedActions, type Try } from './key-administration.ts';
import { administrationOf, deletionOf, keyDenial, keyTable } from './tables.ts';
import { permissionsOf, withoutPermissions } from './statements.ts';

const { skip } = await requireTools('ministack');

const arn = (name: string): string => `arn:aws:iam::000000000000:${name}`;
type Who = 'owner' | 'administrator' | 'custodian';

/** The principals that the file names, and the sessions that try the statements of the policy. */
const ways: readonly {
  readonly name: string;
  readonly settings: ClusterSettings;
  readonly administrator: { readonly who: Who; readonly named: string };
  readonly deleter?: { readonly who: Who; readonly named: string };
}[] = [
  {
    name: 'that leaves administration to IAM and denies deletion to all',
    settings: {},
    administrator: { who: 'owner', named: ':root' },
  },
  {
    name: 'that names administrators and deleters',
    settings: { keys: { administrators: [arn('role/administrator')], deleters: [arn('user/custodian')] } },
    administrator: { who: 'administrator', named: 'role/administrator' },
    // For a role MiniStack holds the session's ARN, not the role's, against aws:PrincipalArn; a user's is one and the same.
    deleter: { who: 'custodian', named: 'user/custodian' },
  },
];
const tried = new Set(Object.keys(keyTable.exercised));

describe.skipIf(skip)('a key policy', () => {
  let emulator: Emulator;
  const sessions = new Map<Who, KMSClient>();
  let root: KMSClient;
  beforeAll(async () => {
    emulator = await startMiniStack({ auth: true });
    await publishAssets(emulator, synthesiseClusters({ demo: {} }));
    root = new KMSClient(emulator.client);
    const add = (who: Who, credentials: Parameters<typeof createKmsClient>[1]) =>
      sessions.set(who, createKmsClient(emulator, credentials));
    // IAM lets the first do everything, as many accounts have one; of the others only the key's policy speaks.
    add('owner', await assumeRole(emulator.client, await createRole(emulator, 'owner', '*')));
    add('administrator', await assumeRole(emulator.client, await createRole(emulator, 'administrator')));
    add('custodian', await createUser(emulator, 'custodian'));
  });
  afterAll(async () => {
    for (const client of [root, ...sessions.values()]) client?.destroy();
    await emulator?.stop();
  });

  let stacks = 0;
  /** The key that this template makes. */
  async function createKey(template: Template): Promise<string> {
    const [id] = Object.entries(template.Resources).find(([, { Type: type }]) => type === 'AWS::KMS::Key')!;
    // Its own outputs have names that an account has once.
    const outputs = { Outputs: { Key: { Value: { Ref: id } } } };
    const { Key: key = '' } = await createStack(emulator, `keys-${++stacks}`, { ...template, ...outputs });
    return key;
  }

  async function refused(key: string, who: Who, tries: Readonly<Record<string, Try>>): Promise<string[]> {
    const { Policy: policy = '' } = await root.send(new GetKeyPolicyCommand({ KeyId: key }));
    return refusedActions(sessions.get(who)!, who, { key, policy }, tries);
  }

  const stateOf = async (key: string): Promise<string | undefined> =>
    (await root.send(new DescribeKeyCommand({ KeyId: key }))).KeyMetadata?.KeyState;

  describe.each(ways)('$name', ({ settings, administrator, deleter }) => {
    const template = skip
      ? { Resources: {} }
      : withoutKmsConditions(synthesiseClusters({ demo: settings }).templates.get('countersign-demo-state')!);
    const adminPermission = (action: string) => `CaKeyca Administration ${action} ${administrator.named}`;
    const deletePermission = (action: string) => `CaKeyca Deletion ${action} ${deleter?.named}`;

    test('says nothing about administration and deletion that is not tried here', () => {
      const said = permissionsOf(template).filter((each) => /^CaKeyca (?!Sign|PublicKey)/.test(each));
      const expected = [
        ...administrationOf(administrator.named),
        ...(deleter === undefined ? [] : deletionOf(deleter.named)),
        keyDenial,
      ];
      expect(said.toSorted()).toEqual(expected.toSorted());
      expect(expected.filter((each) => !tried.has(each))).toEqual([]);
    });

    test('lets each do its part, and only that', async () => {
      const key = await createKey(template);
      expect(await refused(key, administrator.who, administration)).toEqual([]);
      expect(await refused(key, administrator.who, deletion)).toEqual(['kms:ScheduleKeyDeletion']);
      if (deleter === undefined) return;
      const others = Object.keys(administration).filter((action) => !(action in deletion));
      expect(await refused(key, deleter.who, administration)).toEqual(others);
      expect(await refused(key, deleter.who, deletion)).toEqual([]);
    });

    test.each(Object.keys(administration))('without %s for administrators, that is refused them', async (action) => {
      const key = await createKey(withoutPermissions(template, [adminPermission(action)]));
      expect(await refused(key, administrator.who, administration)).toEqual([action]);
    });

    test.each(deleter === undefined ? [] : Object.keys(deletion))(
      'without %s for deleters, that is refused them',
      async (action) => {
        const key = await createKey(withoutPermissions(template, [deletePermission(action)]));
        expect(await refused(key, deleter!.who, deletion)).toEqual([action]);
      },
    );

    test('refuses deletion to others whatever else it is made to allow; without its denial it would not', async () => {
      const careless = allowEverything(template);
      const kept = await createKey(careless);
      expect(await refused(kept, 'owner', deletion)).toEqual(['kms:ScheduleKeyDeletion']);
      if (deleter !== undefined) expect(await refused(kept, deleter.who, deletion)).toEqual([]);

      const lost = await createKey(withoutPermissions(careless, [keyDenial]));
      expect(await refused(lost, 'owner', { 'kms:ScheduleKeyDeletion': deletion['kms:ScheduleKeyDeletion'] })).toEqual(
        [],
      );
      expect(await stateOf(lost)).toBe('PendingDeletion');
    });
  });
});

function createKmsClient(
  { client }: Emulator,
  credentials: { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string },
): KMSClient {
  // Once: a refusal does not pass by itself.
  return new KMSClient({ ...client, credentials, maxAttempts: 1 });
}

async function createUser({ client }: Emulator, name: string) {
  const iam = new IAMClient(client);
  try {
    await iam.send(new CreateUserCommand({ UserName: name }));
    const { AccessKey: key } = await iam.send(new CreateAccessKeyCommand({ UserName: name }));
    return { accessKeyId: key?.AccessKeyId ?? '', secretAccessKey: key?.SecretAccessKey ?? '' };
  } finally {
    iam.destroy();
  }
}

/** As an administrator might change the policy for their own tools. */
function allowEverything(template: Template): Template {
  const resources = Object.entries(template.Resources).map(([id, resource]) => {
    const policy = resource.Properties?.['KeyPolicy'] as { Statement: unknown[] } | undefined;
    if (policy === undefined) return [id, resource] as const;
    const everything = { Effect: 'Allow', Action: 'kms:*', Resource: '*', Principal: { AWS: arn('root') } };
    const widened = { ...policy, Statement: [...policy.Statement, everything] };
    return [id, { ...resource, Properties: { ...resource.Properties, KeyPolicy: widened } }] as const;
  });
  return { ...template, Resources: Object.fromEntries(resources) };
}
