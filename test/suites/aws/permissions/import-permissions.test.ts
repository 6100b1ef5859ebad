/** Who may bring the key of a CA: what each statement gives, and what is refused without. The stack is the real one, on MiniStack. */
import {
  CreateKeyCommand,
  DeleteImportedKeyMaterialCommand,
  DescribeKeyCommand,
  GetKeyPolicyCommand,
  KMSClient,
  SignCommand,
} from '@aws-sdk/client-kms';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectKey } from '../../../../cli/aws/key-import.ts';
import type { ImportableKey } from '../../../../cli/runtime/io.ts';
import {
  assumeRole,
  createRole,
  synthesiseClusters,
  withoutKmsConditions,
} from '../../../harness/aws/ministack-deployment.ts';
import type { SessionCredentials } from '../../../harness/aws/ministack-deployment.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { createStack, publishAssets } from '../../../harness/aws/sdk-stacks.ts';
import type { Template } from '../../../harness/aws/sdk-stacks.ts';
import { requireTools } from '../../../tools/tools.ts';
import { permissionsOf, withoutPermissions } from './statements.ts';
import { importPermission, importTable, materialDenial } from './tables.ts';

const { skip } = await requireTools('ministack');

describe.skipIf(skip)('a CA key that awaits its material', () => {
  const moved = {
    cas: { ca: { kind: 'imported', keyMaterial: 'imported', subject: { commonName: 'kubernetes' } } },
    keys: { importers: ['arn:aws:iam::000000000000:role/mover'] },
  };
  let emulator: Emulator;
  let template: Template;
  let mover: SessionCredentials;
  let owner: SessionCredentials;
  beforeAll(async () => {
    emulator = await startMiniStack({ auth: true });
    const assembly = synthesiseClusters({ demo: moved });
    await publishAssets(emulator, assembly);
    template = withoutKmsConditions(assembly.templates.get('countersign-demo-state')!);
    // Of the first only the key's policy speaks; IAM lets the second do everything.
    mover = await assumeRole(emulator.client, await createRole(emulator, 'mover'));
    owner = await assumeRole(emulator.client, await createRole(emulator, 'owner', '*'));
  });
  afterAll(() => emulator?.stop());

  let stacks = 0;
  /**
   * The key of the stack. MiniStack's CloudFormation passes over KeySpec and state of a key whose Origin is EXTERNAL, so the key is
   * made by a call, with the policy that the stack gives its key; test/unit/lib/state-stack.test.ts asserts the template.
   */
  async function createKey(of: Template): Promise<string> {
    const [id] = Object.entries(of.Resources).find(([name]) => name.startsWith('CaKey'))!;
    const outputs = { Outputs: { Key: { Value: { Ref: id } } } };
    const { Key: made = '' } = await createStack(emulator, `moved-${++stacks}`, { ...of, ...outputs });
    const root = new KMSClient(emulator.client);
    const { Policy } = await root.send(new GetKeyPolicyCommand({ KeyId: made }));
    const awaiting = { Origin: 'EXTERNAL', KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY', Policy } as const;
    const key = await root.send(new CreateKeyCommand(awaiting));
    root.destroy();
    return key.KeyMetadata!.Arn!;
  }

  async function by<T>(credentials: SessionCredentials, act: (kms: KMSClient) => Promise<T>): Promise<T> {
    const kms = new KMSClient({ ...emulator.client, credentials, maxAttempts: 1 });
    try {
      return await act(kms);
    } finally {
      kms.destroy();
    }
  }

  /** The steps of `countersign ca import-key` that are refused. */
  async function refusedSteps(keyArn: string, credentials: SessionCredentials): Promise<string[]> {
    const key = connectKey(keyArn, { ...emulator.client, credentials });
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const material = privateKey.export({ type: 'pkcs8', format: 'der' });
    const steps: Readonly<Record<string, (of: ImportableKey) => Promise<unknown>>> = {
      describe: (of) => of.describe(),
      import: (of) => of.importMaterial(material, randomBytes),
      publicKey: (of) => of.publicKey(),
    };
    const refused: string[] = [];
    for (const [name, step] of Object.entries(steps))
      await step(key).catch((error: unknown) => {
        // A key without material has no public key to show.
        if (String(error).includes('KMSInvalidStateException')) return;
        expect(String(error)).toContain('AccessDenied');
        refused.push(name);
      });
    key.close();
    return refused;
  }

  test('has no statement about imports that is not tried here', () => {
    const said = permissionsOf(template).filter((each) => /^CaKeyca (Look|Prepare|Import|NoDeletionOf)/.test(each));
    expect(said.toSorted()).toEqual(Object.keys(importTable.exercised).toSorted());
  });

  test('is made without material, and takes it from those named, who can neither sign with it nor take it away', async () => {
    const key = await createKey(template);
    const about = await by(owner, (kms) => kms.send(new DescribeKeyCommand({ KeyId: key })));
    expect(about.KeyMetadata).toMatchObject({ Origin: 'EXTERNAL', KeyState: 'PendingImport' });
    expect(await refusedSteps(key, mover)).toEqual([]);
    const sign = new SignCommand({
      KeyId: key,
      Message: randomBytes(32),
      MessageType: 'DIGEST',
      SigningAlgorithm: 'ECDSA_SHA_256',
    });
    for (const act of [
      (kms: KMSClient) => kms.send(sign),
      (kms: KMSClient) => kms.send(new DeleteImportedKeyMaterialCommand({ KeyId: key })),
    ])
      await expect(by(mover, act)).rejects.toThrow(/not authorized|AccessDenied/);
  });

  test('refuses it from any other principal, whatever IAM permits', async () => {
    expect(await refusedSteps(await createKey(template), owner)).toContain('import');
  });

  test.each([
    ['describe', 'describe'],
    ['publicKey', 'publicKey'],
    ['parameters', 'import'],
    ['material', 'import'],
  ] as const)('without the permission %s, %s is refused', async (permission, step) => {
    const key = await createKey(withoutPermissions(template, [importPermission(permission)]));
    expect((await refusedSteps(key, mover)).filter((each) => each === step)).toEqual([step]);
  });

  test('keeps it from a principal that is allowed everything, but not without the denial', async () => {
    const careless = widened(template);
    const lose = (kms: KMSClient, KeyId: string) => kms.send(new DeleteImportedKeyMaterialCommand({ KeyId }));
    const kept = await createKey(careless);
    expect(await refusedSteps(kept, mover)).toEqual([]);
    await expect(by(owner, (kms) => lose(kms, kept))).rejects.toThrow(/not authorized|AccessDenied/);
    const lost = await createKey(withoutPermissions(careless, [materialDenial]));
    expect(await refusedSteps(lost, mover)).toEqual([]);
    await by(owner, (kms) => lose(kms, lost));
    const { Policy: policy = '' } = await by(owner, (kms) => kms.send(new GetKeyPolicyCommand({ KeyId: lost })));
    expect(policy).not.toContain('DeleteImportedKeyMaterial');
  });
});

/** As an administrator might change the policy for their own tools. */
function widened(template: Template): Template {
  const resources = Object.entries(template.Resources).map(([id, resource]) => {
    const policy = resource.Properties?.['KeyPolicy'] as { Statement: unknown[] } | undefined;
    if (policy === undefined) return [id, resource] as const;
    const all = {
      Effect: 'Allow',
      Action: 'kms:*',
      Resource: '*',
      Principal: { AWS: 'arn:aws:iam::000000000000:root' },
    };
    const KeyPolicy = { ...policy, Statement: [...policy.Statement, all] };
    return [id, { ...resource, Properties: { ...resource.Properties, KeyPolicy } }] as const;
  });
  return { ...template, Resources: Object.fromEntries(resources) };
}
