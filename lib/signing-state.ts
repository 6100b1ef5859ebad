/**
 * What a cluster must not lose: its CA keys, its certificates table, its attestation records, and the roles that other
 * policies name: AWS replaces such a name by the role's ID, so a role that is created again with that name has no rights. The
 * challenge key is here because its policy names such a role.
 */
import { Annotations, ArnFormat, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { AttributeType, BillingMode, Table } from 'aws-cdk-lib/aws-dynamodb';
import { Effect, Policy, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { CfnReplicaKey, Key, KeySpec, KeyUsage } from 'aws-cdk-lib/aws-kms';
import type { CfnKey } from 'aws-cdk-lib/aws-kms';
import { Construct } from 'constructs';
import { attestationsTable, certificatesTable } from '../adapters/dynamodb/table.ts';
import { needsChallengeKey } from '../core/attestation/providers.ts';
import type { CaConfiguration, ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import type { DeploymentConfiguration } from '../core/configuration/model/deployment.ts';
import { functionName } from '../core/configuration/resolve/deployment.ts';
import type { Service } from './functions.ts';
import { caKeyPolicy, challengeKeyPolicy } from './key-policy.ts';
import type { KeyUsers } from './key-policy.ts';
import { checkedCluster } from './props/checked-cluster.ts';
import type { ParsedCluster } from './props/checked-cluster.ts';
import type { ClusterProps } from './props/cluster-props.ts';

/** Properties of a `SigningState`. */
export interface SigningStateProps {
  /**
   * The cluster: what is signed, who may call, and how it runs. As properties, or as one cluster of a `countersign.yaml`
   * (`clusterOfFile`). Both pass the same checks.
   */
  readonly cluster: ClusterProps | ParsedCluster;
}

/**
 * What a cluster must not lose: CA keys, tables, and the roles that the key policies trust. Keys and tables are retained
 * when their stack is deleted.
 *
 * Give it a stack of its own with `terminationProtection: true`. The `SigningCluster` in another stack can then be deleted and
 * deployed again at any time.
 */
export class SigningState extends Construct {
  /** Name of the cluster. */
  readonly clusterName: string;

  /** ARNs of the CA keys, by CA. Only their key policies grant their use, and no method of this library adds to them. */
  readonly caKeys: ReadonlyMap<string, string>;

  /** The ledger: one record for each request, and the CA certificates. */
  readonly certificates: Table;

  /** Locks, and with attestation all records of machines. */
  readonly attestations: Table;

  /**
   * ARN of the key of attestation challenges, which only the attest function may use. Undefined unless a provider of the
   * cluster challenges machines (`tpm`, `aws-nitrotpm`).
   */
  readonly challengeKey?: string;

  /** The role of the attest function, which roles of other accounts trust. Undefined without attestation. */
  readonly attestRole?: Role;

  /** @internal The role that signs certificates. SigningCluster grants its other rights. */
  readonly signRole: Role;

  /** @internal The role that makes CA certificates, likewise. */
  readonly caRole: Role;

  /** @internal The role that signs for kubeadm's control plane, likewise. Undefined without `kubeadm`. */
  readonly kubeadmRole?: Role;

  /** @internal */
  readonly parsed: ParsedCluster;

  constructor(scope: Construct, id: string, props: SigningStateProps) {
    super(scope, id);
    this.parsed = checkedCluster(this, props.cluster);
    const stack = Stack.of(this);
    if (!stack.terminationProtection)
      Annotations.of(this).addWarningV2(
        'countersign:terminationProtection',
        `stack ${stack.stackName} has no terminationProtection: deleting it takes the roles with it that the key policies trust`,
      );
    const { cluster, deployment } = this.parsed;
    const { name } = cluster;
    this.clusterName = name;
    const signRole = createRole(this, cluster, 'sign', `Signs certificates of cluster ${name}`);
    const caRole = createRole(this, cluster, 'ca', `Makes the CA certificates of cluster ${name}`);
    const kubeadmRole =
      cluster.kubeadm === undefined
        ? undefined
        : createRole(this, cluster, 'kubeadm', `Signs certificates of the control plane of cluster ${name}`);
    const roles = { signRole, caRole, kubeadmRole };
    this.caKeys = new Map(
      [...cluster.cas.values()].map((ca) => [ca.name, createKey(this, cluster, ca, { deployment, roles })]),
    );
    this.attestations = createAttestationsTable(this);
    this.certificates = createTable(this);
    this.signRole = signRole;
    this.caRole = caRole;
    if (kubeadmRole !== undefined) this.kubeadmRole = kubeadmRole;
    if (cluster.attestation === undefined) return;
    // No policy of a CA key names it. Roles of other accounts trust it, so that attest can describe their instances.
    this.attestRole = createRole(this, cluster, 'attest', `Proves the machines of cluster ${name}`);
    if (needsChallengeKey(cluster.attestation))
      this.challengeKey = createChallengeKey(this, cluster, deployment, this.attestRole);
  }
}

/**
 * A principal with `iam:PassRole` can give the role to a function of its own. Lambda names the calling function in each request, so
 * the role's own policy refuses the calls of all others; a key policy cannot ask for that name.
 * https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
 *
 * The policy is here and not in the service stack, so that it holds while there is no function.
 */
function createRole(
  scope: Construct,
  { name }: ClusterConfiguration,
  service: Exclude<Service, 'authorizer'>,
  description: string,
): Role {
  const id = `${service.charAt(0).toUpperCase()}${service.slice(1)}`;
  const role = new Role(scope, `${id}Role`, { assumedBy: new ServicePrincipal('lambda.amazonaws.com'), description });
  // By name, since the function is made later, with this role.
  const ownFunction = Stack.of(scope).formatArn({
    service: 'lambda',
    resource: 'function',
    resourceName: functionName(name, service),
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
  });
  void new Policy(scope, `${id}OnlyInItsFunction`, {
    roles: [role],
    statements: [
      new PolicyStatement({
        sid: 'OnlyInItsFunction',
        effect: Effect.DENY,
        // All that these roles may do, except to read public keys and to write logs.
        actions: [
          'kms:Sign',
          'kms:GenerateMac',
          'dynamodb:*',
          'lambda:InvokeFunction',
          'ec2:DescribeInstances',
          'ec2:GetInstanceTpmEkPub',
          'sts:AssumeRole',
        ],
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
  scope: Construct,
  { name: cluster, profiles, kubeadm }: ClusterConfiguration,
  ca: CaConfiguration,
  {
    deployment,
    roles,
  }: { readonly deployment: DeploymentConfiguration; readonly roles: Omit<KeyUsers, 'signsLeaves'> },
): string {
  const id = `CaKey-${ca.name}`;
  const description = `CA ${ca.name} of cluster ${cluster}`;
  const signsLeaves = [...profiles.values()].some((profile) => profile.ca === ca.name);
  const signsControlPlane = Object.values(kubeadm?.cas ?? {}).includes(ca.name);
  const users = { ...roles, signsLeaves, kubeadmRole: signsControlPlane ? roles.kubeadmRole : undefined };
  const policy = caKeyPolicy(ca, deployment, users);
  // Removing a CA from the configuration keeps its key, since clients may still trust its certificates.
  const removalPolicy = RemovalPolicy.RETAIN;
  const place = deployment.caKeys.get(ca.name);
  if (typeof place === 'object') {
    const replica = new CfnReplicaKey(scope, id, { description, primaryKeyArn: place.replicaOf, keyPolicy: policy });
    replica.applyRemovalPolicy(removalPolicy);
    return replica.attrArn;
  }
  const multiRegion = place === 'multiRegion' ? { multiRegion: true } : {};
  const keySpec = keySpecs[ca.keySpec];
  const key = new Key(scope, id, {
    description,
    keySpec,
    keyUsage: KeyUsage.SIGN_VERIFY,
    policy,
    removalPolicy,
    ...multiRegion,
  });
  // KMS makes no material for such a key; it awaits that of `countersign ca import-key`.
  if (ca.kind === 'imported' && ca.keyMaterial === 'imported') (key.node.defaultChild as CfnKey).origin = 'EXTERNAL';
  return key.keyArn;
}

/**
 * Deleted with its stack, after KMS's shortest wait: its loss ends challenges of two minutes, and a retained key costs a dollar a month.
 * KMS does not rotate HMAC keys by itself, and no MAC of this one is worth anything for longer than that. Of one Region: a
 * machine that meets attest of another Region asks for another challenge.
 */
function createChallengeKey(
  scope: Construct,
  { name }: ClusterConfiguration,
  deployment: DeploymentConfiguration,
  attestRole: Role,
): string {
  return new Key(scope, 'ChallengeKey', {
    description: `Attestation challenges of cluster ${name}`,
    keySpec: KeySpec.HMAC_256,
    keyUsage: KeyUsage.GENERATE_VERIFY_MAC,
    policy: challengeKeyPolicy(deployment, attestRole),
    removalPolicy: RemovalPolicy.DESTROY,
    pendingWindow: Duration.days(7),
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
function createTable(scope: Construct): Table {
  const { partitionKey, indexes } = certificatesTable;
  const table = new Table(scope, 'Certificates', { ...retained, partitionKey: stringAttribute(partitionKey) });
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
function createAttestationsTable(scope: Construct): Table {
  const { partitionKey, timeToLive } = attestationsTable;
  return new Table(scope, 'Attestations', {
    ...retained,
    partitionKey: stringAttribute(partitionKey),
    timeToLiveAttribute: timeToLive,
  });
}
