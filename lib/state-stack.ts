/**
 * What a cluster must not lose: its CA keys, its certificates table, and what it remembers of its machines. And the roles
 * that others trust, since a policy that names a role holds on to that very role: one made later under the same name
 * would get nothing.
 */
import { CfnOutput, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type { App, StackProps } from 'aws-cdk-lib';
import { AttributeType, BillingMode, Table } from 'aws-cdk-lib/aws-dynamodb';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Key, KeySpec, KeyUsage } from 'aws-cdk-lib/aws-kms';
import { attestationsTable, certificatesTable } from '../adapters/dynamodb/table.ts';
import type { CaConfiguration, ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../core/configuration/model/deployment.ts';
import { caKeyPolicy } from './key-policy.ts';

export interface ClusterState {
  readonly stack: Stack;
  readonly table: Table;
  /** By CA name. */
  readonly keys: ReadonlyMap<string, Key>;
  /** They may use the keys; what else they may is said in the service stack. */
  readonly signRole: Role;
  readonly caRole: Role;
  /** Locks; and where machines prove themselves, all that is known of them. */
  readonly attestations: Table;
  /** Only where machines prove themselves. */
  readonly attestation?: AttestationState;
}

export interface AttestationState {
  readonly table: Table;
  /** No key trusts it; roles of other accounts do, to have their instances looked at. */
  readonly attestRole: Role;
}

export function createStateStack(
  app: App,
  cluster: ClusterConfiguration,
  deployment: DeploymentConfiguration,
  props: StackProps,
): ClusterState {
  const stack = new Stack(app, `${cluster.name}-state`, {
    ...props,
    description: `Countersign, cluster ${cluster.name}: CA keys and tables`,
    terminationProtection: true,
  });
  const role = (id: string, description: string): Role =>
    new Role(stack, id, { assumedBy: new ServicePrincipal('lambda.amazonaws.com'), description });
  const signRole = role('SignRole', `Signs certificates of cluster ${cluster.name}`);
  const caRole = role('CaRole', `Makes the CA certificates of cluster ${cluster.name}`);
  const keys = new Map(
    [...cluster.cas.values()].map((ca) => [ca.name, createKey(stack, cluster, ca, { deployment, signRole, caRole })]),
  );
  const attestations = createAttestationsTable(stack);
  const state = { stack, table: createTable(stack), attestations, keys, signRole, caRole };
  if (cluster.attestation === undefined) return state;
  const attestRole = role('AttestRole', `Proves the machines of cluster ${cluster.name}`);
  void new CfnOutput(stack, 'AttestRoleArn', {
    value: attestRole.roleArn,
    description: 'What the roles under accounts.<account>.assumeRole have to trust',
  });
  return { ...state, attestation: { table: attestations, attestRole } };
}

/** In the words of KMS. A curve goes with one digest there, as in our configuration. */
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
): Key {
  return new Key(stack, `CaKey-${ca.name}`, {
    description: `CA ${ca.name} of cluster ${cluster}`,
    keySpec: keySpecs[ca.keySpec],
    keyUsage: KeyUsage.SIGN_VERIFY,
    policy: caKeyPolicy(ca, deployment.keys, { signRole, caRole }),
    // A CA taken out of the configuration leaves its key: certificates it signed are still trusted somewhere.
    removalPolicy: RemovalPolicy.RETAIN,
  });
}

const string = (name: string) => ({ name, type: AttributeType.STRING });

const kept = {
  billingMode: BillingMode.PAY_PER_REQUEST,
  pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
  deletionProtection: true,
  removalPolicy: RemovalPolicy.RETAIN,
} as const;

/** Encrypted with DynamoDB's own key: what is in it is in certificates, and those are public. */
function createTable(stack: Stack): Table {
  const { partitionKey, indexes } = certificatesTable;
  const table = new Table(stack, 'Certificates', { ...kept, partitionKey: string(partitionKey) });
  table.addGlobalSecondaryIndex({
    indexName: indexes.serial.name,
    partitionKey: string(indexes.serial.partitionKey),
  });
  table.addGlobalSecondaryIndex({
    indexName: indexes.expiry.name,
    partitionKey: string(indexes.expiry.partitionKey),
    sortKey: { name: indexes.expiry.sortKey, type: AttributeType.NUMBER },
  });
  return table;
}

/** Likewise: instance ids, node names and hashes. Losing it would make every machine new, and every name anybody's. */
function createAttestationsTable(stack: Stack): Table {
  const { partitionKey, timeToLive } = attestationsTable;
  return new Table(stack, 'Attestations', {
    ...kept,
    partitionKey: string(partitionKey),
    timeToLiveAttribute: timeToLive,
  });
}
