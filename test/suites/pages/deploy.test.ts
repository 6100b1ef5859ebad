/**
 * docs/deploy.md from its first command to the last of "Roll back": the real cdk, AWS command line, helm, kubectl and relay, with LocalStack for
 * AWS and a real API server for the cluster. What LocalStack lacks is named where it matters.
 */
import { X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Emulator } from '../../harness/aws/emulator.ts';
import { requireLocalStack, startLocalStack } from '../../harness/aws/localstack.ts';
import { startControlPlane, type ControlPlane } from '../../harness/kubernetes/control-plane.ts';
import { startFunctionUrls, type FunctionUrls } from '../../harness/lambda/function-urls.ts';
import { compileCache, temporaryFolder } from '../../harness/processes/processes.ts';
import { startRelay, type Relay } from '../../harness/stack/stack.ts';
import { requireTools } from '../../tools/tools.ts';
import { createOperator, readPageAloud, root } from './commands.ts';
import type { Operator, Reader } from './commands.ts';
import { deployConfiguration, imageOfThePage, noNode, relayKubeconfig, relayValues, rollout } from './deploy-page.ts';

const missing = [
  await requireTools('etcd', 'kube-apiserver', 'kubectl', 'helm', 'kubeadm', 'aws-cli'),
  await requireLocalStack(),
];
const notOurs = Boolean(process.env['AWS_ENDPOINT_URL']);

/** What this suite does not execute, and why. */
const cannot = {
  image: 'needs a registry: test/suites/release/images.test.ts makes, copies and runs the images',
  curl: 'LocalStack has no HTTP API; the Function URL here is a front of the tests whose name not every resolver knows. aws/ministack/own-domain.test.ts runs it on MiniStack',
};

/** LocalStack's own account. */
const account = { '999900001111': '000000000000' };

describe.skipIf(notOurs || missing.some(({ skip }) => skip))('docs/deploy.md', () => {
  const folder = temporaryFolder('deploy-page');
  const operatorFolder = join(folder.path, 'operator');
  const inFolder = (name: string): string => readFileSync(join(operatorFolder, name), 'utf8');
  let aws: Emulator;
  let plane: ControlPlane;
  let front: FunctionUrls | undefined;
  let relay: Relay | undefined;
  let operator: Operator;
  let page: Reader;

  const outputsOf = async (stack: string): Promise<Readonly<Record<string, string>>> => {
    const query = `aws cloudformation describe-stacks --stack-name ${stack} --query 'Stacks[0].Outputs' --output json`;
    const outputs = JSON.parse(await operator.execute(query)) as { OutputKey: string; OutputValue: string }[];
    return Object.fromEntries(outputs.map(({ OutputKey: key, OutputValue: value }) => [key, value]));
  };
  const stacks = async (): Promise<string[]> => {
    const query = `aws cloudformation describe-stacks --query 'Stacks[?StackStatus!=\`DELETE_COMPLETE\`].StackName' --output text`;
    return (await operator.execute(query)).trim().split(/\s+/).toSorted();
  };

  beforeAll(async () => {
    mkdirSync(operatorFolder);
    [aws, plane] = await Promise.all([startLocalStack(), startControlPlane()]);
    operator = await createOperator({
      folder: operatorFolder,
      environment: {
        ...aws.environment,
        // The first version of AWS's command line reads no AWS_REGION.
        AWS_DEFAULT_REGION: aws.client.region,
        ...compileCache(),
        COUNTERSIGN_CONFIG: join(operatorFolder, 'countersign.yaml'),
        AWS_EC2_METADATA_DISABLED: 'true',
        CDK_DISABLE_CLI_TELEMETRY: 'true',
        CI: 'true',
        // The same app, with functions that find an emulator. The deployed ones refuse to serve beside AWS_ENDPOINT_URL.
        CDK_APP: `${process.execPath} ${join(root, 'test/harness/aws/cdk-app.ts')}`,
        CDK_OUTPUT: join(folder.path, 'cdk.out'),
        KUBECONFIG: plane.adminKubeconfig,
      },
    });
    page = readPageAloud('docs/deploy.md', operator, cannot);
    const here = deployConfiguration()
      .replaceAll('999900001111', account['999900001111'])
      // HTTP APIs exist in LocalStack by name only.
      .replace('    access:\n', '    frontDoor: functionUrl\n    access:\n');
    writeFileSync(join(operatorFolder, 'countersign.yaml'), here);
  }, 180_000);
  afterAll(async () => {
    await relay?.stop();
    await front?.close();
    await plane?.stop();
    await aws?.stop();
    folder.remove();
  });

  test('1. the configuration is valid', async () => {
    expect(await page.run('validate')).toContain('kubernetes.io/kubelet-serving');
  });

  test('2. the role of the relay names a caller role that is not there yet; then the stacks', async () => {
    await page.run('relay-role', account, { AWS_ACCESS_KEY_ID: '444455556666' });
    await page.run('bootstrap', account);
    await page.run('deploy', { 'any-change': 'never' });
    expect(await stacks()).toEqual(['CDKToolkit', 'countersign-prod', 'countersign-prod-state']);
  }, 400_000);

  test('what to look at afterwards', async () => {
    const inRelayAccount = { AWS_ACCESS_KEY_ID: '444455556666' };
    const { CallerRoleArn: callerRole = '' } = await outputsOf('countersign-prod');
    const policy = await operator.execute(
      'aws iam get-role-policy --role-name prod-watch-relay --policy-name call-countersign --output json',
      inRelayAccount,
    );
    expect(JSON.parse(policy)).toMatchObject({
      PolicyDocument: { Statement: [{ Action: ['sts:AssumeRole', 'sts:TagSession'], Resource: callerRole }] },
    });
    // LocalStack evaluates no alarm, and lists those of every state.
    expect((await page.run('alarms')).trim()).toMatch(/^countersign-prod-/);
    await page.run('diff');
    front = await startFunctionUrls(aws, 'prod');
    const { accessKeyId, secretAccessKey, sessionToken = '' } = front.credentials;
    // The strict STS of the tests knows the session; --connect, since its name does not resolve.
    await page.run(
      'health',
      { '--role "$CALLER_ROLE_ARN"': `--sigv4 --region eu-central-1 --connect 127.0.0.1:${front.port}` },
      {
        SIGN_URL: `${front.sign}/v1/clusters/prod`,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
        AWS_SESSION_TOKEN: sessionToken,
      },
    );
  }, 200_000);

  test('3. the CAs, of which the API server trusts one for logins', async () => {
    expect(await page.run('ca')).toContain('prod client CA');
    expect(new X509Certificate(inFolder('countersign-ca.pem')).subject).toContain('CN=prod client CA');
    expect(new X509Certificate(inFolder('countersign-serving-ca.pem')).subject).toContain('CN=prod kubelet serving CA');
    await plane.restartApiServer({ clientCaPem: inFolder('countersign-ca.pem') });
  });

  test('5. the relay', async () => {
    const { CallerRoleArn: callerRole = '', SignUrl: url = '' } = await outputsOf('countersign-prod');
    await page.run('values', imageOfThePage);
    const values = inFolder('relay-values.yaml');
    const shown = parse(relayValues()) as { readonly auth: { readonly aws: object }; readonly endpoint: object };
    expect(parse(values)).toEqual({
      ...shown,
      endpoint: { ...shown.endpoint, url },
      auth: { ...shown.auth, aws: { ...shown.auth.aws, callerRoleArn: callerRole } },
    });
    // The chart takes no URL without TLS; the process gets the real one.
    writeFileSync(join(operatorFolder, 'relay-values.yaml'), values.replace('url: http://', 'url: https://'));
    expect(await page.run('relay', { [rollout]: noNode })).toContain('STATUS: deployed');
    relay = await startRelay({
      kubeconfig: await relayKubeconfig(plane),
      endpoint: front?.sign ?? '',
      cluster: 'prod',
      args: ['--concurrency', '4'],
      ...(front === undefined ? {} : { env: front.relayEnvironment }),
    });
  });

  test('verify: the issuer is the CA, and the API server knows the user', async () => {
    expect(await page.run('probe')).toMatch(/issuer=.*CN ?= ?prod client CA/);
    expect(await page.run('login')).toMatch(/Username +countersign-probe@example\.com/);
  });

  test('roll back: the functions go, keys and ledger stay', async () => {
    expect(await page.run('stop-relay')).toContain('scaled');
    await page.run('remove', { 'destroy countersign-prod': 'destroy countersign-prod --force' });
    expect(await stacks()).toEqual(['CDKToolkit', 'countersign-prod-state']);
  }, 200_000);

  test('the state is removed by hand: its tables and keys are still there when the stack is gone', async () => {
    const query = "'StackResources[].[ResourceType,PhysicalResourceId]'";
    const listed = await operator.execute(
      `aws cloudformation describe-stack-resources --stack-name countersign-prod-state --query ${query} --output json`,
    );
    const kept = (type: string) =>
      (JSON.parse(listed) as [string, string][]).flatMap(([each, id]) => (each === type ? [id] : []));
    const [tables, keys] = [kept('AWS::DynamoDB::Table'), kept('AWS::KMS::Key')];
    expect([tables.length, keys.length]).toEqual([2, 2]);
    // LocalStack as it is installed here has no tagging API; what is left is listed above.
    const ofTags = `--tag-filters Key=countersign:cluster,Values=prod --query 'ResourceTagMappingList[].ResourceARN'`;
    await page.run('remove-state', { [`aws resourcegroupstaggingapi get-resources ${ofTags}`]: ':' });
    expect(await stacks()).toEqual(['CDKToolkit']);
    const left = await operator.execute('aws dynamodb list-tables --query TableNames --output json');
    expect(JSON.parse(left)).toEqual(expect.arrayContaining(tables));

    await page.run('remove-kept', {
      ...account,
      TABLE: tables[0]!,
      KEY: keys[0]!,
      // A function URL has no access log.
      'aws logs delete-log-group --log-group-name GROUP': ':',
    });
    const now = await operator.execute('aws dynamodb list-tables --query TableNames --output json');
    expect(JSON.parse(now)).not.toContain(tables[0]);
    const key = await operator.execute(
      `aws kms describe-key --key-id ${keys[0]} --query KeyMetadata.KeyState --output text`,
    );
    expect(key.trim()).toBe('PendingDeletion');
    expect(page.left()).toEqual([]);
  }, 200_000);
});
