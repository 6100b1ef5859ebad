/**
 * The attest function, and the rights of operators on the attestations table. Attest has no right to any CA key: it writes its
 * verdict into the table, and the sign function reads it from there. The policy of the challenge key lets it make MACs.
 */
import { Duration, Stack, Token, Validations } from 'aws-cdk-lib';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import { Rule, RuleTargetInput, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction as LambdaTarget } from 'aws-cdk-lib/aws-events-targets';
import { ManagedPolicy, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Policy } from 'aws-cdk-lib/aws-iam';
import type { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { readRegionCertificates } from '../adapters/aws/region-certificates.ts';
import { partitionOf } from '../core/attestation/aws/partition.ts';
import { hasSchedule, scheduledLook, scheduleInterval } from '../core/attestation/retirement/schedule.ts';
import type { ClusterAttestation } from '../core/configuration/model/attestation.ts';
import type { AwsAttestation } from '../core/configuration/providers/aws.ts';
import { bundleAttestation, bundleCallers } from '../core/configuration/bundled-configuration.ts';
import type { CallersAllowed } from '../core/configuration/bundled-configuration.ts';
import type { ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import { environmentNames } from '../adapters/lambda/environment.ts';
import { certificatesTable } from '../adapters/dynamodb/table.ts';
import { createFunction } from './functions.ts';
import type { ServiceFunction, Site } from './functions.ts';
import type { SigningState } from './signing-state.ts';
import { allowItems } from './table-rights.ts';

export function createAttest(
  scope: Construct,
  site: Site,
  { attestations: table, attestRole, challengeKey }: SigningState,
  callers: CallersAllowed,
): ServiceFunction | undefined {
  if (attestRole === undefined) return undefined;
  const { cluster } = site;
  const aws = cluster.attestation?.aws;
  const attest = createFunction(scope, 'attest', site, {
    description: `Proves the machines of cluster ${cluster.name}`,
    role: attestRole,
    statements: [
      // adapters/dynamodb/table.ts lists these rights. A transaction needs those of its reads, writes and checks.
      allowItems('ReadAttestations', table, 'GetItem', ['id', 'node', 'once', 'verdict', 'machine', 'lock']),
      // Neither the machine list nor the locks: only operators decide which machines may join.
      allowItems('WriteAttestations', table, 'PutItem', ['id', 'node', 'once', 'verdict', 'audit']),
      allowItems('RecallRequests', table, 'BatchGetItem', ['verdict', 'refused']),
      allowItems('ChangeIdentities', table, 'UpdateItem', ['id', 'refused']),
      allowItems('CheckNodes', table, 'ConditionCheckItem', ['node', 'machine']),
      // Attest may delete only the addresses of a terminated machine, never a verdict or a used challenge.
      allowItems('FreeAddresses', table, 'DeleteItem', ['once#address']),
      ...describeStatements(aws),
      ...endorsementKeyStatements(cluster.attestation),
    ],
    environment: {
      [environmentNames.cluster]: cluster.name,
      [environmentNames.attestationsTable]: table.tableName,
      ...(challengeKey === undefined ? {} : { [environmentNames.challengeKey]: challengeKey }),
      [environmentNames.logLevel]: 'info',
    },
    rules: bundleAttestation(cluster),
    constants: {
      __COUNTERSIGN_REGION_CERTIFICATES__: regionCertificates(aws),
      __COUNTERSIGN_CALLERS__: bundleCallers(callers),
    },
    reserves: true,
  });
  if (hasSchedule(cluster)) createSchedule(scope, attest);
  acknowledgeDescribe(attest.policy, aws);
  acknowledgeInstances(attest.policy, cluster.attestation);
  return attest;
}

/** CDK lets EventBridge invoke attest for this rule alone (`aws:SourceArn`). lambdas/attest/look.ts reads the event. */
function createSchedule(scope: Construct, { function: attest }: ServiceFunction): void {
  new Rule(scope, 'RetireTerminated', {
    description: 'Has the attest function retire machines that EC2 reports as terminated',
    schedule: Schedule.rate(Duration.millis(scheduleInterval)),
    targets: [new LambdaTarget(attest, { event: RuleTargetInput.fromObject(scheduledLook) })],
  });
}

/**
 * JSON: the certificates that verify instance identity documents (DER, base64), by region, so that the function reads no
 * file and calls no service for them. Empty if aws/v1 is switched off, so that a new region works without an update.
 */
function regionCertificates(aws: AwsAttestation | undefined): string {
  const byRegion =
    aws === undefined || !aws.acceptV1 ? new Map<string, readonly Uint8Array[]>() : readRegionCertificates(aws);
  return JSON.stringify(
    Object.fromEntries(
      [...byRegion].map(([region, list]) => [region, list.map((der) => Buffer.from(der).toString('base64'))]),
    ),
  );
}

/** Rights to describe instances, in the configured accounts and regions only. */
function describeStatements(aws: AwsAttestation | undefined): readonly PolicyStatement[] {
  if (aws === undefined) return [];
  const roles = [...aws.accounts.values()].flatMap(({ assumeRole }) => assumeRole ?? []);
  return [
    ...(describesOwnAccount(aws)
      ? [
          new PolicyStatement({
            sid: 'LookAtInstances',
            actions: ['ec2:DescribeInstances'],
            resources: ['*'],
            conditions: { StringEquals: { 'aws:RequestedRegion': [...aws.regions] } },
          }),
        ]
      : []),
    ...(roles.length === 0
      ? []
      : [new PolicyStatement({ sid: 'LookElsewhere', actions: ['sts:AssumeRole'], resources: roles })]),
  ];
}

function describesOwnAccount({ accounts }: AwsAttestation): boolean {
  return [...accounts.values()].some(({ assumeRole }) => assumeRole === undefined);
}

/**
 * The right to read the endorsement keys of instances in the own account. Those of other accounts are read with the role there. The
 * reference below has the resource type `instance` for this action.
 */
function endorsementKeyStatements(attestation: ClusterAttestation | undefined): readonly PolicyStatement[] {
  const resources = [...instancesOf(attestation)];
  if (resources.length === 0) return [];
  return [new PolicyStatement({ sid: 'ReadEndorsementKeys', actions: ['ec2:GetInstanceTpmEkPub'], resources })];
}

/** ARN patterns. Empty if no profile takes evidence of aws-nitrotpm. */
function instancesOf({ awsNitroTpm, aws }: Partial<ClusterAttestation> = {}): readonly string[] {
  if (awsNitroTpm !== true || aws === undefined) return [];
  const own = [...aws.accounts].flatMap(([account, { assumeRole }]) => (assumeRole === undefined ? [account] : []));
  return own.flatMap((account) =>
    aws.regions.map((region) => `arn:${partitionOf(region)?.name ?? 'aws'}:ec2:${region}:${account}:instance/*`),
  );
}

function acknowledgeInstances(policy: Policy | ManagedPolicy, attestation: ClusterAttestation | undefined): void {
  for (const arn of instancesOf(attestation))
    Validations.of(policy).acknowledge({
      id: `AwsSolutions-IAM5[Resource::${arn}]`,
      reason: 'instances come and go; attest decides which of them may join',
    });
}

/** https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html: it has no resource types. */
function acknowledgeDescribe(policy: Policy | ManagedPolicy, aws: AwsAttestation | undefined): void {
  if (aws !== undefined && describesOwnAccount(aws))
    Validations.of(policy).acknowledge({
      id: 'AwsSolutions-IAM5[Resource::*]',
      reason: 'ec2:DescribeInstances can be granted on all instances only; it is narrowed to the configured regions',
    });
}

/** What operators read and change. */
export interface OperatorSite {
  readonly attestations: Table;
  readonly certificates: Table;
  /** Of sign and attest. */
  readonly logs: readonly LogGroup[];
}

/** The rights for `countersign lock`, `tofu`, `machines`, `trace` and `status`, which also invokes the ca function. */
export function operatorStatements(
  scope: Construct,
  { attestation }: ClusterConfiguration,
  { attestations: table, certificates, logs }: OperatorSite,
): readonly PolicyStatement[] {
  const stack = Stack.of(scope);
  const resourceName = `${stack.stackName}/*`;
  const ownStack = stack.formatArn({ service: 'cloudformation', resource: 'stack', resourceName });
  return [
    allowItems('ReadRegister', table, 'GetItem', ['id', 'node', 'once', 'verdict', 'machine', 'lock']),
    // IAM cannot restrict a scan by leading keys. Operators may read the whole table.
    new PolicyStatement({ sid: 'ListRegister', actions: ['dynamodb:Scan'], resources: [table.tableArn] }),
    // Operators cannot write verdicts, so they cannot forge attest's decision. They can add audit items and delete none.
    allowItems('WriteRegister', table, 'PutItem', ['id', 'node', 'once#address', 'machine', 'lock', 'audit']),
    allowItems('ChangeRegister', table, 'UpdateItem', ['machine']),
    allowItems('ClearRegister', table, 'DeleteItem', ['id', 'node', 'once#address', 'machine', 'lock']),
    // countersign trace follows one request; cert revoke reads what it would write. Neither reads the CAs.
    allowItems('ReadLedger', certificates, 'GetItem', ['uid', 'revoked']),
    // Operators add revocations and delete none.
    allowItems('Revoke', certificates, 'PutItem', ['revoked']),
    new PolicyStatement({
      sid: 'FindSerial',
      actions: ['dynamodb:Query'],
      resources: [`${certificates.tableArn}/index/${certificatesTable.indexes.serial.name}`],
    }),
    // countersign cert list, find and export read records by the time at which they expire. No statement permits a scan of this table.
    new PolicyStatement({
      sid: 'ListCertificates',
      actions: ['dynamodb:Query'],
      resources: [`${certificates.tableArn}/index/${certificatesTable.indexes.expiry.name}`],
    }),
    new PolicyStatement({
      sid: 'ReadLogs',
      actions: ['logs:FilterLogEvents'],
      resources: logs.map(({ logGroupArn }) => logGroupArn),
    }),
    // countersign tofu adopt reads the running instances.
    ...describeStatements(attestation?.aws),
    // countersign status shows whether both tables are ready, protected and backed up.
    ...Object.entries({ LookAtTables: 'DescribeTable', LookAtBackups: 'DescribeContinuousBackups' }).map(
      ([sid, action]) =>
        new PolicyStatement({
          sid,
          actions: [`dynamodb:${action}`],
          resources: [table.tableArn, certificates.tableArn],
        }),
    ),
    // The tables and logs have generated names, which the commands read from the outputs of the cluster's stack.
    new PolicyStatement({ sid: 'FindRegister', actions: ['cloudformation:DescribeStacks'], resources: [ownStack] }),
  ];
}

/** Operators attach this policy to their role. */
export function createOperatorPolicy(
  scope: Construct,
  { name, attestation }: ClusterConfiguration,
  statements: readonly PolicyStatement[],
): ManagedPolicy {
  const policy = new ManagedPolicy(scope, 'OperatorPolicy', {
    description: `Operates locks and attestation of cluster ${name}`,
    statements: [...statements],
  });
  acknowledgeDescribe(policy, attestation?.aws);
  // cdk-nag writes values that are known only at deployment as `<AWS::Name>`.
  const nagText = (value: string, name: string): string => (Token.isUnresolved(value) ? `<AWS::${name}>` : value);
  const { partition, region, account, stackName } = Stack.of(scope);
  const place = `${nagText(region, 'Region')}:${nagText(account, 'AccountId')}`;
  Validations.of(policy).acknowledge({
    id: `AwsSolutions-IAM5[Resource::arn:${nagText(partition, 'Partition')}:cloudformation:${place}:stack/${stackName}/*]`,
    reason: 'CloudFormation ends the ARN of a stack in an identifier of its own making; its name stands before it',
  });
  return policy;
}
