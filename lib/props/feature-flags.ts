/**
 * CDK feature flags. The constructs set them for themselves, so that what they make, key policies first, does not depend on
 * the flags of the app that they are in.
 */
import recommendedFlags from 'aws-cdk-lib/recommended-feature-flags.json' with { type: 'json' };
import type { Construct } from 'constructs';

export const featureFlags: Readonly<Record<string, unknown>> = {
  ...recommendedFlags,
  // CloudFormation refuses to remove an imported export, so the state stack cannot lose what the service stack uses.
  '@aws-cdk/core:defaultCrossStackReferences': 'strong',
  // Statements are not merged, so that the deployed policies are the reviewed ones.
  '@aws-cdk/aws-iam:minimizePolicies': false,
};

/** For the construct and everything in it, which must be empty. */
export function setFeatureFlags({ node }: Construct): void {
  for (const [flag, value] of Object.entries(featureFlags)) node.setContext(flag, value);
}
