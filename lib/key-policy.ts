/**
 * The policies of the keys: a CA key, with separate rights for three parties, and the challenge key. They delegate only
 * administration to IAM, so IAM policies of the account cannot grant the use of a key.
 */
import {
  AccountRootPrincipal,
  AnyPrincipal,
  ArnPrincipal,
  Effect,
  PolicyDocument,
  PolicyStatement,
} from 'aws-cdk-lib/aws-iam';
import type { IPrincipal, Role } from 'aws-cdk-lib/aws-iam';
import type { CaConfiguration } from '../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../core/configuration/model/deployment.ts';

/**
 * CloudFormation needs these actions to manage a key, and operators to disable it or cancel its deletion. CreateGrant is not
 * one of them, since it could grant the use of the key past this policy. None of them signs or destroys.
 */
const administration = [
  'kms:DescribeKey',
  'kms:GetKeyPolicy',
  'kms:ListKeyPolicies',
  'kms:GetKeyRotationStatus',
  'kms:ListResourceTags',
  'kms:GetPublicKey',
  'kms:PutKeyPolicy',
  'kms:UpdateKeyDescription',
  'kms:EnableKey',
  'kms:DisableKey',
  'kms:TagResource',
  'kms:UntagResource',
  'kms:ListGrants',
  'kms:RevokeGrant',
  'kms:CancelKeyDeletion',
];

/** The roles that use a CA key. */
export interface KeyUsers {
  readonly signRole: Role;
  readonly caRole: Role;
  /** Present if the CA signs for kubeadm's control plane. */
  readonly kubeadmRole?: Role | undefined;
  /** Whether a profile names the CA. */
  readonly signsLeaves: boolean;
}

export function caKeyPolicy(
  ca: CaConfiguration,
  { keys, caKeys }: DeploymentConfiguration,
  { signRole, caRole, kubeadmRole, signsLeaves }: KeyUsers,
): PolicyDocument {
  const { deleters, importers } = keys;
  const isImported = ca.kind === 'imported' && ca.keyMaterial === 'imported';
  /** Only digests, with the signature algorithm of the CA: KMS refuses to sign raw messages or with another algorithm. */
  const caAlgorithmOnly = {
    StringEquals: { 'kms:SigningAlgorithm': ca.signatureAlgorithm, 'kms:MessageType': 'DIGEST' },
  };
  return new PolicyDocument({
    statements: [
      statement(
        'Administration',
        administratorsOf(keys),
        // Who replicates a key writes the policy of the replica, as who may put a key policy does.
        caKeys.get(ca.name) === 'multiRegion' ? [...administration, 'kms:ReplicateKey'] : administration,
      ),
      // A root that no profile names signs CAs only.
      ...(signsLeaves ? [statement('SignCertificates', [signRole], ['kms:Sign'], caAlgorithmOnly)] : []),
      ...(kubeadmRole === undefined
        ? []
        : [statement('SignControlPlane', [kubeadmRole], ['kms:Sign'], caAlgorithmOnly)]),
      statement('SignCaCertificate', [caRole], ['kms:Sign'], caAlgorithmOnly),
      statement(
        'PublicKey',
        [signRole, caRole, ...(kubeadmRole === undefined ? [] : [kubeadmRole])],
        ['kms:GetPublicKey'],
      ),
      ...(deleters.length === 0
        ? []
        : [
            statement('Deletion', arns(deleters), [
              'kms:ScheduleKeyDeletion',
              'kms:CancelKeyDeletion',
              'kms:DescribeKey',
            ]),
          ]),
      ...(isImported ? importStatements(importers) : []),
      // An explicit Deny, so that no later Allow lets another principal delete a CA key.
      denyDeletion(deleters),
    ],
  });
}

/**
 * Who imports brings a key, and can neither sign with it nor take it away. Without material a CA stands still at once, where the
 * deletion of a key waits for a week at least; so no principal may delete the material.
 */
function importStatements(importers: readonly string[]): PolicyStatement[] {
  const deletion = new PolicyStatement({
    sid: 'NoDeletionOfMaterial',
    effect: Effect.DENY,
    principals: [new AnyPrincipal()],
    actions: ['kms:DeleteImportedKeyMaterial'],
    resources: ['*'],
  });
  if (importers.length === 0) return [deletion];
  return [
    statement('LookBeforeImport', arns(importers), ['kms:DescribeKey', 'kms:GetPublicKey']),
    statement('PrepareImport', arns(importers), ['kms:GetParametersForImport'], {
      StringEquals: { 'kms:WrappingAlgorithm': 'RSA_AES_KEY_WRAP_SHA_256' },
    }),
    // Material that expires would stop the CA at a date without an alarm.
    statement('ImportKey', arns(importers), ['kms:ImportKeyMaterial'], {
      StringEquals: { 'kms:ExpirationModel': 'KEY_MATERIAL_DOES_NOT_EXPIRE' },
    }),
    deletion,
  ];
}

/**
 * The key of attestation challenges, which live two minutes. Its loss ends the open ones, and machines ask for others. So its
 * administrators may delete it, as CloudFormation does with its stack.
 */
export function challengeKeyPolicy({ keys }: DeploymentConfiguration, attestRole: Role): PolicyDocument {
  const macOnly = { StringEquals: { 'kms:MacAlgorithm': 'HMAC_SHA_256' } };
  return new PolicyDocument({
    statements: [
      statement('Administration', administratorsOf(keys), [
        // An HMAC key has no public key.
        ...administration.filter((action) => action !== 'kms:GetPublicKey'),
        'kms:ScheduleKeyDeletion',
      ]),
      // Not kms:VerifyMac: attest compares with a MAC that it makes.
      statement('MakeChallenges', [attestRole], ['kms:GenerateMac'], macOnly),
    ],
  });
}

function statement(
  sid: string,
  principals: readonly IPrincipal[],
  actions: readonly string[],
  conditions = {},
): PolicyStatement {
  return new PolicyStatement({
    sid,
    principals: [...principals],
    actions: [...actions],
    // In a key policy * means this key.
    resources: ['*'],
    conditions,
  });
}

function arns(list: readonly string[]): IPrincipal[] {
  return list.map((arn) => new ArnPrincipal(arn));
}

function administratorsOf({ administrators }: DeploymentConfiguration['keys']): IPrincipal[] {
  return administrators === undefined ? [new AccountRootPrincipal()] : arns(administrators);
}

function denyDeletion(deleters: readonly string[]): PolicyStatement {
  return new PolicyStatement({
    sid: 'NoOtherDeletion',
    effect: Effect.DENY,
    principals: [new AnyPrincipal()],
    actions: ['kms:ScheduleKeyDeletion'],
    resources: ['*'],
    ...(deleters.length === 0 ? {} : { conditions: { ArnNotEquals: { 'aws:PrincipalArn': [...deleters] } } }),
  });
}
