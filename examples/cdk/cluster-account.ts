/** The account of the cluster: the role of the relay, which assumes the caller role in the account of ca-account.ts. */
import { App, CfnOutput, Stack } from 'aws-cdk-lib';
import { OpenIdConnectProvider, OpenIdConnectPrincipal, Role } from 'aws-cdk-lib/aws-iam';
import { SigningCluster } from 'countersign/lib';

const app = new App();
const stack = new Stack(app, 'prod-watch-relay', { env: { account: '444455556666', region: 'eu-central-1' } });

// The cluster publishes the keys of its service account tokens under this URL.
const issuer = 'oidc.prod.example.com';
const provider = OpenIdConnectProvider.fromOpenIdConnectProviderArn(
  stack,
  'Issuer',
  `arn:aws:iam::444455556666:oidc-provider/${issuer}`,
);
const relay = new Role(stack, 'Relay', {
  // The name is fixed: `access.iam.principals` of the other account has it.
  roleName: 'prod-watch-relay',
  assumedBy: new OpenIdConnectPrincipal(provider, {
    StringEquals: {
      [`${issuer}:aud`]: 'sts.amazonaws.com',
      [`${issuer}:sub`]: 'system:serviceaccount:countersign-system:countersign-watch-relay',
    },
  }),
});
const callerRole = SigningCluster.callerRoleOf(stack, 'CallerRole', '999900001111', 'prod');
callerRole.grantAssumeRole(relay);

// What the chart gets as auth.aws.roleArn and auth.aws.callerRoleArn.
new CfnOutput(stack, 'RelayRoleArn', { value: relay.roleArn });
new CfnOutput(stack, 'CallerRoleArn', { value: callerRole.roleArn });
