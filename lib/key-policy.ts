/**
 * The policy of a CA key, with separate rights for three parties. It delegates only administration to IAM, so IAM policies
 * of the account cannot grant the use of the key.
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

export function caKeyPolicy(
  ca: CaConfiguration,
  { keys: { administrators, deleters }, caKeys }: DeploymentConfiguration,
  { signRole, caRole }: { readonly signRole: Role; readonly caRole: Role },
): PolicyDocument {
  const statement = (sid: string, principals: readonly IPrincipal[], actions: readonly string[], conditions = {}) =>
    new PolicyStatement({
      sid,
      principals: [...principals],
      actions: [...actions],
      // In a key policy * means this key.
      resources: ['*'],
      conditions,
    });
  const arns = (list: readonly string[]): IPrincipal[] => list.map((arn) => new ArnPrincipal(arn));
  /** Only digests, with the signature algorithm of the CA: KMS refuses to sign raw messages or with another algorithm. */
  const caAlgorithmOnly = {
    StringEquals: { 'kms:SigningAlgorithm': ca.signatureAlgorithm, 'kms:MessageType': 'DIGEST' },
  };
  return new PolicyDocument({
    statements: [
      statement(
        'Administration',
        administrators === undefined ? [new AccountRootPrincipal()] : arns(administrators),
        // Who replicates a key writes the policy of the replica, as who may put a key policy does.
        caKeys.get(ca.name) === 'multiRegion' ? [...administration, 'kms:ReplicateKey'] : administration,
      ),
      statement('SignCertificates', [signRole], ['kms:Sign'], caAlgorithmOnly),
      statement('SignCaCertificate', [caRole], ['kms:Sign'], caAlgorithmOnly),
      statement('PublicKey', [signRole, caRole], ['kms:GetPublicKey']),
      ...(deleters.length === 0
        ? []
        : [
            statement('Deletion', arns(deleters), [
              'kms:ScheduleKeyDeletion',
              'kms:CancelKeyDeletion',
              'kms:DescribeKey',
            ]),
          ]),
      // An explicit Deny, so that no later Allow lets another principal delete a CA key.
      denyDeletion(deleters),
    ],
  });
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
