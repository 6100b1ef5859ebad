/** All stacks of one countersign.yaml: two per cluster, which share nothing with other clusters. */
import { App, CfnOutput, Stack, Validations } from 'aws-cdk-lib';
import recommendedFlags from 'aws-cdk-lib/recommended-feature-flags.json' with { type: 'json' };
import { AwsSolutionsChecks } from 'cdk-nag';
import type { Configuration } from '../core/configuration/model/cluster.ts';
import { stackNames } from '../core/configuration/resolve/deployment.ts';
import type { Service, Sources } from './functions.ts';
import { SigningCluster } from './signing-cluster.ts';
import { SigningState } from './signing-state.ts';

export interface ApplicationOptions {
  readonly configuration: Configuration;
  /** Default: the functions of this checkout. */
  readonly sources?: Sources;
  /** Folder of the cloud assembly; default: the one of the CDK command line, or a temporary one. */
  readonly outdir?: string;
}

/** A construct of this ID adds nothing to logical IDs: https://docs.aws.amazon.com/cdk/v2/guide/identifiers.html */
const inStack = 'Default';

/** CDK feature flags. They are not in cdk.json, so that the templates do not depend on the program that runs this. */
export const featureFlags: Readonly<Record<string, unknown>> = {
  ...recommendedFlags,
  // CloudFormation refuses to remove an imported export, so the state stack cannot lose what the service stack uses.
  '@aws-cdk/core:defaultCrossStackReferences': 'strong',
  // Statements are not merged, so that the deployed policies are the reviewed ones.
  '@aws-cdk/aws-iam:minimizePolicies': false,
};

export function createApplication({ configuration, sources, outdir }: ApplicationOptions): App {
  const app = new App({
    context: featureFlags,
    // No metadata resource: the templates are the reviewed ones, and nothing is reported to CDK.
    analyticsReporting: false,
    ...(outdir === undefined ? {} : { outdir }),
  });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  for (const cluster of configuration.clusters.values()) {
    const { name } = cluster;
    const deployment = configuration.deployments.get(name);
    if (deployment === undefined) throw new Error(`nothing says how cluster ${name} is deployed`);
    const { account, region } = deployment;
    const env = {
      ...(account === undefined ? {} : { account }),
      ...(region === undefined ? {} : { region }),
    };
    const props = { env, tags: { 'countersign:cluster': name } };
    const names = stackNames(name);
    const stateStack = new Stack(app, names.state, {
      ...props,
      description: `Countersign, cluster ${name}: CA keys and tables`,
      terminationProtection: true,
    });
    const state = new SigningState(stateStack, inStack, { cluster: { cluster, deployment } });
    addStateOutputs(stateStack, state);
    const stack = new Stack(app, names.service, {
      ...props,
      description: `Countersign, cluster ${name}: signs certificates`,
    });
    const signer = new SigningCluster(stack, inStack, { state, ...(sources === undefined ? {} : { sources }) });
    addServiceOutputs(stack, signer);
    stack.addStackDependency(stateStack);
  }
  return app;
}

function addStateOutputs(stack: Stack, { attestRole }: SigningState): void {
  addOutputs(stack, {
    AttestRoleArn: [attestRole?.roleArn, 'What the roles under accounts.<account>.assumeRole have to trust'],
  });
}

/** What operators and relays need, and where the command line finds the tables. */
function addServiceOutputs(stack: Stack, signer: SigningCluster): void {
  const { callerRole, signUrl, attestUrl, jwtSignUrl, domains, state, functions, logGroups, operatorPolicy } = signer;
  const nameOf = (service: Service) => functions.get(service)?.functionName;
  const logOf = (service: Service) => logGroups.get(service)?.logGroupName;
  const targetOf = (way: 'iam' | 'jwt'): Outputs[string] => [
    domains.get(way)?.regionalDomainName,
    `DNS: the name of access.${way}.domain is an alias (CNAME) of this name`,
  ];
  addOutputs(stack, {
    CallerRoleArn: [callerRole?.roleArn, "The relay's COUNTERSIGN_CALLER_ROLE"],
    SignUrl: [signUrl, "The relay's COUNTERSIGN_URL"],
    AttestUrl: [attestUrl, "The relay's COUNTERSIGN_ATTEST_URL"],
    JwtSignUrl: [
      jwtSignUrl,
      'COUNTERSIGN_URL of a relay with --token-file; with /sign at its end, of gcp-controller-manager',
    ],
    IamApiDomainTarget: targetOf('iam'),
    JwtApiDomainTarget: targetOf('jwt'),
    CertificatesTable: [state.certificates.tableName, 'The ledger, and the CA certificates'],
    SignFunction: [nameOf('sign'), 'Signs'],
    SignLogGroup: [logOf('sign'), 'The log of the sign function; countersign trace reads it'],
    CaFunction: [nameOf('ca'), 'Makes CA certificates; countersign ca init calls it'],
    SignRoleArn: [
      state.signRole.roleArn,
      'The role of the sign function; countersign audit reconcile knows its signatures by it',
    ],
    CaRoleArn: [state.caRole.roleArn, 'The role of the ca function, whose signatures have records of their own'],
    KubeadmFunction: [nameOf('kubeadm'), 'Signs for the control plane; countersign kubeadm calls it'],
    KubeadmRoleArn: [
      state.kubeadmRole?.roleArn,
      'The role of the kubeadm function; countersign audit reconcile knows its signatures by it',
    ],
    CaKeyArns: [[...state.caKeys.values()].join(' '), 'The keys whose signatures countersign audit reconcile compares'],
    AttestationsTable: [state.attestations.tableName, 'Locks, and which machine a node name belongs to'],
    OperatorPolicyArn: [
      operatorPolicy.managedPolicyArn,
      'For operators who run countersign lock, tofu, machines, cert, trace and status',
    ],
    AttestFunction: [nameOf('attest'), 'Proves machines'],
    AttestLogGroup: [logOf('attest'), 'The log of the attest function; countersign trace reads it'],
    AuthorizerFunction: [nameOf('authorizer'), 'Checks tokens'],
  });
}

/** By output: its value, undefined if this cluster has none, and its description. */
type Outputs = Readonly<Record<string, readonly [value: string | undefined, description: string]>>;

function addOutputs(stack: Stack, outputs: Outputs): void {
  for (const [id, [value, description]] of Object.entries(outputs))
    if (value !== undefined) new CfnOutput(stack, id, { value, description });
}
