/** A deployed function refuses every request while its environment could lead its calls away from AWS. */
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redirects } from '../../../../adapters/lambda/redirects.ts';
import {
  bundleAccess,
  bundleAttestation,
  bundleCallers,
  bundleCluster,
  bundleKubeadm,
} from '../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { entries } from '../../../../lib/functions.ts';
import { bundle } from '../../../../lib/bundle.ts';
import type { Service } from '../../../../lib/functions.ts';
import { calledBy, contextIn, iamAuthorizer, sessionArn } from '../../../harness/lambda/callers.ts';
import { byTier } from '../../../harness/determinism/tier.ts';
import { root } from '../../lib/synthesis.ts';
import { eventFixture } from '../../lambdas/sign/stack.ts';

/** As Lambda sets them for Node.js 24. https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html */
const lambda = {
  _HANDLER: 'index.handler',
  AWS_ACCESS_KEY_ID: 'ASIAEXAMPLE',
  AWS_DEFAULT_REGION: 'eu-central-1',
  AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
  AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '512',
  AWS_LAMBDA_FUNCTION_NAME: 'countersign-demo-attest',
  AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
  AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
  AWS_LAMBDA_LOG_GROUP_NAME: '/aws/lambda/x',
  AWS_LAMBDA_LOG_STREAM_NAME: '2026/01/01/[$LATEST]x',
  AWS_LAMBDA_RUNTIME_API: '127.0.0.1:9001',
  AWS_REGION: 'eu-central-1',
  AWS_SECRET_ACCESS_KEY: 'x',
  AWS_SESSION_TOKEN: 'x',
  AWS_XRAY_CONTEXT_MISSING: 'LOG_ERROR',
  AWS_XRAY_DAEMON_ADDRESS: '169.254.79.129:2000',
  LAMBDA_RUNTIME_DIR: '/var/runtime',
  LAMBDA_TASK_ROOT: '/var/task',
  LANG: 'en_US.UTF-8',
  LD_LIBRARY_PATH: '/var/lang/lib:/lib64:/usr/lib64:/var/runtime',
  NODE_PATH: '/opt/nodejs/node24/node_modules:/opt/nodejs/node_modules:/var/runtime/node_modules',
  PATH: '/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin',
  TZ: ':UTC',
  _X_AMZN_TRACE_ID: 'Root=1',
};

describe('finding 10: variables that could lead calls away from AWS', () => {
  test('do not include what Lambda sets, nor what our own bundles with source maps are deployed with', () => {
    expect(redirects(lambda)).toEqual([]);
    expect(redirects({ ...lambda, NODE_OPTIONS: '--enable-source-maps' })).toEqual([]);
    expect(redirects({ ...lambda, NODE_EXTRA_CA_CERTS: '/var/runtime/ca-cert.pem' })).toEqual([]);
  });

  test.each([
    ['AWS_ENDPOINT_URL', 'http://169.254.0.1'],
    ['AWS_ENDPOINT_URL', ''],
    ['AWS_ENDPOINT_URL_STS', 'http://127.0.0.1:9'],
    ['AWS_ENDPOINT_URL_DYNAMODB', 'https://dynamodb.example.com'],
    ['AWS_ENDPOINT_URL_KMS', 'https://kms.example.com'],
    ['AWS_PROFILE', 'other'],
    ['AWS_CONFIG_FILE', '/opt/config'],
    ['AWS_SHARED_CREDENTIALS_FILE', '/opt/credentials'],
    ['NODE_EXTRA_CA_CERTS', '/opt/ca.pem'],
    ['NODE_OPTIONS', '--import=data:text/javascript,0'],
    ['NODE_OPTIONS', '--enable-source-maps --use-openssl-ca'],
    ['NODE_TLS_REJECT_UNAUTHORIZED', '0'],
    ['NODE_USE_ENV_PROXY', '1'],
    ['NODE_USE_SYSTEM_CA', '1'],
    ['AWS_LAMBDA_EXEC_WRAPPER', '/opt/wrapper'],
  ])('are told by name and never by value: %s=%s', (name, value) => {
    const [problem, ...more] = redirects({ ...lambda, [name]: value });
    expect(problem).toContain(`${name} is set`);
    if (value.includes('/')) expect(problem).not.toContain(value);
    expect(more).toEqual([]);
  });

  test('are obeyed by bundles for an emulator alone', () => {
    expect(redirects({ AWS_ENDPOINT_URL: 'http://127.0.0.1:4566' }, true)).toEqual([]);
  });
});

test('finding 10: no stack is made with that constant but by a test', () => {
  const sources = globSync('{lib,cli,dev,lambdas}/**/*.ts', { cwd: root });
  const users = sources.filter((file) => readFileSync(join(root, file), 'utf8').includes('emulatedAws'));
  expect(users).toEqual(['lib/functions.ts']);
});

const parsed = parseConfiguration(
  `version: 1
clusters:
  demo:
    cas: { ca: { subject: { commonName: demo ca } } }
    profiles: { kubernetes.io/kube-apiserver-client-kubelet: { attestation: { providers: [aws] } } }
    aws: { account: '111122223333', region: eu-central-1 }
    attestation:
      aws: { accounts: { '111122223333': {} }, regions: [eu-central-1], vpcs: [vpc-0a1b2c3d], nodeName: [privateDnsName] }
`,
  'countersign.yaml',
);
if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
const cluster = parsed.value.configuration.clusters.get('demo')!;
const jwt = {
  issuer: 'https://issuer.example.com',
  audience: 'countersign',
  subjects: ['system:serviceaccount:default:relay'],
};
const callers = { __COUNTERSIGN_CALLERS__: bundleCallers({ cluster: 'demo', role: 'countersign-demo-caller' }) };
const called = (path: string) =>
  calledBy(eventFixture({ method: 'POST', path, body: '{}' }), iamAuthorizer(sessionArn('countersign-demo-caller')));
const subjects: Readonly<Record<Service, { readonly constants: Readonly<Record<string, string>>; event: unknown }>> = {
  sign: {
    constants: { __COUNTERSIGN_CLUSTER__: bundleCluster(cluster), ...callers },
    event: called('/v1/clusters/demo/sign'),
  },
  attest: {
    constants: {
      __COUNTERSIGN_CLUSTER__: bundleAttestation(cluster),
      __COUNTERSIGN_REGION_CERTIFICATES__: '{}',
      ...callers,
    },
    event: called('/v1/clusters/demo/attest'),
  },
  ca: { constants: { __COUNTERSIGN_CLUSTER__: bundleCluster(cluster) }, event: { action: 'show' } },
  kubeadm: {
    constants: { __COUNTERSIGN_CLUSTER__: bundleKubeadm(cluster) },
    event: { certificate: 'admin.conf', csr: '', by: 'jo' },
  },
  authorizer: {
    constants: { __COUNTERSIGN_CLUSTER__: bundleAccess({ cluster: 'demo', jwt }) },
    event: { version: '2.0', type: 'REQUEST', rawPath: '/v1/clusters/demo/sign', headers: {} },
  },
};
const settings = {
  ...lambda,
  NODE_PATH: undefined,
  COUNTERSIGN_CLUSTER: 'demo',
  COUNTERSIGN_CERTIFICATES_TABLE: 'certificates',
  COUNTERSIGN_ATTESTATIONS_TABLE: 'attestations',
  COUNTERSIGN_ATTEST_FUNCTION: 'countersign-demo-attest',
  COUNTERSIGN_CA_KEYS: JSON.stringify({ ca: 'arn:aws:kms:eu-central-1:111122223333:key/00000000-0000' }),
};

describe.each(Object.entries(subjects))('finding 10: the deployed %s function', (service, { constants, event }) => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'countersign-redirects-'));
    const { files } = bundle({ root, entry: entries[service as Service], constants });
    writeFileSync(join(folder, 'index.js'), files.get('index.js') ?? '');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function call(environment: Readonly<Record<string, string>>): {
    readonly answer: Readonly<Record<string, unknown>>;
    readonly log: string;
  } {
    const script = `
      const { handler } = require('./index.js');
      handler(JSON.parse(process.argv[1]), ${JSON.stringify(contextIn())}).then(
        (answer) => process.stdout.write('\\n' + JSON.stringify(answer)),
        (error) => process.stdout.write('\\n' + JSON.stringify({ threw: error.name, message: error.message })));`;
    const ran = spawnSync(process.execPath, ['-e', script, JSON.stringify(event)], {
      cwd: folder,
      env: { ...settings, ...environment },
      encoding: 'utf8',
      timeout: 30_000,
    });
    expect(ran.stderr).toBe('');
    const lines = ran.stdout.split('\n').filter((line) => line !== '');
    return { answer: JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown>, log: lines.slice(0, -1).join('\n') };
  }

  const forOperators = new Set(['ca', 'kubeadm']);
  const variables: readonly (readonly [string, string])[] = [
    ['AWS_ENDPOINT_URL_STS', 'http://127.0.0.1:9/leads-away'],
    ['AWS_ENDPOINT_URL', 'http://127.0.0.1:9/leads-away'],
    ['AWS_CONFIG_FILE', '/tmp/leads-away'],
  ];
  test.each(byTier({ default: variables.slice(0, 1), deep: variables }))(
    'refuses every request with %s, and raises the alarm',
    (name, value) => {
      const { answer, log } = call({ [name]: value });
      expect(log).toContain('"level":"error"');
      expect(log).toContain(`${name} is set`);
      expect(log).not.toContain('leads-away');
      if (forOperators.has(service)) expect(answer).toMatchObject({ threw: 'MisconfigurationError' });
      else if (service === 'authorizer') expect(answer).toEqual({ isAuthorized: false });
      else expect(answer).toMatchObject({ statusCode: 503, headers: { 'x-countersign-outcome': 'busy' } });
    },
  );

  test('has no such fault without', () => {
    // These would ask AWS.
    if (forOperators.has(service)) return;
    const { answer, log } = call({});
    expect(log).not.toContain('"level":"error"');
    if (service !== 'authorizer') expect(answer).toMatchObject({ statusCode: 400 });
  });
});
