/** Functions, ways in and what each role may: resource by resource, statement by statement. */
import { describe, expect, test } from 'vitest';
import { loopbackCaller } from '../../../dev/serve/loopback-caller.ts';
import { readSettings as readSignSettings } from '../../../lambdas/sign/env.ts';
import { readSettings } from '../../../lambdas/ca/env.ts';
import { noCrls } from '../../harness/stack/no-crls.ts';
import { createSignHandler } from '../../../lambdas/sign/handler.ts';
import { routesOf } from '../../../lib/front-door.ts';
import { clusters } from './clusters.ts';
import { configuration, ofType, plain, resource, statementsOf, synthesise, template } from './synthesis.ts';
import type { Resource } from './synthesis.ts';
import { noLocks } from '../../harness/kubernetes/no-locks.ts';

const synthesis = synthesise(clusters);
const { clusters: configured } = configuration(clusters);
const [api, url, tokens] = ['api', 'url', 'tokens'].map((name) => template(synthesis, `countersign-${name}`)) as [
  ReturnType<typeof template>,
  ReturnType<typeof template>,
  ReturnType<typeof template>,
];
const show = (value: unknown): unknown => plain(value, synthesis);

/** Counts by type, without alarms and their filters. */
function counts({ Resources }: typeof api): Record<string, number> {
  const of: Record<string, number> = {};
  for (const { Type: type } of Object.values(Resources))
    if (type !== 'AWS::CloudWatch::Alarm' && type !== 'AWS::Logs::MetricFilter') of[type] = (of[type] ?? 0) + 1;
  return of;
}

test('a cluster has what its ways in need, and nothing else', () => {
  const always = {
    'AWS::Lambda::Function': 2,
    'AWS::IAM::Policy': 2,
    'AWS::IAM::ManagedPolicy': 1,
    'AWS::Logs::LogGroup': 2,
    'Custom::CountersignCas': 1,
    'AWS::Events::Rule': 1,
    'AWS::Lambda::Permission': 1,
  };
  expect(counts(url)).toEqual({ ...always, 'AWS::IAM::Role': 1, 'AWS::IAM::Policy': 3, 'AWS::Lambda::Url': 1 });
  expect(counts(tokens)).toEqual({
    ...always,
    'AWS::ApiGatewayV2::DomainName': 1,
    'AWS::ApiGatewayV2::ApiMapping': 1,
    'AWS::Lambda::Function': 3,
    'AWS::IAM::Role': 1,
    'AWS::IAM::Policy': 3,
    'AWS::Logs::LogGroup': 4,
    'AWS::ApiGatewayV2::Api': 1,
    'AWS::ApiGatewayV2::Authorizer': 1,
    'AWS::ApiGatewayV2::Integration': 1,
    'AWS::ApiGatewayV2::Route': 7,
    'AWS::ApiGatewayV2::Stage': 1,
    'AWS::Lambda::Permission': 1 + 7 + 1,
  });
  expect(counts(api)).toEqual({
    ...always,
    'AWS::Lambda::Function': 3,
    'AWS::IAM::Role': 2,
    'AWS::IAM::Policy': 4,
    'AWS::Logs::LogGroup': 5,
    'AWS::ApiGatewayV2::Api': 2,
    'AWS::ApiGatewayV2::Authorizer': 1,
    'AWS::ApiGatewayV2::Integration': 2,
    'AWS::ApiGatewayV2::Route': 18,
    'AWS::ApiGatewayV2::Stage': 2,
    'AWS::Lambda::Permission': 1 + 18 + 1,
  });
});

const functionOf = (id: string): Resource => resource(api, 'AWS::Lambda::Function', id)[1];

describe('the functions', () => {
  const common = {
    Architectures: ['arm64'],
    Handler: 'index.handler',
    MemorySize: 512,
    Runtime: 'nodejs24.x',
  };
  const environment = {
    COUNTERSIGN_CLUSTER: 'api',
    COUNTERSIGN_CERTIFICATES_TABLE: 'countersign-api-state<Certificates>',
    COUNTERSIGN_CA_KEYS:
      '{"nodes":"countersign-api-state<CaKeynodes.Arn>","web":"countersign-api-state<CaKeyweb.Arn>"}',
    COUNTERSIGN_LOG_LEVEL: 'info',
  };
  const signs = { ...environment, COUNTERSIGN_ATTESTATIONS_TABLE: 'countersign-api-state<Attestations>' };

  test.each([
    [
      'Sign',
      'countersign-api-sign',
      'Signs certificates of cluster api',
      7,
      'countersign-api-state<SignRole.Arn>',
      signs,
    ],
    [
      'Ca',
      'countersign-api-ca',
      'Makes the CA certificates of cluster api',
      undefined,
      'countersign-api-state<CaRole.Arn>',
      environment,
    ],
    [
      'Authorizer',
      'countersign-api-authorizer',
      'Checks the tokens of callers of cluster api',
      7,
      '<AuthorizerRole.Arn>',
      undefined,
    ],
  ])('%s', (id, name, description, reserved, role, variables) => {
    const { Properties, DependsOn } = functionOf(id);
    const { Code: code, ...properties } = show(Properties) as Record<string, unknown>;
    expect(properties).toEqual({
      ...common,
      FunctionName: name,
      Description: description,
      Timeout: id === 'Ca' ? 120 : 25,
      ...(reserved === undefined ? {} : { ReservedConcurrentExecutions: reserved }),
      Role: role,
      LoggingConfig: { LogGroup: `<${id}Log>` },
      ...(variables === undefined ? {} : { Environment: { Variables: variables } }),
    });
    expect(code).toMatchObject({ S3Key: expect.stringMatching(/^[0-9a-f]{64}\.zip$/) as unknown });
    // Not before its role may do what it needs.
    expect(DependsOn).toContain(resource(api, 'AWS::IAM::Policy', `${id}Policy`)[0]);
  });

  test('take their settings from what the templates give them', () => {
    const arn = 'arn:aws:kms:eu-central-1:111122223333:key/0-0';
    const cluster = configured.get('api');
    if (cluster === undefined) throw new Error('no cluster');
    for (const id of ['Sign', 'Ca']) {
      const { Environment: given } = show(functionOf(id).Properties) as {
        Environment: { Variables: Record<string, string> };
      };
      const variables = Object.fromEntries(
        Object.entries(given.Variables).map(([name, value]) => [
          name,
          value.replaceAll(/countersign-api-state<CaKey\w+\.Arn>/g, arn),
        ]),
      );
      const keys = new Map([
        ['nodes', arn],
        ['web', arn],
      ]);
      if (id === 'Sign')
        expect(readSignSettings(variables, cluster)).toEqual({
          certificatesTable: 'countersign-api-state<Certificates>',
          attestationsTable: 'countersign-api-state<Attestations>',
          caKeys: keys,
          logLevel: 'info',
        });
      else
        expect(readSettings(variables, cluster)).toEqual({
          certificatesTable: 'countersign-api-state<Certificates>',
          caKeys: keys,
        });
    }
  });

  test.each(['Sign', 'Ca', 'Authorizer'])('%s writes to a log made before it, kept for as long as configured', (id) => {
    expect(resource(api, 'AWS::Logs::LogGroup', `${id}Log`)[1]).toEqual({
      Type: 'AWS::Logs::LogGroup',
      Properties: { RetentionInDays: 30 },
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
    });
  });
});

describe('what each role may', () => {
  const table = 'countersign-api-state<Certificates.Arn>';
  const leading = (...prefixes: string[]) => ({
    'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': prefixes.map((prefix) => `${prefix}#*`) },
  });
  const log = (id: string) => ({
    Sid: 'WriteOwnLog',
    Effect: 'Allow',
    Action: ['logs:CreateLogStream', 'logs:PutLogEvents'],
    Resource: `<${id}Log.Arn>`,
  });

  test.each([
    [
      'Sign',
      'countersign-api-state<SignRole>',
      [
        log('Sign'),
        {
          Sid: 'ReadRequestsCasAndCrls',
          Effect: 'Allow',
          Action: 'dynamodb:GetItem',
          Resource: table,
          Condition: leading('uid', 'ca', 'crl'),
        },
        {
          Sid: 'WriteRequests',
          Effect: 'Allow',
          Action: ['dynamodb:PutItem', 'dynamodb:UpdateItem'],
          Resource: table,
          Condition: leading('uid'),
        },
        {
          Sid: 'ReadLocks',
          Effect: 'Allow',
          Action: 'dynamodb:GetItem',
          Resource: 'countersign-api-state<Attestations.Arn>',
          Condition: leading('lock'),
        },
      ],
    ],
    [
      'Ca',
      'countersign-api-state<CaRole>',
      [
        log('Ca'),
        {
          Sid: 'KeepCas',
          Effect: 'Allow',
          Action: ['dynamodb:GetItem', 'dynamodb:PutItem'],
          Resource: table,
          Condition: leading('ca'),
        },
        {
          Sid: 'KeepCrls',
          Effect: 'Allow',
          Action: ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:DeleteItem'],
          Resource: table,
          Condition: leading('crl'),
        },
        {
          Sid: 'RecordSignatures',
          Effect: 'Allow',
          Action: 'dynamodb:PutItem',
          Resource: table,
          Condition: leading('signed'),
        },
        {
          Sid: 'ReadRevocations',
          Effect: 'Allow',
          Action: 'dynamodb:GetItem',
          Resource: table,
          Condition: leading('revoked'),
        },
        {
          Sid: 'ListRevocations',
          Effect: 'Allow',
          Action: 'dynamodb:Query',
          Resource: `${table}/index/expiry`,
          Condition: leading('revoked'),
        },
      ],
    ],
    ['Authorizer', '<AuthorizerRole>', [log('Authorizer')]],
    [
      'Caller',
      '<CallerRole>',
      [
        {
          Sid: 'CallOwnEndpoint',
          Effect: 'Allow',
          Action: 'execute-api:Invoke',
          Resource: [
            'POST/v1/clusters/api/sign',
            'GET/v1/clusters/api/healthz',
            'GET/v1/clusters/api/trust-bundle',
            'GET/v1/clusters/api/trust-bundles',
            'GET/v1/clusters/api/trust-bundle/nodes',
            'GET/v1/clusters/api/crl/nodes',
            'GET/v1/clusters/api/trust-bundle/web',
            'GET/v1/clusters/api/crl/web',
            'GET/v1/clusters/api/revoked',
          ].map((route) => `arn:aws:execute-api:eu-central-1:111122223333:<IamApi>/$default/${route}`),
        },
      ],
    ],
  ])('%s', (id, role, statements) => {
    const [, policy] = resource(api, 'AWS::IAM::Policy', `${id}Policy`);
    expect(show(statementsOf(policy))).toEqual(statements);
    expect(show(policy.Properties['Roles'])).toEqual([role]);
  });

  test('the caller of a function URL may call it as a URL and in no other way', () => {
    const [, policy] = resource(url, 'AWS::IAM::Policy', 'CallerPolicy');
    expect(show(statementsOf(policy))).toEqual([
      {
        Sid: 'CallOwnUrl',
        Effect: 'Allow',
        Action: 'lambda:InvokeFunctionUrl',
        Resource: '<Sign.Arn>',
        Condition: { StringEquals: { 'lambda:FunctionUrlAuthType': 'AWS_IAM' } },
      },
      {
        Sid: 'OnlyByUrl',
        Effect: 'Allow',
        Action: 'lambda:InvokeFunction',
        Resource: '<Sign.Arn>',
        Condition: { Bool: { 'lambda:InvokedViaFunctionUrl': 'true' } },
      },
    ]);
    expect(show(policy.Properties['Roles'])).toEqual(['<CallerRole>']);
  });

  test('roles have only the policies that are written here', () => {
    for (const of of synthesis.templates.values())
      for (const [, { Properties: properties }] of ofType(of, 'AWS::IAM::Role')) {
        expect(properties).not.toHaveProperty('ManagedPolicyArns');
        expect(properties).not.toHaveProperty('Policies');
      }
    const sids = (of: typeof api): string[] =>
      ofType(of, 'AWS::IAM::Policy').flatMap(([, policy]) => statementsOf(policy).map(({ Sid }) => Sid ?? ''));
    expect(sids(tokens).sort()).toEqual([
      'KeepCas',
      'KeepCrls',
      'ListRevocations',
      'ReadLocks',
      'ReadRequestsCasAndCrls',
      'ReadRevocations',
      'RecordSignatures',
      'WriteOwnLog',
      'WriteOwnLog',
      'WriteOwnLog',
      'WriteRequests',
    ]);
  });

  test('the caller role trusts only the principals of the file', () => {
    const roleOf = (of: typeof api) => show(resource(of, 'AWS::IAM::Role', 'CallerRole')[1].Properties);
    const trust = (arn: string) => ({
      Effect: 'Allow',
      Action: ['sts:AssumeRole', 'sts:TagSession'],
      Principal: { AWS: arn },
    });
    expect(roleOf(api)).toEqual({
      RoleName: 'countersign-api-caller',
      Description: 'Calls the sign endpoint of cluster api',
      AssumeRolePolicyDocument: {
        Version: '2012-10-17',
        Statement: [trust('arn:aws:iam::444455556666:role/relay'), trust('arn:aws:iam::777788889999:root')],
      },
    });
    expect(roleOf(url)).toMatchObject({ RoleName: 'countersign-url-caller' });
    expect(ofType(tokens, 'AWS::IAM::Role').map(([id]) => id.replace(/[0-9A-F]{8}$/, ''))).toEqual(['AuthorizerRole']);
  });

  test('the authorizer’s role is Lambda’s to take', () => {
    expect(resource(api, 'AWS::IAM::Role', 'AuthorizerRole')[1].Properties).toEqual({
      AssumeRolePolicyDocument: {
        Version: '2012-10-17',
        Statement: [{ Effect: 'Allow', Action: 'sts:AssumeRole', Principal: { Service: 'lambda.amazonaws.com' } }],
      },
      Description: 'Checks the tokens of callers of cluster api',
    });
  });
});

/** AWS leaves 100 of an account's concurrent executions unreserved, and a new account has 10 to 50 in all. */
test('without a reservation no function of the cluster reserves any', () => {
  const none = synthesise(clusters.replaceAll(/reservedConcurrency: [0-9]+/g, 'reservedConcurrency: none'));
  for (const name of ['countersign-api', 'countersign-proof']) {
    const functions = ofType(template(none, name), 'AWS::Lambda::Function');
    expect(functions.length).toBeGreaterThan(2);
    for (const [, { Properties }] of functions) expect(Properties).not.toHaveProperty('ReservedConcurrentExecutions');
  }
});

describe('the HTTP APIs', () => {
  const routes = [
    'POST /v1/clusters/api/sign',
    'GET /v1/clusters/api/healthz',
    'GET /v1/clusters/api/trust-bundle',
    'GET /v1/clusters/api/trust-bundles',
    'GET /v1/clusters/api/trust-bundle/nodes',
    'GET /v1/clusters/api/crl/nodes',
    'GET /v1/clusters/api/trust-bundle/web',
    'GET /v1/clusters/api/crl/web',
    'GET /v1/clusters/api/revoked',
  ];

  test('finding 14: made-up tokens reach a function, a reserve and an endpoint of their own', () => {
    const reserves = ['Sign', 'Authorizer'].map((id) => resource(api, 'AWS::Lambda::Function', id)[1].Properties);
    expect(reserves.map((of) => of['ReservedConcurrentExecutions'])).toEqual([7, 7]);
    const stages = ofType(api, 'AWS::ApiGatewayV2::Stage').map(([, { Properties: of }]) => show(of));
    const throttle = { DefaultRouteSettings: expect.objectContaining({ ThrottlingRateLimit: 11 }) as unknown };
    expect(stages).toEqual([
      expect.objectContaining({ ApiId: '<IamApi>', ...throttle }),
      expect.objectContaining({ ApiId: '<JwtApi>', ...throttle }),
    ]);
    // AWS's own check turns strangers away from the other endpoint before any function of ours runs.
    for (const [id, route] of ofType(api, 'AWS::ApiGatewayV2::Route').filter(([name]) => name.startsWith('IamApi')))
      expect([id, route.Properties['AuthorizationType']]).toEqual([id, 'AWS_IAM']);
  });

  test.each([
    ['IamApi', { AuthorizationType: 'AWS_IAM' }],
    ['JwtApi', { AuthorizationType: 'CUSTOM', AuthorizerId: '<JwtApiJwtAuthorizer>' }],
  ])('%s: every route has its authorizer, and there is no other route', (id, authorization) => {
    const found = ofType(api, 'AWS::ApiGatewayV2::Route').filter(([name]) => name.startsWith(id));
    expect(found.map(([, route]) => show(route.Properties))).toEqual(
      routes.map((route) => ({
        ApiId: `<${id}>`,
        RouteKey: route,
        Target: expect.stringMatching(new RegExp(`^integrations/<${id}POST`)) as unknown,
        ...authorization,
      })),
    );
    expect(show(resource(api, 'AWS::ApiGatewayV2::Integration', id)[1].Properties)).toEqual({
      ApiId: `<${id}>`,
      IntegrationType: 'AWS_PROXY',
      IntegrationUri: '<Sign.Arn>',
      PayloadFormatVersion: '2.0',
      TimeoutInMillis: 29_000,
    });
  });

  test.each([
    ['IamApi', 'countersign-api-iam', { caller: '$context.identity.userArn' }],
    [
      'JwtApi',
      'countersign-api-jwt',
      { subject: '$context.authorizer.subject', authorizerError: '$context.authorizer.error' },
    ],
  ])('%s: throttled as configured, each call in a log that holds no secret', (id, name, logged) => {
    expect(resource(api, 'AWS::ApiGatewayV2::Api', id)[1].Properties).toEqual({
      Name: name,
      Description: 'Signs certificates of cluster api',
      ProtocolType: 'HTTP',
    });
    const { AccessLogSettings: log, ...stage } = show(resource(api, 'AWS::ApiGatewayV2::Stage', id)[1].Properties) as {
      AccessLogSettings: { DestinationArn: string; Format: string };
    };
    expect(stage).toEqual({
      ApiId: `<${id}>`,
      StageName: '$default',
      AutoDeploy: true,
      DefaultRouteSettings: { ThrottlingRateLimit: 11, ThrottlingBurstLimit: 22 },
    });
    expect(log.DestinationArn).toBe(`<${id}AccessLog.Arn>`);
    expect(JSON.parse(log.Format)).toEqual({
      time: '$context.requestTime',
      requestId: '$context.requestId',
      sourceIp: '$context.identity.sourceIp',
      method: '$context.httpMethod',
      path: '$context.path',
      route: '$context.routeKey',
      status: '$context.status',
      error: '$context.error.message',
      integrationError: '$context.integrationErrorMessage',
      ...logged,
    });
    expect(show(resource(api, 'AWS::Logs::LogGroup', `${id}AccessLog`)[1].Properties)).toEqual({
      LogGroupName: `/aws/vendedlogs/countersign/api/${id}-<2 of {"Fn::Split":["/","<AWS::StackId>"]}>`,
      RetentionInDays: 30,
    });
  });

  test('tokens are looked at anew with every call', () => {
    expect(show(resource(api, 'AWS::ApiGatewayV2::Authorizer')[1].Properties)).toEqual({
      ApiId: '<JwtApi>',
      Name: 'countersign-api',
      AuthorizerType: 'REQUEST',
      AuthorizerPayloadFormatVersion: '2.0',
      EnableSimpleResponses: true,
      IdentitySource: ['$request.header.Authorization'],
      AuthorizerResultTtlInSeconds: 0,
      AuthorizerUri: 'arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/<Authorizer.Arn>/invocations',
    });
  });

  test('the routes are those that the handler has for one cluster', async () => {
    const cluster = configured.get('api');
    if (cluster === undefined) throw new Error('no cluster');
    const handler = createSignHandler({
      crls: () => noCrls,
      version: '0',
      caller: loopbackCaller,
      cluster: (name) => (name === 'api' ? cluster : undefined),
      ledger: () => {
        throw new Error('not asked');
      },
      locks: () => noLocks,
      authority: () => Promise.reject(new Error('not there')),
      now: () => 0,
      randomBytes: (count) => new Uint8Array(count),
      log: () => undefined,
    });
    for (const { method, path } of routesOf(cluster)) {
      const { statusCode, body } = await handler({
        version: '2.0',
        rawPath: path,
        rawQueryString: '',
        headers: {},
        requestContext: { http: { method, path } },
        isBase64Encoded: false,
      });
      // Known, and going on to what this test does not have. No signer of this cluster issues logins.
      const noLogins = path.endsWith('/trust-bundle') ? 404 : 503;
      expect([path, statusCode, body]).toEqual([
        path,
        path.endsWith('/sign') ? 400 : noLogins,
        expect.not.stringContaining('no such path'),
      ]);
    }
  });
});

describe('who may call which function', () => {
  const permissions = (of: typeof api): unknown[] =>
    ofType(of, 'AWS::Lambda::Permission').map(([, { Properties }]) => show(Properties));
  const gateway = (FunctionName: string, resource: string) => ({
    Action: 'lambda:InvokeFunction',
    FunctionName,
    Principal: 'apigateway.amazonaws.com',
    SourceArn: `arn:aws:execute-api:eu-central-1:111122223333:${resource}`,
  });
  const cas = ['nodes', 'web'].flatMap((ca) => [`trust-bundle/${ca}`, `crl/${ca}`]);
  const paths = ['sign', 'healthz', 'trust-bundle', 'trust-bundles', ...cas, 'revoked'];
  const schedule = {
    Action: 'lambda:InvokeFunction',
    FunctionName: '<Ca.Arn>',
    Principal: 'events.amazonaws.com',
    SourceArn: '<CaStatus.Arn>',
  };

  test('an API may invoke its routes’ function, the schedule the ca function; there is no other permission', () => {
    const key = (value: unknown): string => JSON.stringify(value);
    const expected = [
      schedule,
      ...['IamApi', 'JwtApi'].flatMap((id) =>
        paths.map((path) => gateway('<Sign.Arn>', `<${id}>/*/*/v1/clusters/api/${path}`)),
      ),
      gateway('<Authorizer.Arn>', '<JwtApi>/authorizers/<JwtApiJwtAuthorizer>'),
    ];
    expect(permissions(api).map(key).sort()).toEqual(expected.map(key).sort());
    expect(permissions(url)).toEqual([schedule]);
  });

  test('the function URL asks for a signature', () => {
    expect(show(resource(url, 'AWS::Lambda::Url')[1].Properties)).toEqual({
      AuthType: 'AWS_IAM',
      TargetFunctionArn: '<Sign.Arn>',
    });
  });

  test('the ca function is asked how long the CAs last, and for CRLs, four times a day', () => {
    expect(show(resource(api, 'AWS::Events::Rule')[1].Properties)).toEqual({
      Description:
        'Has the ca function log the days that its CAs have left, for an alarm, and issue the CRLs that are due',
      ScheduleExpression: 'rate(6 hours)',
      State: 'ENABLED',
      Targets: ['show', 'crl'].map((action, index) => ({
        Arn: '<Ca.Arn>',
        Id: `Target${index}`,
        Input: `{"action":"${action}"}`,
      })),
    });
  });

  test('CloudFormation has the CAs made, again when there are others, and never undone', () => {
    expect(show(resource(api, 'Custom::CountersignCas')[1])).toEqual({
      Type: 'Custom::CountersignCas',
      Properties: { ServiceToken: '<Ca.Arn>', ServiceTimeout: '600', cas: ['nodes', 'web'] },
      // The filters of the days left, so that the first line of the function is counted.
      DependsOn: [expect.stringMatching(/^Filtercadaysleftnodes/), expect.stringMatching(/^Filtercadaysleftweb/)],
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
    });
  });
});

// MiniStack and LocalStack have no domain names of API Gateway.
test('a name of the operator leads to the whole API, without a path in front of its own', () => {
  expect(show(resource(tokens, 'AWS::ApiGatewayV2::DomainName')[1].Properties)).toEqual({
    DomainName: 'sign.example.com',
    DomainNameConfigurations: [
      {
        CertificateArn: 'arn:aws:acm:eu-central-1:111122223333:certificate/c-1',
        EndpointType: 'REGIONAL',
        SecurityPolicy: 'TLS_1_2',
      },
    ],
  });
  const mapping = resource(tokens, 'AWS::ApiGatewayV2::ApiMapping')[1].Properties;
  expect(show(mapping)).toEqual({ ApiId: '<JwtApi>', DomainName: '<JwtApiDomain>', Stage: '$default' });
  for (const of of [api, url]) expect(ofType(of, 'AWS::ApiGatewayV2::DomainName')).toEqual([]);
});

test('the outputs are what a relay and an operator need', () => {
  const outputs = (of: typeof api): unknown =>
    show(Object.fromEntries(Object.entries(of.Outputs ?? {}).map(([name, { Value }]) => [name, Value])));
  const operating = (name: string, ...cas: readonly string[]) => ({
    SignRoleArn: `countersign-${name}-state<SignRole.Arn>`,
    CaRoleArn: `countersign-${name}-state<CaRole.Arn>`,
    CaKeyArns: cas.map((ca) => `countersign-${name}-state<CaKey${ca}.Arn>`).join(' '),
    AttestationsTable: `countersign-${name}-state<Attestations>`,
    OperatorPolicyArn: '<OperatorPolicy>',
  });
  const functions = { SignFunction: '<Sign>', SignLogGroup: '<SignLog>', CaFunction: '<Ca>' };
  expect(outputs(api)).toEqual({
    ...functions,
    AuthorizerFunction: '<Authorizer>',
    CertificatesTable: 'countersign-api-state<Certificates>',
    ...operating('api', 'nodes', 'web'),
    CallerRoleArn: '<CallerRole.Arn>',
    SignUrl: '<IamApi.ApiEndpoint>/v1/clusters/api',
    JwtSignUrl: '<JwtApi.ApiEndpoint>/v1/clusters/api',
  });
  expect(outputs(url)).toEqual({
    ...functions,
    CertificatesTable: 'countersign-url-state<Certificates>',
    ...operating('url', 'ca'),
    CallerRoleArn: '<CallerRole.Arn>',
    SignUrl: '<FunctionUrl.FunctionUrl>v1/clusters/url',
  });
  expect(outputs(tokens)).toEqual({
    ...functions,
    AuthorizerFunction: '<Authorizer>',
    CertificatesTable: 'countersign-tokens-state<Certificates>',
    ...operating('tokens', 'ca'),
    JwtSignUrl: 'https://sign.example.com/v1/clusters/tokens',
    JwtApiDomainTarget: '<JwtApiDomain.RegionalDomainName>',
  });
});

describe('operators may have certificates of kubeadm’s control plane signed', () => {
  const file = `version: 1
clusters:
  kubeadm:
    cas: {kubernetes: {subject: {commonName: kubernetes}}, etcd: {subject: {commonName: etcd}}}
    profiles: {kubernetes.io/kubelet-serving: {ca: kubernetes}}
    kubeadm: {cas: {kubernetes: kubernetes, etcd: etcd}, nodes: {cp-1: [10.0.0.11]}}
    access: {iam: {principals: ['arn:aws:iam::444455556666:role/relay']}}
`;
  const made = synthesise(file);
  const service = template(made, 'countersign-kubeadm');
  const statements = (id: string) =>
    statementsOf(resource(service, 'AWS::IAM::Policy', id)[1]).map((each) => plain(each, made) as typeof each);
  const keys = (...patterns: string[]) => ({ 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': patterns } });

  test('a function of its own writes their records and no others, and reads CAs and the locks of nodes and keys', () => {
    expect(statements('KubeadmPolicy').filter(({ Sid }) => Sid !== 'WriteOwnLog')).toEqual([
      {
        Sid: 'ReadCas',
        Effect: 'Allow',
        Action: 'dynamodb:GetItem',
        Resource: 'countersign-kubeadm-state<Certificates.Arn>',
        Condition: keys('ca#*'),
      },
      {
        Sid: 'KeepOperatorsCertificates',
        Effect: 'Allow',
        Action: ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'],
        Resource: 'countersign-kubeadm-state<Certificates.Arn>',
        Condition: keys('uid#kubeadm/*'),
      },
      {
        Sid: 'ReadLocks',
        Effect: 'Allow',
        Action: 'dynamodb:GetItem',
        Resource: 'countersign-kubeadm-state<Attestations.Arn>',
        Condition: keys('lock#node#*', 'lock#key#*'),
      },
    ]);
    expect(plain(service.Outputs?.['KubeadmRoleArn']?.Value, made)).toBe('countersign-kubeadm-state<KubeadmRole.Arn>');
  });

  test('it uses the keys of its CAs alone, and no principal of another service may invoke it', () => {
    const more = file.replace('etcd: {subject', 'web: {subject: {commonName: web}}, etcd: {subject');
    const state = template(synthesise(more), 'countersign-kubeadm-state');
    const uses = (ca: string) =>
      JSON.stringify(resource(state, 'AWS::KMS::Key', `CaKey${ca}`)[1].Properties['KeyPolicy']);
    for (const ca of ['kubernetes', 'etcd']) expect(uses(ca)).toContain('SignControlPlane');
    expect(uses('web')).not.toMatch(/SignControlPlane|KubeadmRole/);
    const [id] = resource(service, 'AWS::Lambda::Function', 'Kubeadm');
    const permissions = ofType(service, 'AWS::Lambda::Permission').map(([, { Properties }]) =>
      JSON.stringify(Properties),
    );
    expect(permissions.length).toBeGreaterThan(0);
    expect(permissions.filter((each) => each.includes(id))).toEqual([]);
  });

  test('the sign and ca functions may what they may without it', () => {
    const without = synthesise(file.replace(/\n {4}kubeadm: \{cas.*/, ''));
    const of = (from: typeof made) =>
      ['SignPolicy', 'CaPolicy'].map((id) =>
        statementsOf(resource(template(from, 'countersign-kubeadm'), 'AWS::IAM::Policy', id)[1]),
      );
    expect(of(made)).toEqual(of(without));
    // No profile names the CA of etcd, so its key policy does not let sign use it.
    const [, key] = resource(template(made, 'countersign-kubeadm-state'), 'AWS::KMS::Key', 'CaKeyetcd');
    const policy = JSON.stringify(key.Properties['KeyPolicy']);
    expect(policy).toContain('SignCaCertificate');
    expect(policy).not.toContain('SignCertificates');
  });
});
