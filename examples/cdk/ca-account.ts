/**
 * Two accounts: this app is for the account that holds nothing but the CA, cluster-account.ts for the account of the cluster.
 * The cluster is described by a countersign.yaml, which reviewers read.
 */
import { join } from 'node:path';
import { App, CfnOutput, Stack } from 'aws-cdk-lib';
import { clusterOfFile, SigningCluster, SigningState } from 'countersign/lib';

const app = new App();
// `prod` of the file is in this account, and `access.iam` has the role of the relay in the other one.
const cluster = clusterOfFile(join(import.meta.dirname, 'countersign.yaml'), 'prod');
const env = { account: '999900001111', region: 'eu-central-1' };

const stateStack = new Stack(app, 'countersign-prod-state', { env, terminationProtection: true });
const state = new SigningState(stateStack, 'State', { cluster });

const stack = new Stack(app, 'countersign-prod', { env });
const signer = new SigningCluster(stack, 'Signer', { state });
new CfnOutput(stack, 'SignUrl', { value: signer.signUrl ?? '' });
new CfnOutput(stack, 'AttestationsTable', { value: state.attestations.tableName });
