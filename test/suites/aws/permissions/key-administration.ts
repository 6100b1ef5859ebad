/** What administrators of a key may do with it, each once. */
import {
  CancelKeyDeletionCommand,
  DescribeKeyCommand,
  DisableKeyCommand,
  EnableKeyCommand,
  GetKeyPolicyCommand,
  GetKeyRotationStatusCommand,
  GetPublicKeyCommand,
  ListGrantsCommand,
  ListKeyPoliciesCommand,
  ListResourceTagsCommand,
  PutKeyPolicyCommand,
  RevokeGrantCommand,
  ScheduleKeyDeletionCommand,
  TagResourceCommand,
  UntagResourceCommand,
  UpdateKeyDescriptionCommand,
  type KMSClient,
} from '@aws-sdk/client-kms';

/** `policy`: what the key has already. */
export type Try = (kms: KMSClient, KeyId: string, policy: string) => Promise<unknown>;

/** In this order each leaves the key as the next one needs it. */
export const administration = {
  'kms:DescribeKey': (kms, KeyId) => kms.send(new DescribeKeyCommand({ KeyId })),
  'kms:GetKeyPolicy': (kms, KeyId) => kms.send(new GetKeyPolicyCommand({ KeyId })),
  'kms:ListKeyPolicies': (kms, KeyId) => kms.send(new ListKeyPoliciesCommand({ KeyId })),
  'kms:GetKeyRotationStatus': (kms, KeyId) => kms.send(new GetKeyRotationStatusCommand({ KeyId })),
  'kms:ListResourceTags': (kms, KeyId) => kms.send(new ListResourceTagsCommand({ KeyId })),
  'kms:GetPublicKey': (kms, KeyId) => kms.send(new GetPublicKeyCommand({ KeyId })),
  'kms:PutKeyPolicy': (kms, KeyId, Policy) => kms.send(new PutKeyPolicyCommand({ KeyId, Policy })),
  'kms:UpdateKeyDescription': (kms, KeyId) =>
    kms.send(new UpdateKeyDescriptionCommand({ KeyId, Description: 'another' })),
  'kms:DisableKey': (kms, KeyId) => kms.send(new DisableKeyCommand({ KeyId })),
  'kms:EnableKey': (kms, KeyId) => kms.send(new EnableKeyCommand({ KeyId })),
  'kms:TagResource': (kms, KeyId) =>
    kms.send(new TagResourceCommand({ KeyId, Tags: [{ TagKey: 'team', TagValue: 'pki' }] })),
  'kms:UntagResource': (kms, KeyId) => kms.send(new UntagResourceCommand({ KeyId, TagKeys: ['team'] })),
  'kms:ListGrants': (kms, KeyId) => kms.send(new ListGrantsCommand({ KeyId })),
  // No grant exists, since no principal may create one: NotFoundException shows that revoking is permitted.
  'kms:RevokeGrant': (kms, KeyId) =>
    kms.send(new RevokeGrantCommand({ KeyId, GrantId: 'none' })).catch(unless('NotFoundException')),
  'kms:CancelKeyDeletion': (kms, KeyId) =>
    kms.send(new CancelKeyDeletionCommand({ KeyId })).catch(unless('KMSInvalidStateException')),
} as const satisfies Readonly<Record<string, Try>>;

export const deletion = {
  'kms:DescribeKey': administration['kms:DescribeKey'],
  'kms:ScheduleKeyDeletion': (kms, KeyId) =>
    kms.send(new ScheduleKeyDeletionCommand({ KeyId, PendingWindowInDays: 7 })),
  'kms:CancelKeyDeletion': administration['kms:CancelKeyDeletion'],
} as const satisfies Readonly<Record<string, Try>>;

/** Likewise of the challenge key, which has no public key, and which they may delete. */
const { 'kms:GetPublicKey': _, 'kms:CancelKeyDeletion': cancel, ...others } = administration;
export const challengeAdministration = {
  ...others,
  'kms:ScheduleKeyDeletion': deletion['kms:ScheduleKeyDeletion'],
  'kms:CancelKeyDeletion': cancel,
} as const satisfies Readonly<Record<string, Try>>;

/** The actions that were refused to this session; anything else that goes wrong is thrown. */
export async function refusedActions(
  kms: KMSClient,
  who: string,
  { key, policy }: { readonly key: string; readonly policy: string },
  tries: Readonly<Record<string, Try>>,
): Promise<string[]> {
  const actions: string[] = [];
  for (const [action, attempt] of Object.entries(tries))
    try {
      await attempt(kms, key, policy);
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'AccessDeniedException') throw error;
      if (!new RegExp(`/${who}(/suite)? is not authorized to perform: ${action} `).test(error.message)) throw error;
      actions.push(action);
    }
  return actions;
}

function unless(name: string): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof Error) || error.name !== name) throw error;
  };
}
