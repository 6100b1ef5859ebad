/**
 * The function that finds out which machine asks, and who else may touch what it remembers. It has no right to any key:
 * what it concludes is a record, and the sign function believes the record, not the answer.
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
 * JSON: certificates (DER, base64) by region, so that the function reads no file and asks nobody for them. They verify
 * identity documents, so where aws/v1 has ended there are none, and a region that AWS opened yesterday needs none.
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

/** Each with its reason in adapters/dynamodb/table.ts. A transaction needs the rights of the writes in it. */
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
    // Not the list of machines and not the locks: who may join is the operator's to say.
    on('WriteAttestations', 'PutItem', ['id', 'node', 'once', 'verdict', 'audit']),
    on('RecallRequests', 'BatchGetItem', ['verdict', 'refused']),
    on('ChangeIdentities', 'UpdateItem', ['id', 'refused']),
    on('CheckNodes', 'ConditionCheckItem', ['node']),
    // Nothing that was spent or concluded can be taken back: only the addresses of a machine that is gone.
    on('FreeAddresses', 'DeleteItem', ['once#address']),
  ];
}

/** What is seen of instances: in the accounts and regions of the file, and nothing besides. */
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

/** For the people who run `countersign lock`, `countersign tofu` and `countersign machines`: attach it to a role of theirs. */
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
      // A scan has no leading keys. Nothing in the table is secret from who decides about it.
      new PolicyStatement({ sid: 'ListRegister', actions: ['dynamodb:Scan'], resources: [table.tableArn] }),
      // No verdicts: what attest concluded, nobody makes up. Audit items are added and never taken away.
      on('WriteRegister', 'PutItem', ['id', 'node', 'once#address', 'machine', 'lock', 'audit']),
      on('ChangeRegister', 'UpdateItem', ['machine']),
      on('ClearRegister', 'DeleteItem', ['id', 'node', 'once#address', 'machine', 'lock']),
      // Running nodes are adopted by what EC2 says of them.
      ...lookStatements(attestation?.aws),
      // The commands are told a cluster, and its table has no name that could be known beforehand.
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

/** What the sign function may read of it: locks; and where machines prove themselves, what was concluded. */
export function readStatement({ tableArn }: Table, attested: boolean): PolicyStatement {
  return new PolicyStatement({
    sid: attested ? 'ReadLocksAndVerdicts' : 'ReadLocks',
    actions: ['dynamodb:GetItem'],
    resources: [tableArn],
    conditions: onItems(attested ? ['lock', 'verdict', 'id'] : ['lock']),
  });
}

/** Where machines prove themselves, sign has a request judged that nobody had judged before. */
export function askStatement(attest: ServiceFunction): PolicyStatement {
  return new PolicyStatement({
    sid: 'AskAttest',
    actions: ['lambda:InvokeFunction'],
    resources: [attest.function.functionArn],
  });
}
