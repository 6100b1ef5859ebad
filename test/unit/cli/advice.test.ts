/** Hints of commands that cannot begin. */
import { expect, test } from 'vitest';
import { awsFailure } from '../../../cli/aws/aws-failure.ts';
import { run } from './run.ts';

test.each([
  ['token', 'list'],
  ['token', 'reconcile'],
  ['cluster', 'harden'],
  ['token', 'delete', 'abcdef'],
])('%s %s without a kubeconfig', async (...argv) => {
  const environment = { KUBECONFIG: '/nonexistent/kubeconfig' };
  expect(await run(argv, { environment })).toEqual({
    code: 3,
    out: '',
    err: 'countersign: there is no kubeconfig /nonexistent/kubeconfig\ncountersign: name one: --kubeconfig FILE, or KUBECONFIG\n',
  });
  const named = await run([...argv, '--kubeconfig', '/nonexistent/other']);
  expect(named).toMatchObject({ code: 3, err: 'countersign: there is no kubeconfig /nonexistent/other\n' });
});

test('in a pod --context never selects the pod’s own cluster', async () => {
  const environment = { KUBECONFIG: '/nonexistent/kubeconfig', KUBERNETES_SERVICE_HOST: '127.0.0.1' };
  expect(await run(['cluster', 'harden', '--yes', '--context', 'prod'], { environment })).toMatchObject({
    code: 3,
    out: '',
    err: expect.stringContaining('there is no kubeconfig /nonexistent/kubeconfig') as unknown,
  });
});

const yaml = `version: 1
clusters:
  demo: {cas: {ca: {subject: {commonName: CA}}}, profiles: {kubernetes.io/kubelet-serving: {}}}
`;

test.each([
  [{}, 'The default rules name none'],
  [{ 'countersign.yaml': yaml }, 'countersign.yaml names none'],
])('token create without a deployment that checks evidence', async (files, message) => {
  const ran = await run(['token', 'create'], { files });
  expect([ran.code, ran.out]).toEqual([2, '']);
  expect(ran.err).toContain(
    `which deployment checks the evidence of machines? ${message}\ncountersign: --audience names it`,
  );
});

test('a missing AWS login and a missing region have different hints', () => {
  const region = awsFailure('DynamoDB', new Error('Region is missing'));
  expect(region).toMatchObject({ code: 3, hint: 'name it: --region, or AWS_REGION' });
  const login = Object.assign(new Error('Could not load credentials'), { name: 'CredentialsProviderError' });
  const hint = 'log in to AWS as for the aws command line';
  expect(awsFailure('DynamoDB', login)).toMatchObject({ code: 3, hint });
  expect(awsFailure('DynamoDB', new Error('it took too long'))).toMatchObject({ code: 5, hint: undefined });
});
