/** `countersign ca init|show` and `kubeadm sign` against functions that really run, as their bundles, under roles of their own. */
import { randomUUID, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateRoleCommand, IAMClient, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { CreateKeyCommand, KMSClient, ScheduleKeyDeletionCommand } from '@aws-sdk/client-kms';
import { CreateFunctionCommand, LambdaClient, waitUntilFunctionActiveV2 } from '@aws-sdk/client-lambda';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { environmentNames } from '../../../../adapters/lambda/environment.ts';
import { bundleAuthorities, bundleKubeadm } from '../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { functionName } from '../../../../core/configuration/resolve/deployment.ts';
import { bundle } from '../../../../lib/bundle.ts';
import { entries } from '../../../../lib/functions.ts';
import { createAttestationsTable, createCertificatesTable } from '../../../harness/aws/tables.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { zip } from '../../../../acceptance/resources/zip.ts';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { generate } from '../../../unit/cli/kubeadm/control-plane.ts';
import { run } from '../../../unit/cli/run.ts';
import { bothEmulators, describeOnEmulators } from './emulators.ts';

const parsed = parseConfiguration(
  `version: 1
clusters:
  prod:
    cas:
      ca: {subject: {commonName: prod}}
      web: {subject: {commonName: web}, keySpec: P-384}
    profiles: {kubernetes.io/kubelet-serving: {ca: ca}}
    kubeadm: {cas: {kubernetes: ca}, nodes: {cp-1: [10.0.0.11]}}
`,
  'countersign.yaml',
);
if (!parsed.ok) throw new Error('the configuration of this test is wrong');
const cluster = parsed.value.configuration.clusters.get('prod')!;
const bundleOf = (service: 'ca' | 'kubeadm', rules: string) =>
  bundle({
    root: join(import.meta.dirname, '../../../..'),
    entry: entries[service],
    // It obeys the endpoints of the emulators, as no deployed bundle does.
    constants: { __COUNTERSIGN_CLUSTER__: rules, __COUNTERSIGN_EMULATED_AWS__: 'by a test' },
  }).files;

describeOnEmulators(byTier({ default: ['MiniStack'], deep: bothEmulators }), (name, emulator) => {
  const roleOf = async (
    iam: IAMClient,
    Service: string,
    actions: readonly string[],
    RoleName = `role-${randomUUID()}`,
  ): Promise<string> => {
    const trust = { Effect: 'Allow', Action: 'sts:AssumeRole', Principal: Service === '' ? { AWS: '*' } : { Service } };
    const { Role: role } = await iam.send(
      new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument: document(trust) }),
    );
    await allow(iam, RoleName, actions);
    return role!.Arn!;
  };
  const document = (Statement: object) => JSON.stringify({ Version: '2012-10-17', Statement });
  const allow = (iam: IAMClient, RoleName: string, Action: readonly string[]) =>
    iam.send(
      new PutRolePolicyCommand({
        RoleName,
        PolicyName: 'p',
        PolicyDocument: document({ Effect: 'Allow', Action, Resource: '*' }),
      }),
    );

  const kubeadmActions = [
    'kms:Sign',
    'kms:GetPublicKey',
    'dynamodb:GetItem',
    'dynamodb:PutItem',
    'dynamodb:UpdateItem',
  ];
  const kubeadmRole = `role-${randomUUID()}`;

  let iam: IAMClient;
  let webKey: string;
  beforeAll(async () => {
    const { client } = emulator();
    iam = new IAMClient(client);
    const kms = new KMSClient(client);
    const lambda = new LambdaClient(client);
    const table = await createCertificatesTable(new DynamoDBClient(client), `cli-${randomUUID()}`);
    const locks = await createAttestationsTable(new DynamoDBClient(client), `cli-${randomUUID()}`);
    const create = async (KeySpec: 'ECC_NIST_P256' | 'ECC_NIST_P384') =>
      (await kms.send(new CreateKeyCommand({ KeySpec, KeyUsage: 'SIGN_VERIFY' }))).KeyMetadata!.Arn!;
    webKey = await create('ECC_NIST_P384');
    const caKeys = JSON.stringify({ ca: await create('ECC_NIST_P256'), web: webKey });
    const deploy = async (service: 'ca' | 'kubeadm', rules: string, actions: readonly string[], role?: string) => {
      const FunctionName = functionName('prod', service);
      await lambda.send(
        new CreateFunctionCommand({
          FunctionName,
          Runtime: 'nodejs24.x',
          Handler: 'index.handler',
          Timeout: 25,
          Role: await roleOf(iam, 'lambda.amazonaws.com', actions, role),
          Code: { ZipFile: zip(bundleOf(service, rules)) },
          Environment: {
            Variables: {
              [environmentNames.cluster]: 'prod',
              [environmentNames.certificatesTable]: table,
              [environmentNames.attestationsTable]: locks,
              [environmentNames.caKeys]: caKeys,
            },
          },
        }),
      );
      await waitUntilFunctionActiveV2({ client: lambda, maxWaitTime: 60 }, { FunctionName });
    };
    await deploy('ca', bundleAuthorities(cluster), [
      'kms:Sign',
      'kms:GetPublicKey',
      'dynamodb:GetItem',
      'dynamodb:PutItem',
    ]);
    await deploy('kubeadm', bundleKubeadm(cluster), kubeadmActions, kubeadmRole);
  });
  afterEach(() => vi.unstubAllEnvs());

  /** With this login, in an environment that knows no other. */
  async function countersign(argv: string, change: Readonly<Record<string, string | undefined>> = {}) {
    for (const [key, value] of Object.entries({ ...emulator().environment, ...change })) vi.stubEnv(key, value);
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent');
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    try {
      return await run(argv.split(' '));
    } finally {
      vi.unstubAllEnvs();
    }
  }

  test('none yet, made, shown, made again, and another one beside it', async () => {
    const none = await countersign('ca show --cluster prod');
    expect([none.code, none.err]).toEqual([4, expect.stringMatching(/there is no CA ca yet/)]);
    const made = await countersign('ca init --cluster prod -o json');
    expect([made.code, made.err]).toEqual([0, '']);
    expect(await countersign('ca show --cluster prod -o json')).toEqual(made);
    const again = await countersign('ca init --cluster prod -o json');
    expect([again.code, again.out]).toEqual([6, '']);

    const ca = new X509Certificate((await countersign('ca show --cluster prod -o pem')).out);
    expect(ca.subject).toBe('CN=prod');
    expect(ca.verify(ca.publicKey)).toBe(true);
    const web = await countersign('ca init --cluster prod --name web -o json');
    expect(JSON.parse(web.out)).toMatchObject({
      subject: 'CN=web',
      signatureAlgorithm: 'ECDSA_SHA_384',
      keyId: webKey,
    });
    const unknown = await countersign('ca init --cluster prod --name other');
    expect([unknown.code, unknown.err]).toEqual([4, expect.stringMatching(/no CA other; it has ca, web/)]);
  });

  test('the certificates of a kubeadm control plane: signed with KMS, recorded, and the same again', async () => {
    const folder = temporaryFolder('kubeadm-cli');
    const folders = { kubeconfigs: folder.path, pki: join(folder.path, 'pki') };
    const wanted = ['apiserver', 'admin.conf', 'super-admin.conf', 'etcd-server'] as const;
    generate(folders, wanted, (_, spec) => ({
      ...spec,
      ...(spec.sans === undefined
        ? {}
        : {
            sans: { ...spec.sans, dns: spec.sans.dns!.filter((each) => each !== 'k8s.example.com'), ip: ['10.0.0.11'] },
          }),
    }));
    await countersign('ca init --cluster prod');
    const sign = async () => {
      const ran = await countersign(`kubeadm sign --cluster prod --dir ${folder.path} -o json`);
      expect(ran.code).toBe(0);
      return JSON.parse(ran.out) as { certificates: { name: string; done: string }[]; leftOut: { name: string }[] };
    };
    const first = await sign();
    expect(first.certificates.map(({ name: made, done }) => [made, done])).toEqual([
      ['apiserver', 'written'],
      ['admin.conf', 'written'],
    ]);
    // No CA of etcd, and no word for the super administrator.
    expect(first.leftOut.map(({ name: left }) => left).toSorted()).toEqual(['etcd-server', 'super-admin.conf']);
    const [certificate, ca] = ['apiserver', 'ca'].map(
      (file) => new X509Certificate(readFileSync(join(folders.pki, `${file}.crt`))),
    ) as [X509Certificate, X509Certificate];
    expect([ca.subject, certificate.checkIssued(ca) && certificate.verify(ca.publicKey)]).toEqual(['CN=prod', true]);
    // The ledger has them.
    expect((await sign()).certificates.map(({ done }) => done)).toEqual(['unchanged', 'unchanged']);
    folder.remove();
  });

  // LocalStack does not check permissions.
  test.skipIf(name === 'LocalStack').each(kubeadmActions)(
    'without %s the kubeadm function signs nothing',
    async (action) => {
      await countersign('ca init --cluster prod');
      const folder = temporaryFolder('kubeadm-rights');
      generate({ kubeconfigs: folder.path, pki: join(folder.path, 'pki') }, ['admin.conf']);
      await allow(
        iam,
        kubeadmRole,
        kubeadmActions.filter((each) => each !== action),
      );
      try {
        const without = await countersign(`kubeadm sign --cluster prod --dir ${folder.path}`);
        const cannot = action.startsWith('kms:') ? 'the key cannot be used' : 'the table cannot be used';
        expect([without.code, without.err]).toEqual([5, expect.stringContaining(`${cannot} (AccessDeniedException)`)]);
      } finally {
        await allow(iam, kubeadmRole, kubeadmActions);
      }
      folder.remove();
    },
  );

  test('a cluster without the function, and an event that is not for it, are refused', async () => {
    const folder = temporaryFolder('kubeadm-other');
    generate({ kubeconfigs: folder.path, pki: join(folder.path, 'pki') }, ['admin.conf']);
    const other = await countersign(`kubeadm sign --cluster test --dir ${folder.path}`);
    expect([other.code, other.err]).toEqual([
      4,
      expect.stringMatching(/no function countersign-test-kubeadm.*\n.*the key kubeadm of countersign.yaml/),
    ]);
    const wrong = await countersign(`kubeadm sign --cluster prod --function countersign-prod-ca --dir ${folder.path}`);
    expect(wrong.code).toBe(5);
    folder.remove();
  });

  test('what an operator meets before the function: no function, no login, no region', async () => {
    const missing = await countersign('ca show --cluster test');
    expect([missing.code, missing.err]).toEqual([4, expect.stringMatching(/no function countersign-test-ca/)]);
    const anonymous = await countersign('ca show --cluster prod', { AWS_ACCESS_KEY_ID: undefined });
    expect([anonymous.code, anonymous.err]).toEqual([3, expect.stringMatching(/log in to AWS/)]);
    for (const region of [undefined, '']) {
      const nowhere = await countersign('ca show --cluster prod', { AWS_REGION: region });
      expect([nowhere.code, nowhere.err]).toEqual([3, expect.stringMatching(/[Rr]egion.*\n.*--region, or AWS_REGION/)]);
    }
    const deaf = await countersign('ca show --cluster prod', { AWS_ENDPOINT_URL: 'http://127.0.0.1:9' });
    expect([deaf.code, deaf.err]).toEqual([5, expect.stringMatching(/did not answer/)]);
  });

  test('an operator without the permission is told which one', async () => {
    const role = await roleOf(iam, '', ['lambda:GetFunction']);
    const sts = new STSClient(emulator().client);
    const { Credentials: login } = await sts.send(new AssumeRoleCommand({ RoleArn: role, RoleSessionName: 's' }));
    const ran = await countersign('ca show --cluster prod', {
      AWS_ACCESS_KEY_ID: login!.AccessKeyId!,
      AWS_SECRET_ACCESS_KEY: login!.SecretAccessKey!,
      AWS_SESSION_TOKEN: login!.SessionToken!,
    });
    // LocalStack does not check permissions.
    expect([ran.code, ran.err]).toEqual(
      name === 'LocalStack' ? [0, ''] : [3, expect.stringMatching(/AccessDenied.*lambda:InvokeFunction/)],
    );
  });

  test('a key that is going away needs an operator, not patience', async () => {
    await countersign('ca init --cluster prod --name web');
    const kms = new KMSClient(emulator().client);
    await kms.send(new ScheduleKeyDeletionCommand({ KeyId: webKey, PendingWindowInDays: 7 }));
    const ran = await countersign('ca show --cluster prod --name web');
    // MiniStack gives away the public key of a key that is going.
    expect([ran.code, ran.err]).toEqual(
      name === 'MiniStack' ? [0, ''] : [3, expect.stringMatching(/MisconfigurationError: the key cannot be used/)],
    );
  });
});
