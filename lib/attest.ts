/**
 * The attest function, and the rights of others on the attestations table. Attest has no right to any key: it writes its
 * verdict into the table, and the sign function reads it from there.
 */
import { Token, Validations } from 'aws-cdk-lib';
import type { Stack } from 'aws-cdk-lib';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import { ManagedPolicy, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Policy } from 'aws-cdk-lib/aws-iam';
import type { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { readRegionCertificates } from '../adapters/aws/region-certificates.ts';
import type { AwsAttestation } from '../core/configuration/model/attestation.ts';
import { bundleAttestation, bundleCallers } from '../core/configuration/bundled-configuration.ts';
import type { CallersAllowed } from '../core/configuration/bundled-configuration.ts';
import type { ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import { environmentNames } from '../lambdas/attest/env.ts';
import { createFunction } from './functions.ts';
import type { ServiceFunction, Sources } from './functions.ts';
import { onItems } from './leading-keys.ts';
import type { AttestationState } from './state-stack.ts';

export interface AttestOptions {
  readonly cluster: ClusterConfiguration;
  readonly state: AttestationState;
  readonly callers: CallersAllowed;
  readonly reservedConcurrency: number;
  readonly logRetention: RetentionDays;
  readonly sources: Sources;
}

export function createAttest(stack: Stack, options: AttestOptions): ServiceFunction {
  const { cluster, state, callers, reservedConcurrency, logRetention, sources } = options;
  const aws = cluster.attestation?.aws;
  const attest = createFunction(stack, 'Attest', {
    cluster: cluster.name,
    service: 'attest',
    description: `Proves the machines of cluster ${cluster.name}`,
    role: state.attestRole,
    statements: [...rememberStatements(state.table), ...lookStatements(aws)],
    environment: {
      [environmentNames.cluster]: cluster.name,
      [environmentNames.attestationsTable]: state.table.tableName,
      [environmentNames.logLevel]: 'info',
    },
    rules: bundleAttestation(cluster),
    constants: {
      __COUNTERSIGN_REGION_CERTIFICATES__: regionCertificates(aws),
      __COUNTERSIGN_CALLERS__: bundleCallers(callers),
    },
    reservedConcurrency,
    logRetention,
    sources,
  });
  acknowledgeLook(attest.policy, aws);
  return attest;
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

/** adapters/dynamodb/table.ts has the reason for each. A transaction needs the rights of its writes. */
function rememberStatements({ tableArn }: Table): readonly PolicyStatement[] {
  const on = (sid: string, action: string, prefixes: readonly string[]): PolicyStatement =>
    new PolicyStatement({
      sid,
      actions: [`dynamodb:${action}`],
      resources: [tableArn],
      conditions: onItems(prefixes),
    });
  return [
    on('ReadAttestations', 'GetItem', ['id', 'node', 'once', 'verdict', 'machine', 'lock']),
    // Neither the machine list nor the locks: only operators decide which machines may join.
    on('WriteAttestations', 'PutItem', ['id', 'node', 'once', 'verdict', 'audit']),
    on('RecallRequests', 'BatchGetItem', ['verdict', 'refused']),
    on('ChangeIdentities', 'UpdateItem', ['id', 'refused']),
    on('CheckNodes', 'ConditionCheckItem', ['node']),
    // Attest may delete only the addresses of a terminated machine, never a verdict or a used challenge.
    on('FreeAddresses', 'DeleteItem', ['once#address']),
  ];
}

/** Rights to describe instances, in the configured accounts and regions only. */
function lookStatements(aws: AwsAttestation | undefined): readonly PolicyStatement[] {
  if (aws === undefined) return [];
  const roles = [...aws.accounts.values()].flatMap(({ assumeRole }) => assumeRole ?? []);
  return [
    ...(looksHere(aws)
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

function looksHere({ accounts }: AwsAttestation): boolean {
  return [...accounts.values()].some(({ assumeRole }) => assumeRole === undefined);
}

/** https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html: it has no resource types. */
function acknowledgeLook(policy: Policy | ManagedPolicy, aws: AwsAttestation | undefined): void {
  if (aws !== undefined && looksHere(aws))
    Validations.of(policy).acknowledge({
      id: 'AwsSolutions-IAM5[Resource::*]',
      reason: 'ec2:DescribeInstances can be granted on all instances only; it is narrowed to the configured regions',
    });
}

/** The rights for `countersign lock`, `tofu` and `machines`. Operators attach this policy to their role. */
export function createOperatorPolicy(
  stack: Stack,
  { name, attestation }: ClusterConfiguration,
  table: Table,
): ManagedPolicy {
  const on = (sid: string, action: string, prefixes: readonly string[]): PolicyStatement =>
    new PolicyStatement({
      sid,
      actions: [`dynamodb:${action}`],
      resources: [table.tableArn],
      conditions: onItems(prefixes),
    });
  const ownStack = stack.formatArn({ service: 'cloudformation', resource: 'stack', resourceName: `${name}/*` });
  const policy = new ManagedPolicy(stack, 'OperatorPolicy', {
    description: `Operates locks and attestation of cluster ${name}`,
    statements: [
      on('ReadRegister', 'GetItem', ['id', 'node', 'once', 'verdict', 'machine', 'lock']),
      // IAM cannot restrict a scan by leading keys. Operators may read the whole table.
      new PolicyStatement({ sid: 'ListRegister', actions: ['dynamodb:Scan'], resources: [table.tableArn] }),
      // Operators cannot write verdicts, so they cannot forge attest's decision. They can add audit items and delete none.
      on('WriteRegister', 'PutItem', ['id', 'node', 'once#address', 'machine', 'lock', 'audit']),
      on('ChangeRegister', 'UpdateItem', ['machine']),
      on('ClearRegister', 'DeleteItem', ['id', 'node', 'once#address', 'machine', 'lock']),
      // countersign tofu adopt reads the running instances.
      ...lookStatements(attestation?.aws),
      // The table has a generated name, which the commands read from the outputs of the cluster's stack.
      new PolicyStatement({ sid: 'FindRegister', actions: ['cloudformation:DescribeStacks'], resources: [ownStack] }),
    ],
  });
  acknowledgeLook(policy, attestation?.aws);
  // As cdk-nag writes what is only known when it is deployed.
  const plain = (value: string, name: string): string => (Token.isUnresolved(value) ? `<AWS::${name}>` : value);
  const { partition, region, account } = stack;
  const place = `${plain(region, 'Region')}:${plain(account, 'AccountId')}`;
  Validations.of(policy).acknowledge({
    id: `AwsSolutions-IAM5[Resource::arn:${plain(partition, 'Partition')}:cloudformation:${place}:stack/${name}/*]`,
    reason: 'CloudFormation ends the ARN of a stack in an identifier of its own making; its name stands before it',
  });
  return policy;
}

/** What the sign function may read in the table: locks, and with attestation also verdicts. */
export function readStatement({ tableArn }: Table, attested: boolean): PolicyStatement {
  return new PolicyStatement({
    sid: attested ? 'ReadLocksAndVerdicts' : 'ReadLocks',
    actions: ['dynamodb:GetItem'],
    resources: [tableArn],
    conditions: onItems(attested ? ['lock', 'verdict', 'id'] : ['lock']),
  });
}

/** With attestation, sign invokes attest for a request without a verdict. */
export function askStatement(attest: ServiceFunction): PolicyStatement {
  return new PolicyStatement({
    sid: 'AskAttest',
    actions: ['lambda:InvokeFunction'],
    resources: [attest.function.functionArn],
  });
}
