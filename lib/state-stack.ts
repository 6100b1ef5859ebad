/**
 * What a cluster must not lose: its CA keys, its certificates table, its attestation records, and the roles that other
 * policies name: AWS replaces such a name by the role's ID, so a role that is created again with that name has no rights.
 */
import { ArnFormat, CfnOutput, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type { App, StackProps } from 'aws-cdk-lib';
import { AttributeType, BillingMode, Table } from 'aws-cdk-lib/aws-dynamodb';
import { Effect, Policy, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { CfnReplicaKey, Key, KeySpec, KeyUsage } from 'aws-cdk-lib/aws-kms';
import { attestationsTable, certificatesTable } from '../adapters/dynamodb/table.ts';
import type { CaConfiguration, ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../core/configuration/model/deployment.ts';
import { functionName, stackNames } from '../core/configuration/resolve/deployment.ts';
import { caKeyPolicy } from './key-policy.ts';

export interface ClusterState {
  readonly stack: Stack;
  readonly table: Table;
  /** ARNs by CA name. */
  readonly keys: ReadonlyMap<string, string>;
  /** The roles that may use the keys. The service stack grants their other rights. */
  readonly signRole: Role;
  readonly caRole: Role;
  /** Locks, and with attestation all records. */
  readonly attestations: Table;
  /** Only with attestation. */
  readonly attestation?: AttestationState;
}

export interface AttestationState {
  readonly table: Table;
  /** No key policy names it. Roles of other accounts trust it, so that attest can describe their instances. */
  readonly attestRole: Role;
}

export function createStateStack(
  app: App,
  cluster: ClusterConfiguration,
  deployment: DeploymentConfiguration,
  props: StackProps,
): ClusterState {
  const stack = new Stack(app, stackNames(cluster.name).state, {
    ...props,
    description: `Countersign, cluster ${cluster.name}: CA keys and tables`,
    terminationProtection: true,
  });
  const signRole = createRole(stack, cluster, 'sign', `Signs certificates of cluster ${cluster.name}`);
  const caRole = createRole(stack, cluster, 'ca', `Makes the CA certificates of cluster ${cluster.name}`);
  const keys = new Map(
    [...cluster.cas.values()].map((ca) => [ca.name, createKey(stack, cluster, ca, { deployment, signRole, caRole })]),
  );
  const attestations = createAttestationsTable(stack);
  const state = { stack, table: createTable(stack), attestations, keys, signRole, caRole };
  if (cluster.attestation === undefined) return state;
  const attestRole = createRole(stack, cluster, 'attest', `Proves the machines of cluster ${cluster.name}`);
  void new CfnOutput(stack, 'AttestRoleArn', {
    value: attestRole.roleArn,
    description: 'What the roles under accounts.<account>.assumeRole have to trust',
  });
  return { ...state, attestation: { table: attestations, attestRole } };
}

/**
 * A principal with `iam:PassRole` can give the role to a function of its own. Lambda names the calling function in each request, so
 * the role's own policy refuses the calls of all others; a key policy cannot ask for that name.
 * https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
 *
 * The policy is here and not in the service stack, so that it holds while there is no function.
 */
function createRole(
  stack: Stack,
  { name }: ClusterConfiguration,
  service: 'sign' | 'ca' | 'attest',
  description: string,
): Role {
  const id = `${service.charAt(0).toUpperCase()}${service.slice(1)}`;
  const role = new Role(stack, `${id}Role`, { assumedBy: new ServicePrincipal('lambda.amazonaws.com'), description });
  // By name, since the function is made later, with this role.
  const ownFunction = stack.formatArn({
    service: 'lambda',
    resource: 'function',
    resourceName: functionName(name, service),
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
  });
  void new Policy(stack, `${id}OnlyInItsFunction`, {
    roles: [role],
    statements: [
      new PolicyStatement({
        sid: 'OnlyInItsFunction',
        effect: Effect.DENY,
        // All that these roles may do, except to read public keys and to write logs.
        actions: ['kms:Sign', 'dynamodb:*', 'lambda:InvokeFunction', 'ec2:DescribeInstances', 'sts:AssumeRole'],
        resources: ['*'],
        conditions: { ArnNotEquals: { 'lambda:SourceFunctionArn': ownFunction } },
      }),
    ],
  });
  return role;
}

/** KMS's names. Each curve has one digest, as in countersign.yaml. */
const keySpecs: Readonly<Record<CaConfiguration['keySpec'], KeySpec>> = {
  'P-256': KeySpec.ECC_NIST_P256,
  'P-384': KeySpec.ECC_NIST_P384,
  'P-521': KeySpec.ECC_NIST_P521,
  'RSA-2048': KeySpec.RSA_2048,
  'RSA-3072': KeySpec.RSA_3072,
  'RSA-4096': KeySpec.RSA_4096,
};

function createKey(
  stack: Stack,
  { name: cluster }: ClusterConfiguration,
  ca: CaConfiguration,
  { deployment, signRole, caRole }: { deployment: DeploymentConfiguration; signRole: Role; caRole: Role },
): string {
  const id = `CaKey-${ca.name}`;
  const description = `CA ${ca.name} of cluster ${cluster}`;
  const policy = caKeyPolicy(ca, deployment, { signRole, caRole });
  // Removing a CA from the configuration keeps its key, since clients may still trust its certificates.
  const removalPolicy = RemovalPolicy.RETAIN;
  const place = deployment.caKeys.get(ca.name);
  if (typeof place === 'object') {
    const replica = new CfnReplicaKey(stack, id, { description, primaryKeyArn: place.replicaOf, keyPolicy: policy });
    replica.applyRemovalPolicy(removalPolicy);
    return replica.attrArn;
  }
  const multiRegion = place === 'multiRegion' ? { multiRegion: true } : {};
  const keySpec = keySpecs[ca.keySpec];
  return new Key(stack, id, {
    description,
    keySpec,
    keyUsage: KeyUsage.SIGN_VERIFY,
    policy,
    removalPolicy,
    ...multiRegion,
  }).keyArn;
}

const stringAttribute = (name: string) => ({ name, type: AttributeType.STRING });

const retained = {
  billingMode: BillingMode.PAY_PER_REQUEST,
  pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
  deletionProtection: true,
  removalPolicy: RemovalPolicy.RETAIN,
} as const;

/** Encrypted with DynamoDB's own key, since it holds only contents of certificates, which are public. */
function createTable(stack: Stack): Table {
  const { partitionKey, indexes } = certificatesTable;
  const table = new Table(stack, 'Certificates', { ...retained, partitionKey: stringAttribute(partitionKey) });
  table.addGlobalSecondaryIndex({
    indexName: indexes.serial.name,
    partitionKey: stringAttribute(indexes.serial.partitionKey),
  });
  table.addGlobalSecondaryIndex({
    indexName: indexes.expiry.name,
    partitionKey: stringAttribute(indexes.expiry.partitionKey),
    sortKey: { name: indexes.expiry.sortKey, type: AttributeType.NUMBER },
  });
  return table;
}

/** Encrypted with DynamoDB's own key: instance IDs, node names, hashes. If the table is lost, machines can claim any name. */
function createAttestationsTable(stack: Stack): Table {
  const { partitionKey, timeToLive } = attestationsTable;
  return new Table(stack, 'Attestations', {
    ...retained,
    partitionKey: stringAttribute(partitionKey),
    timeToLiveAttribute: timeToLive,
  });
}
