/** All stacks of one countersign.yaml: two for each cluster, made by the same code and sharing nothing. */
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
  /** Of the cloud assembly; default: what the CDK command line says, or a temporary one. */
  readonly outdir?: string;
}

export const entries: Sources['entries'] = {
  sign: 'lambdas/sign/index.ts',
  attest: 'lambdas/attest/index.ts',
  ca: 'lambdas/ca/index.ts',
  authorizer: 'lambdas/authorizer/index.ts',
};

/** CDK's newer behaviours. Here and not in cdk.json, so that templates do not depend on what runs this. */
const featureFlags = {
  ...recommendedFlags,
  // An export that is imported cannot be taken away: the state stack cannot lose what the service stack lives on.
  '@aws-cdk/core:defaultCrossStackReferences': 'strong',
  // Statements stay as they are written, so that what was reviewed is what is deployed.
  '@aws-cdk/aws-iam:minimizePolicies': false,
};

export function createApplication({ configuration, sources, outdir }: ApplicationOptions): App {
  const app = new App({
    context: featureFlags,
    // Templates are what was reviewed, and nothing is sent anywhere.
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
