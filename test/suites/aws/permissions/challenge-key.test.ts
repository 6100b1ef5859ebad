/** The policy of the challenge key: only attest's role makes MACs with it, and what administrators may do. */
import { GetKeyPolicyCommand, KMSClient } from '@aws-sdk/client-kms';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kmsChallengeKey } from '../../../../adapters/aws/kms-challenge-key.ts';
import { MisconfigurationError } from '../../../../core/ports/errors.ts';
import {
  assumeRole,
  createRole,
  judgedByMiniStack,
  synthesiseClusters,
} from '../../../harness/aws/ministack-deployment.ts';
import type { Emulator } from '../../../harness/aws/emulator.ts';
import { startMiniStack } from '../../../harness/aws/ministack.ts';
import { createStack, publishAssets, type Template } from '../../../harness/aws/sdk-stacks.ts';
import { requireTools } from '../../../tools/tools.ts';
import { challengeAdministration, refusedActions } from './key-administration.ts';
import { challengeAdministrationOf, challengeKeyTable, macPermission } from './tables.ts';
import { permissionsOf, withoutPermissions } from './statements.ts';

const { skip } = await requireTools('ministack');

const signerName = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm';
const settings = {
  profiles: { [signerName]: { ca: 'ca', maxTtl: '1d' } },
  attestation: { audience: 'demo', tpm: { machines: 'listed' } },
};
const administrators = ['arn:aws:iam::000000000000:role/administrator'];
/** The administrators that the file names, and the role that tries what they may do. IAM lets `owner` do everything. */
const ways = [
  { who: 'owner', named: ':root', keys: {} },
  { who: 'administrator', named: 'role/administrator', keys: { keys: { administrators } } },
] as const;
const tried = new Set(Object.keys(challengeKeyTable.exercised));
const message = new Uint8Array(Buffer.from('a challenge'));

describe.skipIf(skip)('the policy of the challenge key', () => {
  let emulator: Emulator;
  const owners = new Map<string, KMSClient>();
  beforeAll(async () => {
    emulator = await startMiniStack({ auth: true });
    await publishAssets(emulator, synthesiseClusters({ demo: settings }));
    owners.set('owner', await sessionOf(await createRole(emulator, 'owner', '*')));
    owners.set('administrator', await sessionOf(await createRole(emulator, 'administrator')));
  });
  afterAll(async () => {
    for (const client of owners.values()) client.destroy();
    await emulator?.stop();
  });

  async function sessionOf(role: string): Promise<KMSClient> {
    const credentials = await assumeRole(emulator.client, role);
    // Once: a refusal does not pass by itself.
    return new KMSClient({ ...emulator.client, credentials, maxAttempts: 1 });
  }

  let stacks = 0;
  /** ARNs of the challenge key and of the three roles. */
  async function create(template: Template): Promise<Readonly<Record<string, string>>> {
    const ids = Object.keys(template.Resources);
    const outputs = ['ChallengeKey', 'SignRole', 'CaRole', 'AttestRole'].map((name) => {
      const id = ids.find((each) => new RegExp(`^${name}[0-9A-F]{8}$`).test(each));
      return [name, { Value: { 'Fn::GetAtt': [id, 'Arn'] } }] as const;
    });
    return createStack(emulator, `challenges-${++stacks}`, {
      ...template,
      Outputs: Object.fromEntries(outputs),
    } as Template);
  }

  async function canMac(key: string, kms: KMSClient): Promise<boolean> {
    try {
      return (await kmsChallengeKey(key, kms).mac(message)).length === 32;
    } catch (error) {
      expect(error).toBeInstanceOf(MisconfigurationError);
      expect((error as Error).message).toBe('the key cannot be used (AccessDeniedException)');
      return false;
    }
  }

  describe.each(ways)('administered by $named', ({ who, named, keys }) => {
    const template = skip
      ? { Resources: {} }
      : judgedByMiniStack(
          synthesiseClusters({ demo: { ...settings, ...keys } }).templates.get('countersign-demo-state')!,
        );

    test('says nothing that is not tried here', () => {
      const said = permissionsOf(template).filter((each) => each.startsWith('ChallengeKey '));
      const expected = [...challengeAdministrationOf(named), macPermission];
      expect(said.toSorted()).toEqual(expected.toSorted());
      expect(expected.filter((each) => !tried.has(each))).toEqual([]);
    });

    async function refused(key: string): Promise<string[]> {
      const root = new KMSClient(emulator.client);
      const { Policy: policy = '' } = await root.send(new GetKeyPolicyCommand({ KeyId: key }));
      root.destroy();
      return refusedActions(owners.get(who)!, who, { key, policy }, challengeAdministration);
    }

    test('lets only attest’s role make MACs, and administrators do the rest', async () => {
      const made = await create(template);
      const key = made['ChallengeKey'] ?? '';
      const able: string[] = [];
      for (const role of ['SignRole', 'CaRole', 'AttestRole'] as const) {
        const kms = await sessionOf(made[role] ?? '');
        if (await canMac(key, kms)) able.push(role);
        kms.destroy();
      }
      for (const [name, kms] of owners) if (await canMac(key, kms)) able.push(name);
      expect(able).toEqual(['AttestRole']);
      expect(await refused(key)).toEqual([]);
    });

    test.each(Object.keys(challengeAdministration))('without %s that is refused to administrators', async (action) => {
      const left = `ChallengeKey Administration ${action} ${named}`;
      const made = await create(withoutPermissions(template, [left]));
      expect(await refused(made['ChallengeKey'] ?? '')).toEqual([action]);
    });

    test('without its statement attest makes no MAC, whatever IAM policies allow', async () => {
      const made = await create(withoutPermissions(template, [macPermission]));
      const kms = await sessionOf(made['AttestRole'] ?? '');
      expect(await canMac(made['ChallengeKey'] ?? '', kms)).toBe(false);
      kms.destroy();
    });
  });
});
