/** What a cluster has besides where its machines prove themselves: the attest function, its ways in, and who may what. */
import { X509Certificate } from 'node:crypto';
import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readBundledCluster } from '../../../core/configuration/bundled-configuration.ts';
import { readSettings as readAttestSettings } from '../../../lambdas/attest/env.ts';
import { readSettings as readSignSettings } from '../../../lambdas/sign/env.ts';
import { createApplication } from '../../../lib/application.ts';
import { routesOf } from '../../../lib/front-door.ts';
import { clusters, clustersNamed } from './clusters.ts';
import type { Constants } from './entry.ts';
import {
  configuration,
  ofType,
  plain,
  resource,
  smallSources,
  statementsOf,
  synthesise,
  template,
} from './synthesis.ts';

const synthesis = synthesise(clusters);
const [proof, first] = [template(synthesis, 'countersign-proof'), template(synthesis, 'countersign-first')];
const show = (value: unknown): unknown => plain(value, synthesis);

describe('the attest function', () => {
  test('is as the sign function, with settings and a role of its own', () => {
    const { Properties, DependsOn } = resource(proof, 'AWS::Lambda::Function', 'Attest')[1];
    const { Code: _, ...properties } = show(Properties) as Record<string, unknown>;
    expect(properties).toEqual({
      Architectures: ['arm64'],
      Handler: 'index.handler',
      MemorySize: 512,
      Runtime: 'nodejs24.x',
      Timeout: 25,
      FunctionName: 'countersign-proof-attest',
      Description: 'Proves the machines of cluster proof',
      ReservedConcurrentExecutions: 9,
      Role: 'countersign-proof-state<AttestRole.Arn>',
      LoggingConfig: { LogGroup: '<AttestLog>' },
      Environment: {
        Variables: {
          COUNTERSIGN_CLUSTER: 'proof',
          COUNTERSIGN_ATTESTATIONS_TABLE: 'countersign-proof-state<Attestations>',
          COUNTERSIGN_LOG_LEVEL: 'info',
        },
      },
    });
    expect(DependsOn).toContain(resource(proof, 'AWS::IAM::Policy', 'AttestPolicy')[0]);
    expect(resource(proof, 'AWS::Logs::LogGroup', 'AttestLog')[1]).toEqual({
      Type: 'AWS::Logs::LogGroup',
      Properties: { RetentionInDays: 30 },
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
    });
  });

  test('both take their settings from what the template gives them', () => {
    const cluster = configuration(clusters).clusters.get('proof');
    if (cluster === undefined) throw new Error('no cluster');
    const variables = (id: string): Record<string, string> => {
      const { Environment } = show(resource(proof, 'AWS::Lambda::Function', id)[1].Properties) as {
        Environment: { Variables: Record<string, string> };
      };
      return Environment.Variables;
    };
    expect(readAttestSettings(variables('Attest'), cluster)).toEqual({
      attestationsTable: 'countersign-proof-state<Attestations>',
      logLevel: 'info',
    });
    const sign = variables('Sign');
    const arn = 'arn:aws:kms:eu-central-1:111122223333:key/0-0';
    expect(readSignSettings({ ...sign, COUNTERSIGN_CA_KEYS: JSON.stringify({ ca: arn }) }, cluster)).toMatchObject({
      attestationsTable: 'countersign-proof-state<Attestations>',
      attestFunction: '<Attest>',
    });
  });

  test('the sign function knows where to ask and where to read, and only there', () => {
    const { Environment } = show(resource(proof, 'AWS::Lambda::Function', 'Sign')[1].Properties) as {
      Environment: { Variables: Record<string, string> };
    };
    expect(Environment.Variables).toEqual({
      COUNTERSIGN_CLUSTER: 'proof',
      COUNTERSIGN_CERTIFICATES_TABLE: 'countersign-proof-state<Certificates>',
      COUNTERSIGN_CA_KEYS: '{"ca":"countersign-proof-state<CaKeyca.Arn>"}',
      COUNTERSIGN_ATTESTATIONS_TABLE: 'countersign-proof-state<Attestations>',
      COUNTERSIGN_ATTEST_FUNCTION: '<Attest>',
      COUNTERSIGN_LOG_LEVEL: 'info',
    });
  });
});

const nitroClusters = `version: 1
clusters:
  nitro:
    cas: {ca: {subject: {commonName: nitro}}}
    profiles: {cluster.x-k8s.io/kube-apiserver-client-kubelet-aws-nitrotpm: {}}
    attestation:
      aws:
        accounts: {'111122223333': {}, '444455556666': {assumeRole: 'arn:aws:iam::444455556666:role/look'}}
        regions: [eu-central-1, cn-north-1]
        acceptV1: false
        tags: {a: b}
        nodeName: [instanceId]
    access: {iam: {principals: ['arn:aws:iam::444455556666:role/relay']}}
    aws: {account: '111122223333', region: eu-central-1}
`;

describe('what each role may', () => {
  const table = 'countersign-proof-state<Attestations.Arn>';
  const certificates = 'countersign-proof-state<Certificates.Arn>';
  const on = (Sid: string, action: string, ...prefixes: string[]) => ({
    Sid,
    Effect: 'Allow',
    Action: `dynamodb:${action}`,
    Resource: table,
    Condition: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': prefixes.map((prefix) => `${prefix}#*`) } },
  });
  const look = [
    {
      Sid: 'LookAtInstances',
      Effect: 'Allow',
      Action: 'ec2:DescribeInstances',
      Resource: '*',
      Condition: { StringEquals: { 'aws:RequestedRegion': ['eu-central-1', 'eu-west-1'] } },
    },
    {
      Sid: 'LookElsewhere',
      Effect: 'Allow',
      Action: 'sts:AssumeRole',
      Resource: ['arn:aws:iam::444455556666:role/look', 'arn:aws:iam::777788889999:role/look'],
    },
  ];
  const log = {
    Sid: 'WriteOwnLog',
    Effect: 'Allow',
    Action: ['logs:CreateLogStream', 'logs:PutLogEvents'],
    Resource: '<AttestLog.Arn>',
  };
  const remember = [
    on('ReadAttestations', 'GetItem', 'id', 'node', 'once', 'verdict', 'machine', 'lock'),
    on('WriteAttestations', 'PutItem', 'id', 'node', 'once', 'verdict', 'audit'),
    on('RecallRequests', 'BatchGetItem', 'verdict', 'refused'),
    on('ChangeIdentities', 'UpdateItem', 'id', 'refused'),
    on('CheckNodes', 'ConditionCheckItem', 'node', 'machine'),
    on('FreeAddresses', 'DeleteItem', 'once#address'),
  ];

  test('attest: what it remembers, and a look at instances; no key', () => {
    const [, policy] = resource(proof, 'AWS::IAM::Policy', 'AttestPolicy');
    expect(show(statementsOf(policy))).toEqual([log, ...remember, ...look]);
    expect(show(policy.Properties['Roles'])).toEqual(['countersign-proof-state<AttestRole>']);
  });

  test('attest with aws-nitrotpm: reads endorsement keys of the instances of its own account, and makes challenges', () => {
    const given = synthesise(nitroClusters);
    const statements = plain(
      statementsOf(resource(template(given, 'countersign-nitro'), 'AWS::IAM::Policy', 'AttestPolicy')[1]),
      given,
    ) as { Sid: string }[];
    expect(statements.map(({ Sid }) => Sid)).toEqual([
      'WriteOwnLog',
      ...remember.map(({ Sid }) => Sid),
      ...look.map(({ Sid }) => Sid),
      'ReadEndorsementKeys',
    ]);
    expect(statements.at(-1)).toEqual({
      Sid: 'ReadEndorsementKeys',
      Effect: 'Allow',
      Action: 'ec2:GetInstanceTpmEkPub',
      Resource: [
        'arn:aws:ec2:eu-central-1:111122223333:instance/*',
        'arn:aws-cn:ec2:cn-north-1:111122223333:instance/*',
      ],
    });
    expect(resource(template(given, 'countersign-nitro-state'), 'AWS::KMS::Key', 'ChallengeKey')).toBeDefined();
    // Without an account of its own it has no instance to ask about.
    const elsewhere = synthesise(nitroClusters.replace("'111122223333': {},", ''));
    const [, policy] = resource(template(elsewhere, 'countersign-nitro'), 'AWS::IAM::Policy', 'AttestPolicy');
    expect(JSON.stringify(statementsOf(policy))).not.toContain('GetInstanceTpmEkPub');
  });

  test('attest where only first use counts: it calls no other service', () => {
    const statements = show(statementsOf(resource(first, 'AWS::IAM::Policy', 'AttestPolicy')[1])) as typeof remember;
    expect(statements.map(({ Sid }) => Sid)).toEqual(['WriteOwnLog', ...remember.map(({ Sid }) => Sid)]);
  });

  test('sign: reads what was concluded, has it concluded, and writes none of it', () => {
    const statements = show(statementsOf(resource(proof, 'AWS::IAM::Policy', 'SignPolicy')[1])) as object[];
    expect(statements.slice(3)).toEqual([
      { ...on('RememberKeys', 'UpdateItem', 'spki'), Resource: certificates },
      on('ReadLocksAndVerdicts', 'GetItem', 'lock', 'verdict', 'id'),
      { Sid: 'AskAttest', Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: '<Attest.Arn>' },
    ]);
    const without = show(statementsOf(resource(first, 'AWS::IAM::Policy', 'SignPolicy')[1])) as { Sid: string }[];
    expect(without.map(({ Sid }) => Sid)).not.toContain('RememberKeys');
  });

  test('sign where all is only audited: locks, and nothing else of it', () => {
    const audited = synthesise(
      clustersNamed('proof')
        .replace('-kubelet-aws: {freshKeys: true}', '-kubelet-aws: {attestation: {mode: audit}}')
        .replace('{providers: [aws]}', '{providers: [aws], mode: audit}'),
    );
    const of = template(audited, 'countersign-proof');
    expect(statementsOf(resource(of, 'AWS::IAM::Policy', 'SignPolicy')[1]).map(({ Sid }) => Sid)).toEqual([
      'WriteOwnLog',
      'ReadRequestsCasAndCrls',
      'WriteRequests',
      'ReadLocks',
    ]);
    expect(JSON.stringify(resource(of, 'AWS::Lambda::Function', 'Sign')[1])).not.toContain(
      'COUNTERSIGN_ATTEST_FUNCTION',
    );
    expect(resource(of, 'AWS::Lambda::Function', 'Attest')).toBeDefined();
  });

  test('an operator: the register, and no verdict', () => {
    const [, policy] = resource(proof, 'AWS::IAM::ManagedPolicy');
    expect(show(statementsOf(policy))).toEqual([
      on('ReadRegister', 'GetItem', 'id', 'node', 'once', 'verdict', 'machine', 'lock'),
      { Sid: 'ListRegister', Effect: 'Allow', Action: 'dynamodb:Scan', Resource: table },
      on('WriteRegister', 'PutItem', 'id', 'node', 'once#address', 'machine', 'lock', 'audit'),
      on('ChangeRegister', 'UpdateItem', 'machine'),
      on('ClearRegister', 'DeleteItem', 'id', 'node', 'once#address', 'machine', 'lock'),
      // countersign trace: records of requests, not those of the CAs, and nothing of it can be written.
      { ...on('ReadLedger', 'GetItem', 'uid', 'revoked'), Resource: certificates },
      { ...on('Revoke', 'PutItem', 'revoked'), Resource: certificates },
      { Sid: 'FindSerial', Effect: 'Allow', Action: 'dynamodb:Query', Resource: `${certificates}/index/serial` },
      { Sid: 'ListCertificates', Effect: 'Allow', Action: 'dynamodb:Query', Resource: `${certificates}/index/expiry` },
      {
        Sid: 'ReadLogs',
        Effect: 'Allow',
        Action: 'logs:FilterLogEvents',
        Resource: ['<SignLog.Arn>', '<AttestLog.Arn>'],
      },
      ...look,
      {
        Sid: 'LookAtTables',
        Effect: 'Allow',
        Action: 'dynamodb:DescribeTable',
        Resource: [table, certificates],
      },
      {
        Sid: 'LookAtBackups',
        Effect: 'Allow',
        Action: 'dynamodb:DescribeContinuousBackups',
        Resource: [table, certificates],
      },
      {
        Sid: 'FindRegister',
        Effect: 'Allow',
        Action: 'cloudformation:DescribeStacks',
        Resource: 'arn:aws:cloudformation:eu-central-1:111122223333:stack/countersign-proof/*',
      },
    ]);
    // Not attached to any user, group or role: the administrator of the account decides.
    expect(policy.Properties).toMatchObject({ Description: 'Operates locks and attestation of cluster proof' });
    for (const key of ['Roles', 'Users', 'Groups']) expect(policy.Properties).not.toHaveProperty(key);
  });

  test('instances of other accounts alone: no look at one’s own', () => {
    const elsewhere = clustersNamed('proof').replace("          '111122223333': {}\n", '');
    const of = synthesise(elsewhere);
    const sids = statementsOf(resource(template(of, 'countersign-proof'), 'AWS::IAM::Policy', 'AttestPolicy')[1]);
    expect(sids.map(({ Sid }) => Sid)).not.toContain('LookAtInstances');
    expect(of.acknowledged.filter((rule) => rule.includes('Resource::*'))).toEqual([]);
  });
});

describe('the ways in', () => {
  const [attested] = [configuration(clusters).clusters.get('proof')];
  if (attested === undefined) throw new Error('no cluster');

  test.each(['IamApi', 'JwtApi'])('%s has two routes more, to the attest function, by the same authorizer', (id) => {
    const routes = ofType(proof, 'AWS::ApiGatewayV2::Route')
      .filter(([name]) => name.startsWith(id))
      .map(([, { Properties }]) => show(Properties) as Record<string, unknown>);
    expect(routes.map(({ RouteKey }) => RouteKey)).toEqual(
      routesOf(attested).map(({ method, path }) => `${method} ${path}`),
    );
    expect(routes.slice(1, 3).map(({ RouteKey }) => RouteKey)).toEqual([
      'POST /v1/clusters/proof/attest',
      'POST /v1/clusters/proof/attest/look',
    ]);
    const authorization = ({ AuthorizationType, AuthorizerId }: Record<string, unknown>) => [
      AuthorizationType,
      AuthorizerId,
    ];
    for (const route of routes) expect(authorization(route)).toEqual(authorization(routes[0] ?? {}));
    expect(authorization(routes[0] ?? {})[0]).toBe(id === 'IamApi' ? 'AWS_IAM' : 'CUSTOM');

    const integrations = ofType(proof, 'AWS::ApiGatewayV2::Integration').filter(([name]) => name.startsWith(id));
    const functionBehind = (route: Record<string, unknown> | undefined): unknown => {
      const logical = String(route?.['Target']).replace(/^integrations\/<|>$/g, '');
      return show(integrations.find(([name]) => name.startsWith(logical))?.[1].Properties['IntegrationUri']);
    };
    expect(routes.map(functionBehind)).toEqual([
      '<Sign.Arn>',
      '<Attest.Arn>',
      '<Attest.Arn>',
      '<Sign.Arn>',
      '<Sign.Arn>',
      '<Sign.Arn>',
      '<Sign.Arn>',
      '<Sign.Arn>',
      '<Sign.Arn>',
    ]);
  });

  test('only the two APIs may call it, each on these two routes, and the rule of its schedule; sign by its own role', () => {
    const permissions = ofType(proof, 'AWS::Lambda::Permission')
      .map(([, { Properties }]) => show(Properties) as Record<string, unknown>)
      .filter(({ FunctionName }) => FunctionName === '<Attest.Arn>');
    expect(permissions.map(({ Principal, SourceArn }) => [Principal, SourceArn])).toEqual([
      ['events.amazonaws.com', '<RetireTerminated.Arn>'],
      ...['IamApi', 'JwtApi'].flatMap((id) =>
        ['attest', 'attest/look'].map((path) => [
          'apigateway.amazonaws.com',
          `arn:aws:execute-api:eu-central-1:111122223333:<${id}>/*/*/v1/clusters/proof/${path}`,
        ]),
      ),
    ]);
  });

  test('the caller role may call the routes', () => {
    const [statement] = statementsOf(resource(proof, 'AWS::IAM::Policy', 'CallerPolicy')[1]);
    expect((show(statement) as { Resource: string[] }).Resource.slice(1, 3)).toEqual(
      ['attest', 'attest/look'].map(
        (path) => `arn:aws:execute-api:eu-central-1:111122223333:<IamApi>/$default/POST/v1/clusters/proof/${path}`,
      ),
    );
  });

  describe('the look for terminated machines', () => {
    const rulesOf = (of: typeof proof) =>
      ofType(of, 'AWS::Events::Rule').filter(([id]) => id.startsWith('RetireTerminated'));

    test('every ten minutes, with the event that attest takes for it', () => {
      const [rule, ...others] = rulesOf(proof);
      expect(others).toEqual([]);
      expect(show(rule?.[1].Properties)).toMatchObject({
        ScheduleExpression: 'rate(10 minutes)',
        State: 'ENABLED',
        Targets: [{ Arn: '<Attest.Arn>', Input: '{"countersign":"retire-gone"}' }],
      });
    });

    test('no schedule where no provider lists terminated machines; hints there may be', () => {
      expect(rulesOf(first)).toEqual([]);
      const paths = routesOf(configuration(clusters).clusters.get('first') ?? attested).map(({ path }) => path);
      expect(paths).toContain('/v1/clusters/first/attest/look');
    });

    test('retireTerminated: false: neither a schedule, nor its alarm, nor a route, nor a permission', () => {
      const off = clustersNamed('proof').replace(
        '    attestation:\n',
        '    attestation:\n      retireTerminated: false\n',
      );
      const of = synthesise(off);
      const stack = template(of, 'countersign-proof');
      expect(rulesOf(stack)).toEqual([]);
      const text = JSON.stringify(stack);
      for (const word of ['attest/look', 'RetirementFailures', 'RetiredMachines', 'retire-gone'])
        expect(text).not.toContain(word);
      const principals = ofType(stack, 'AWS::Lambda::Permission')
        .filter(([id]) => id.includes('Attest'))
        .map(([, { Properties }]) => Properties['Principal']);
      expect(new Set(principals)).toEqual(new Set(['apigateway.amazonaws.com']));
    });
  });

  test('a function URL is one function’s, so there are two, each asking for a signature', () => {
    expect(ofType(first, 'AWS::Lambda::Url').map(([, { Properties }]) => show(Properties))).toEqual([
      { AuthType: 'AWS_IAM', TargetFunctionArn: '<Sign.Arn>' },
      { AuthType: 'AWS_IAM', TargetFunctionArn: '<Attest.Arn>' },
    ]);
    expect(show(statementsOf(resource(first, 'AWS::IAM::Policy', 'CallerPolicy')[1]))).toEqual([
      {
        Sid: 'CallOwnUrl',
        Effect: 'Allow',
        Action: 'lambda:InvokeFunctionUrl',
        Resource: ['<Sign.Arn>', '<Attest.Arn>'],
        Condition: { StringEquals: { 'lambda:FunctionUrlAuthType': 'AWS_IAM' } },
      },
      {
        Sid: 'OnlyByUrl',
        Effect: 'Allow',
        Action: 'lambda:InvokeFunction',
        Resource: ['<Sign.Arn>', '<Attest.Arn>'],
        Condition: { Bool: { 'lambda:InvokedViaFunctionUrl': 'true' } },
      },
    ]);
  });

  test('the outputs are what a relay and an operator need besides', () => {
    const outputs = (of: typeof proof) =>
      show(Object.fromEntries(Object.entries(of.Outputs ?? {}).map(([name, { Value }]) => [name, Value])));
    expect(outputs(proof)).toEqual({
      SignFunction: '<Sign>',
      AttestFunction: '<Attest>',
      SignLogGroup: '<SignLog>',
      AttestLogGroup: '<AttestLog>',
      CaFunction: '<Ca>',
      SignRoleArn: 'countersign-proof-state<SignRole.Arn>',
      CaRoleArn: 'countersign-proof-state<CaRole.Arn>',
      CaKeyArns: 'countersign-proof-state<CaKeyca.Arn>',
      AuthorizerFunction: '<Authorizer>',
      CertificatesTable: 'countersign-proof-state<Certificates>',
      AttestationsTable: 'countersign-proof-state<Attestations>',
      OperatorPolicyArn: '<OperatorPolicy>',
      CallerRoleArn: '<CallerRole.Arn>',
      SignUrl: '<IamApi.ApiEndpoint>/v1/clusters/proof',
      JwtSignUrl: '<JwtApi.ApiEndpoint>/v1/clusters/proof',
    });
    expect(outputs(first)).toMatchObject({
      SignUrl: '<FunctionUrl.FunctionUrl>v1/clusters/first',
      AttestUrl: '<AttestFunctionUrl.FunctionUrl>v1/clusters/first',
    });
  });
});

describe('what is in the bundle', () => {
  /** The stand-in's handler gives back the constants that it was bundled with. */
  async function bundled(cluster: string, id: string, written = clustersNamed(cluster)): Promise<Constants> {
    const outdir = mkdtempSync(join(tmpdir(), 'countersign-attest-'));
    try {
      createApplication({ configuration: configuration(written), sources: smallSources, outdir }).synth();
      const text = readFileSync(join(outdir, `countersign-${cluster}.template.json`), 'utf8');
      const of = JSON.parse(text) as Parameters<typeof resource>[0];
      const { S3Key: key } = resource(of, 'AWS::Lambda::Function', id)[1].Properties['Code'] as { S3Key: string };
      const file = join(outdir, `asset.${key.replace(/\.zip$/, '')}`, 'index.js');
      const { handler } = createRequire(import.meta.url)(file) as { handler: () => Promise<Constants> };
      return await handler();
    } finally {
      rmSync(outdir, { recursive: true, force: true });
    }
  }

  test('attest knows which machines may join, and by whose certificates documents are signed; sign neither', async () => {
    const cluster = configuration(clusters).clusters.get('proof');
    const attest = await bundled('proof', 'Attest');
    expect(readBundledCluster(attest.cluster)).toEqual({ ...cluster, cas: new Map(), approval: new Map() });
    const certificates = JSON.parse(attest.regionCertificates ?? '') as Record<string, string[]>;
    expect(Object.keys(certificates)).toEqual(['eu-central-1', 'eu-west-1']);
    for (const [der, ...more] of Object.values(certificates)) {
      expect(more).toEqual([]);
      expect(new X509Certificate(Buffer.from(der ?? '', 'base64')).publicKey.asymmetricKeyDetails?.modulusLength).toBe(
        2048,
      );
    }

    const sign = await bundled('proof', 'Sign');
    expect(sign.regionCertificates).toBeUndefined();
    expect(readBundledCluster(sign.cluster).attestation).toBeUndefined();
    expect(sign.cluster).not.toContain('role/look');
  });

  test('without a platform to ask there are no certificates', async () => {
    expect((await bundled('first', 'Attest')).regionCertificates).toBe('{}');
  });

  test('a cluster in a region without a known certificate cannot be deployed', () => {
    expect(() => synthesise(clustersNamed('proof').replace('eu-west-1]', 'xx-nowhere-1]'))).toThrow(
      /region xx-nowhere-1/,
    );
  });

  test('finding 7: where the documents of aws/v1 are not taken any more, no certificate is needed', async () => {
    const ended = clustersNamed('proof').replace('eu-west-1]', 'ap-future-1]\n        acceptV1: false');
    expect((await bundled('proof', 'Attest', ended)).regionCertificates).toBe('{}');
  });
});
