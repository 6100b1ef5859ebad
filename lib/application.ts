/** All stacks of one countersign.yaml: two per cluster, which share nothing with other clusters. */
import { App, CfnOutput, Stack, Validations } from 'aws-cdk-lib';
import recommendedFlags from 'aws-cdk-lib/recommended-feature-flags.json' with { type: 'json' };
import { AwsSolutionsChecks } from 'cdk-nag';
import type { Configuration } from '../core/configuration/model/cluster.ts';
import { stackNames } from '../core/configuration/resolve/deployment.ts';
import type { Sources } from './functions.ts';
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
    addOutputs(stack, signer);
    stack.addStackDependency(stateStack);
  }
  return app;
}

function addStateOutputs(stack: Stack, { attestRole }: SigningState): void {
  output(
    stack,
    'AttestRoleArn',
    attestRole?.roleArn,
    'What the roles under accounts.<account>.assumeRole have to trust',
  );
}

/** What operators and relays need, and where the command line finds the tables. */
function addOutputs(stack: Stack, signer: SigningCluster): void {
  const { callerRole, signUrl, attestUrl, jwtSignUrl, state, functions, logGroups, operatorPolicy } = signer;
  const nameOf = (service: 'sign' | 'ca' | 'attest' | 'authorizer') => functions.get(service)?.functionName;
  output(stack, 'CallerRoleArn', callerRole?.roleArn, "The relay's COUNTERSIGN_CALLER_ROLE");
  output(stack, 'SignUrl', signUrl, "The relay's COUNTERSIGN_URL");
  output(stack, 'AttestUrl', attestUrl, "The relay's COUNTERSIGN_ATTEST_URL");
  output(
    stack,
    'JwtSignUrl',
    jwtSignUrl,
    'COUNTERSIGN_URL of a relay with --token-file; with /sign at its end, of gcp-controller-manager',
  );
  output(stack, 'CertificatesTable', state.certificates.tableName, 'The ledger, and the CA certificates');
  output(stack, 'SignFunction', nameOf('sign'), 'Signs');
  output(
    stack,
    'SignLogGroup',
    logGroups.get('sign')?.logGroupName,
    'The log of the sign function; countersign trace reads it',
  );
  output(stack, 'CaFunction', nameOf('ca'), 'Makes CA certificates; countersign ca init calls it');
  output(stack, 'AttestationsTable', state.attestations.tableName, 'Locks, and which machine a node name belongs to');
  const { managedPolicyArn } = operatorPolicy;
  output(
    stack,
    'OperatorPolicyArn',
    managedPolicyArn,
    'For operators who run countersign lock, tofu, machines and trace',
  );
  output(stack, 'AttestFunction', nameOf('attest'), 'Proves machines');
  output(
    stack,
    'AttestLogGroup',
    logGroups.get('attest')?.logGroupName,
    'The log of the attest function; countersign trace reads it',
  );
  output(stack, 'AuthorizerFunction', nameOf('authorizer'), 'Checks tokens');
}

function output(stack: Stack, id: string, value: string | undefined, description: string): void {
  if (value !== undefined) new CfnOutput(stack, id, { value, description });
}
