/**
 * How callers reach the sign and attest functions, and how they authenticate. Each front door has its own endpoint and its
 * own authorizer, and leads to this cluster only.
 */
import { Aws, Duration, Fn, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Certificate } from 'aws-cdk-lib/aws-certificatemanager';
import {
  DomainName,
  HttpApi,
  HttpMethod,
  HttpStage,
  LogGroupLogDestination,
  SecurityPolicy,
} from 'aws-cdk-lib/aws-apigatewayv2';
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
import type { Construct } from 'constructs';
import type { ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import { callerRoleName } from '../core/configuration/resolve/deployment.ts';
import type { DeploymentConfiguration, Domain } from '../core/configuration/model/deployment.ts';

/** One route of a handler (lambdas/<to>/handler.ts). Literal paths, since IAM authorizes the called path. */
interface Route {
  readonly method: HttpMethod;
  readonly path: string;
  readonly to: 'sign' | 'attest';
}

/** The routes of one cluster. The sign handler's root health check belongs to no cluster and is left out. */
export function routesOf({ name, cas, attestation }: ClusterConfiguration): Route[] {
  const base = `/v1/clusters/${name}`;
  const get = (path: string): Route => ({ method: HttpMethod.GET, path: `${base}/${path}`, to: 'sign' });
  const toAttest = (path: string): Route => ({ method: HttpMethod.POST, path: `${base}/${path}`, to: 'attest' });
  return [
    { method: HttpMethod.POST, path: `${base}/sign`, to: 'sign' },
    ...(attestation === undefined ? [] : [toAttest('attest')]),
    ...(attestation?.retireTerminated === true ? [toAttest('attest/look')] : []),
    get('healthz'),
    get('trust-bundle'),
    get('trust-bundles'),
    ...[...cas.keys()].flatMap((ca) => [get(`trust-bundle/${ca}`), get(`crl/${ca}`)]),
    get('revoked'),
  ];
}

export interface HttpApiOptions {
  readonly cluster: ClusterConfiguration;
  readonly sign: LambdaFunction;
  /** Only with attestation. */
  readonly attest?: LambdaFunction | undefined;
  readonly throttle: NonNullable<DeploymentConfiguration['limits']['throttle']>;
  readonly logRetention: RetentionDays;
  readonly domain?: Domain | undefined;
}

export interface LoggedApi {
  readonly api: HttpApi;
  readonly accessLog: LogGroup;
  /** `https://…`, by the operator's name if there is one. */
  readonly origin: string;
  /** The operator's name. */
  readonly domain?: DomainName;
}

/** For callers that sign with AWS credentials (SigV4). */
export function createIamApi(scope: Construct, options: HttpApiOptions): LoggedApi {
  return createHttpApi(scope, 'IamApi', new HttpIamAuthorizer(), options, {
    caller: '$context.identity.userArn',
  });
}

/** For callers with a service account token. */
export function createJwtApi(scope: Construct, authorizer: LambdaFunction, options: HttpApiOptions): LoggedApi {
  const tokenAuthorizer = new HttpLambdaAuthorizer('JwtAuthorizer', authorizer, {
    authorizerName: `countersign-${options.cluster.name}`,
    responseTypes: [HttpLambdaResponseType.SIMPLE],
    // Without the header API Gateway answers 401 itself.
    identitySource: ['$request.header.Authorization'],
    // No cache, so that an expired token or a withdrawn key is refused at once.
    resultsCacheTtl: Duration.seconds(0),
  });
  return createHttpApi(scope, 'JwtApi', tokenAuthorizer, options, {
    subject: '$context.authorizer.subject',
    authorizerError: '$context.authorizer.error',
  });
}

function createHttpApi(
  scope: Construct,
  id: string,
  authorizer: IHttpRouteAuthorizer,
  { cluster, sign, attest, throttle, logRetention, domain }: HttpApiOptions,
  logged: Readonly<Record<string, string>>,
): LoggedApi {
  const api = new HttpApi(scope, id, {
    apiName: `countersign-${cluster.name}-${id === 'IamApi' ? 'iam' : 'jwt'}`,
    description: `Signs certificates of cluster ${cluster.name}`,
    createDefaultStage: false,
  });
  const integrate = (name: string, handler: LambdaFunction) =>
    new HttpLambdaIntegration(`${id}${name}`, handler, { timeout: Duration.seconds(29) });
  const signIntegration = integrate('Sign', sign);
  const attestIntegration = attest === undefined ? undefined : integrate('Attest', attest);
  for (const { method, path, to } of routesOf(cluster)) {
    const integration = to === 'sign' ? signIntegration : attestIntegration;
    if (integration === undefined) throw new Error(`no function serves ${path}`);
    api.addRoutes({ methods: [method], path, integration, authorizer });
  }
  const accessLog = new LogGroup(scope, `${id}AccessLog`, {
    // With this prefix API Gateway needs no further entry in the account's log policy. The suffix is the stack's ID: this log
    // group is kept, so a stack that is deployed again needs another name.
    logGroupName: `/aws/vendedlogs/countersign/${cluster.name}/${id}-${Fn.select(2, Fn.split('/', Aws.STACK_ID))}`,
    retention: logRetention,
    removalPolicy: RemovalPolicy.RETAIN,
  });
  const ownName = domain === undefined ? undefined : createDomain(scope, id, domain);
  new HttpStage(scope, `${id}Stage`, {
    httpApi: api,
    // The $default stage adds nothing to the path.
    stageName: '$default',
    ...(ownName === undefined ? {} : { domainMapping: { domainName: ownName } }),
    autoDeploy: true,
    throttle: { rateLimit: throttle.rate, burstLimit: throttle.burst },
    accessLogSettings: {
      destination: new LogGroupLogDestination(accessLog),
      // The caller, the time and the result. No bodies and no headers, which hold tokens.
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
  return {
    api,
    accessLog,
    origin: domain === undefined ? api.apiEndpoint : `https://${domain.name}`,
    ...(ownName === undefined ? {} : { domain: ownName }),
  };
}

/**
 * Without a path in its mapping, so that the function sees the same path as by AWS's own name. A VPC endpoint for API Gateway
 * with private DNS does not answer for this name, as it does for those under execute-api. The DNS record is the operator's.
 */
function createDomain(scope: Construct, id: string, { name, certificate }: Domain): DomainName {
  return new DomainName(scope, `${id}Domain`, {
    domainName: name,
    certificate: Certificate.fromCertificateArn(scope, `${id}Certificate`, certificate),
    securityPolicy: SecurityPolicy.TLS_1_2,
  });
}

/**
 * The role that relays assume, also from other accounts. It may call this endpoint and nothing else, so these are all
 * rights of a stolen relay credential.
 */
export function createCallerRole(scope: Construct, cluster: ClusterConfiguration, principals: readonly string[]): Role {
  return new Role(scope, 'CallerRole', {
    roleName: callerRoleName(cluster.name),
    description: `Calls the sign endpoint of cluster ${cluster.name}`,
    // With sts:TagSession: EKS Pod Identity passes session tags, and AssumeRole fails without the right.
    assumedBy: new CompositePrincipal(...principals.map((arn) => new ArnPrincipal(arn))).withSessionTags(),
  });
}

/** One ARN per route of the API's stage. */
export function allowApi(scope: Construct, role: Role, api: HttpApi, cluster: ClusterConfiguration): void {
  new Policy(scope, 'CallerPolicy', {
    roles: [role],
    statements: [
      new PolicyStatement({
        sid: 'CallOwnEndpoint',
        actions: ['execute-api:Invoke'],
        resources: routesOf(cluster).map(({ method, path }) =>
          Stack.of(scope).formatArn({
            service: 'execute-api',
            resource: api.apiId,
            resourceName: `$default/${method}${path}`,
          }),
        ),
      }),
    ],
  });
}

/** `grantInvokeUrl` is not used: the value of its condition is not a string, and some implementations refuse it. */
export function allowUrls(scope: Construct, role: Role, functions: readonly LambdaFunction[]): void {
  const resources = functions.map(({ functionArn }) => functionArn);
  new Policy(scope, 'CallerPolicy', {
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
        // Invoking the function directly would let the caller forge the whole event, including its identity.
        conditions: { Bool: { 'lambda:InvokedViaFunctionUrl': 'true' } },
      }),
    ],
  });
}

/** Each function has its own URL: one for sign, and with attestation one for attest. */
export function createFunctionUrl(scope: Construct, id: string, of: LambdaFunction): FunctionUrl {
  return new FunctionUrl(scope, id, { function: of, authType: FunctionUrlAuthType.AWS_IAM });
}
