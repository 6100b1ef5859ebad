/** All stacks of one countersign.yaml: two per cluster, which share nothing with other clusters. */
import { App, Validations } from 'aws-cdk-lib';
import recommendedFlags from 'aws-cdk-lib/recommended-feature-flags.json' with { type: 'json' };
import { AwsSolutionsChecks } from 'cdk-nag';
import type { Configuration } from '../core/configuration/model/cluster.ts';
import type { Sources } from './functions.ts';
import { createServiceStack } from './service-stack.ts';
import { createStateStack } from './state-stack.ts';

export interface ApplicationOptions {
  readonly configuration: Configuration;
  readonly sources: Sources;
  /** Folder of the cloud assembly; default: the one of the CDK command line, or a temporary one. */
  readonly outdir?: string;
}

export const entries: Sources['entries'] = {
  sign: 'lambdas/sign/index.ts',
  attest: 'lambdas/attest/index.ts',
  ca: 'lambdas/ca/index.ts',
  authorizer: 'lambdas/authorizer/index.ts',
};

/** CDK feature flags. They are not in cdk.json, so that the templates do not depend on the program that runs this. */
const featureFlags = {
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
    const deployment = configuration.deployments.get(cluster.name);
    if (deployment === undefined) throw new Error(`nothing says how cluster ${cluster.name} is deployed`);
    const { account, region } = deployment;
    const env = {
      ...(account === undefined ? {} : { account }),
      ...(region === undefined ? {} : { region }),
    };
    const props = { env, tags: { 'countersign:cluster': cluster.name } };
    const state = createStateStack(app, cluster, deployment, props);
    createServiceStack(app, { cluster, deployment, state, sources }, props).addStackDependency(state.stack);
  }
  return app;
}
