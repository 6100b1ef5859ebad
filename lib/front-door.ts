/**
 * How callers reach the sign and attest functions, and who they are. Nothing here is open: each way in has an authorizer of its own,
 * on an endpoint of its own, and each opens this one cluster.
 */
import { Aws, Duration, Fn, RemovalPolicy } from 'aws-cdk-lib';
import type { Stack } from 'aws-cdk-lib';
import { HttpApi, HttpMethod, HttpStage, LogGroupLogDestination } from 'aws-cdk-lib/aws-apigatewayv2';
import type { IHttpRouteAuthorizer } from 'aws-cdk-lib/aws-apigatewayv2';
import {
  HttpIamAuthorizer,
  HttpLambdaAuthorizer,
  HttpLambdaResponseType,
} from 'aws-cdk-lib/aws-apigatewayv2-authorizers';
import { HttpLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations';
import { AccessLogFormat } from 'aws-cdk-lib/aws-apigateway';
import { ArnPrincipal, CompositePrincipal, Policy, PolicyStatement, Role } from 'aws-cdk-lib/aws-iam';
import { FunctionUrl, FunctionUrlAuthType } from 'aws-cdk-lib/aws-lambda';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import { callerRoleName } from '../core/configuration/resolve/deployment.ts';
import type { DeploymentConfiguration } from '../core/configuration/model/deployment.ts';

/** One route of a handler (lambdas/<to>/handler.ts); literal, since IAM is asked about the path that was called. */
interface Route {
  readonly method: HttpMethod;
  readonly path: string;
  readonly to: 'sign' | 'attest';
}

/** All that is about one cluster. The sign handler's root health check is left out: it is about none. */
export function routesOf({ name, cas, attestation }: ClusterConfiguration): Route[] {
  const base = `/v1/clusters/${name}`;
  const get = (path: string): Route => ({ method: HttpMethod.GET, path: `${base}/${path}`, to: 'sign' });
  return [
    { method: HttpMethod.POST, path: `${base}/sign`, to: 'sign' },
    ...(attestation === undefined ? [] : [{ method: HttpMethod.POST, path: `${base}/attest`, to: 'attest' } as const]),
    get('healthz'),
    get('trust-bundle'),
    ...[...cas.keys()].map((ca) => get(`trust-bundle/${ca}`)),
  ];
}

export interface HttpApiOptions {
  readonly cluster: ClusterConfiguration;
  readonly sign: LambdaFunction;
  /** Where machines prove themselves. */
  readonly attest?: LambdaFunction | undefined;
  readonly throttle: NonNullable<DeploymentConfiguration['limits']['throttle']>;
  readonly logRetention: RetentionDays;
}

/** Callers who sign with AWS credentials (SigV4). */
export function createIamApi(stack: Stack, options: HttpApiOptions): HttpApi {
  return createHttpApi(stack, 'IamApi', new HttpIamAuthorizer(), options, {
    caller: '$context.identity.userArn',
  });
}

/** Callers who bring a service-account token. */
export function createJwtApi(stack: Stack, authorizer: LambdaFunction, options: HttpApiOptions): HttpApi {
  const checked = new HttpLambdaAuthorizer('JwtAuthorizer', authorizer, {
    authorizerName: `countersign-${options.cluster.name}`,
    responseTypes: [HttpLambdaResponseType.SIMPLE],
    // Without the header API Gateway says 401 by itself.
    identitySource: ['$request.header.Authorization'],
    // A token that has expired or whose key was withdrawn is refused at once, not when a cache forgets it.
    resultsCacheTtl: Duration.seconds(0),
  });
  return createHttpApi(stack, 'JwtApi', checked, options, {
    subject: '$context.authorizer.subject',
    authorizerError: '$context.authorizer.error',
  });
}

function createHttpApi(
  stack: Stack,
  id: string,
  authorizer: IHttpRouteAuthorizer,
  { cluster, sign, attest, throttle, logRetention }: HttpApiOptions,
  logged: Readonly<Record<string, string>>,
): HttpApi {
  const api = new HttpApi(stack, id, {
    apiName: `countersign-${cluster.name}-${id === 'IamApi' ? 'iam' : 'jwt'}`,
    description: `Signs certificates of cluster ${cluster.name}`,
    createDefaultStage: false,
  });
  const integrate = (name: string, handler: LambdaFunction) =>
    new HttpLambdaIntegration(`${id}${name}`, handler, { timeout: Duration.seconds(29) });
  const signs = integrate('Sign', sign);
  const attests = attest === undefined ? undefined : integrate('Attest', attest);
  for (const { method, path, to } of routesOf(cluster)) {
    const integration = to === 'sign' ? signs : attests;
    if (integration === undefined) throw new Error(`nothing answers ${path}`);
    api.addRoutes({ methods: [method], path, integration, authorizer });
  }
  const accessLog = new LogGroup(stack, `${id}AccessLog`, {
    // API Gateway writes to groups under this prefix without one more entry in the account's one log policy. The end
    // makes a stack that is deployed again another log, since this one is kept.
    logGroupName: `/aws/vendedlogs/countersign/${cluster.name}/${id}-${Fn.select(2, Fn.split('/', Aws.STACK_ID))}`,
    retention: logRetention,
    removalPolicy: RemovalPolicy.RETAIN,
  });
  new HttpStage(stack, `${id}Stage`, {
    httpApi: api,
    // The stage that adds nothing to the path.
    stageName: '$default',
    autoDeploy: true,
    throttle: { rateLimit: throttle.rate, burstLimit: throttle.burst },
    accessLogSettings: {
      destination: new LogGroupLogDestination(accessLog),
      // Who, when and with what result. Neither bodies nor headers: tokens are in those.
      format: AccessLogFormat.custom(
        JSON.stringify({
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
        }),
      ),
    },
  });
  return api;
}

/**
 * The role that relays assume, in other accounts too. It may call this endpoint and do nothing else, so what a stolen
 * relay credential is good for is written here in full.
 */
export function createCallerRole(stack: Stack, cluster: ClusterConfiguration, principals: readonly string[]): Role {
  return new Role(stack, 'CallerRole', {
    roleName: callerRoleName(cluster.name),
    description: `Calls the sign endpoint of cluster ${cluster.name}`,
    // With session tags: EKS Pod Identity passes its own along, and AssumeRole fails where they are not permitted.
    assumedBy: new CompositePrincipal(...principals.map((arn) => new ArnPrincipal(arn))).withSessionTags(),
  });
}

/** The API's stage, each route by itself. */
export function allowApi(stack: Stack, role: Role, api: HttpApi, cluster: ClusterConfiguration): void {
  new Policy(stack, 'CallerPolicy', {
    roles: [role],
    statements: [
      new PolicyStatement({
        sid: 'CallOwnEndpoint',
        actions: ['execute-api:Invoke'],
        resources: routesOf(cluster).map(({ method, path }) =>
          stack.formatArn({ service: 'execute-api', resource: api.apiId, resourceName: `$default/${method}${path}` }),
        ),
      }),
    ],
  });
}

/** Written by hand, not `grantInvokeUrl`: the condition's value must be text to be understood everywhere. */
export function allowUrls(stack: Stack, role: Role, functions: readonly LambdaFunction[]): void {
  const resources = functions.map(({ functionArn }) => functionArn);
  new Policy(stack, 'CallerPolicy', {
    roles: [role],
    statements: [
      new PolicyStatement({
        sid: 'CallOwnUrl',
        actions: ['lambda:InvokeFunctionUrl'],
        resources,
        conditions: { StringEquals: { 'lambda:FunctionUrlAuthType': 'AWS_IAM' } },
      }),
      new PolicyStatement({
        sid: 'OnlyByUrl',
        actions: ['lambda:InvokeFunction'],
        resources,
        // Invoking the function itself would let the caller make up the whole event, who it is included.
        conditions: { Bool: { 'lambda:InvokedViaFunctionUrl': 'true' } },
      }),
    ],
  });
}

/** A function URL is one function's: where machines prove themselves there are two. */
export function createFunctionUrl(stack: Stack, id: string, of: LambdaFunction): FunctionUrl {
  return new FunctionUrl(stack, id, { function: of, authType: FunctionUrlAuthType.AWS_IAM });
}
