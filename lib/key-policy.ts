/**
 * Who may do what with a CA key: three parties, none of which can do the others' part. The policy is the whole truth:
 * IAM of the account can hand out administration only, since nothing else is delegated to it.
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
 * What CloudFormation needs to look after a key, and people to switch it off or stop its deletion. Not CreateGrant,
 * which could hand the use of the key to anybody past this policy, and nothing that signs or destroys.
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
  { administrators, deleters }: DeploymentConfiguration['keys'],
  { signRole, caRole }: { readonly signRole: Role; readonly caRole: Role },
): PolicyDocument {
  const statement = (sid: string, principals: readonly IPrincipal[], actions: readonly string[], conditions = {}) =>
    new PolicyStatement({
      sid,
      principals: [...principals],
      actions: [...actions],
      // In a key policy: this key.
      resources: ['*'],
      conditions,
    });
  const arns = (list: readonly string[]): IPrincipal[] => list.map((arn) => new ArnPrincipal(arn));
  /** A digest of the one kind that the CA's certificates say: the key cannot be made to sign a message, or otherwise. */
  const asTheCa = {
    StringEquals: { 'kms:SigningAlgorithm': ca.signatureAlgorithm, 'kms:MessageType': 'DIGEST' },
  };
  return new PolicyDocument({
    statements: [
      statement(
        'Administration',
        administrators === undefined ? [new AccountRootPrincipal()] : arns(administrators),
        administration,
      ),
      statement('SignCertificates', [signRole], ['kms:Sign'], asTheCa),
      statement('SignCaCertificate', [caRole], ['kms:Sign'], asTheCa),
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
      // Said twice: whatever else is ever allowed above, nobody but these ends a CA.
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
