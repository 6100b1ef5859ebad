/** Signing for one cluster, in an app of your own: keys and tables in one stack, the service in another. */
import { App, CfnOutput, Stack } from 'aws-cdk-lib';
import { Alarm, Dashboard, GraphWidget } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { AccountPrincipal, Role } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { SigningCluster, SigningState } from 'countersign/lib';

const app = new App();
const env = { account: '999900001111', region: 'eu-central-1' };

// Deleting this stack deletes the roles of the CAs, and so ends signing. Keys and tables are retained.
const stateStack = new Stack(app, 'countersign-prod-state', { env, terminationProtection: true });
const state = new SigningState(stateStack, 'State', {
  cluster: {
    name: 'prod',
    cas: {
      client: { subject: { commonName: 'prod client CA', organization: 'Example Corp' } },
      serving: { subject: { commonName: 'prod kubelet serving CA', organization: 'Example Corp' } },
    },
    profiles: {
      'kubernetes.io/kube-apiserver-client-kubelet': { ca: 'client' },
      'kubernetes.io/kubelet-serving': { ca: 'serving' },
    },
    reservedAddresses: ['10.96.0.0/12'],
    access: { iam: { principals: ['arn:aws:iam::999900001111:role/prod-watch-relay'] } },
  },
});

// This stack can be deleted and deployed again. The command line looks for a stack of this name.
const stack = new Stack(app, 'countersign-prod', { env });
const signer = new SigningCluster(stack, 'Signer', { state });

new CfnOutput(stack, 'SignUrl', { value: signer.signUrl ?? '' });
new CfnOutput(stack, 'CallerRoleArn', { value: signer.callerRole?.roleArn ?? '' });
// `countersign lock`, `tofu` and `machines` read the name of the table here.
new CfnOutput(stack, 'AttestationsTable', { value: state.attestations.tableName });

const operators = new Role(stack, 'Operators', { assumedBy: new AccountPrincipal(env.account) });
signer.grantOperate(operators);
signer.grantCa(operators);

// Alarms of your own, beside those that the cluster has.
const topic = new Topic(stack, 'Topic', { enforceSSL: true });
const refused = new Alarm(stack, 'ManyRefusals', {
  metric: signer.metricRefused(),
  threshold: 100,
  evaluationPeriods: 3,
});
refused.addAlarmAction(new SnsAction(topic));
new Dashboard(stack, 'Dashboard', {
  widgets: [[new GraphWidget({ title: 'Certificates', left: [signer.metricIssued(), signer.metricRefused()] })]],
});
