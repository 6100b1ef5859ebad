/** The part of a cluster that can be deleted and deployed again at any time: functions, front doors, alarms. */
import { CfnOutput, CustomResource, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type { App, StackProps } from 'aws-cdk-lib';
import { Rule, RuleTargetInput, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction as LambdaTarget } from 'aws-cdk-lib/aws-events-targets';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { bundleAccess, bundleCallers, bundleCluster } from '../core/configuration/bundled-configuration.ts';
import type { CallersAllowed } from '../core/configuration/bundled-configuration.ts';
import type { ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import { callerRoleName, stackNames } from '../core/configuration/resolve/deployment.ts';
import { environmentNames } from '../adapters/lambda/environment.ts';
import { createAttest, createOperatorPolicy } from './attest.ts';
import { allowApi, allowUrls, createCallerRole, createFunctionUrl, createIamApi, createJwtApi } from './front-door.ts';
import type { LoggedApi } from './front-door.ts';
import { createFunction } from './functions.ts';
import type { Service, ServiceFunction, Site } from './functions.ts';
import { caStatusInterval, createAlarms } from './observability/alarms.ts';
import { createDashboard } from './observability/dashboard.ts';
import { countLines } from './observability/log-metrics.ts';
import type { ClusterState } from './state-stack.ts';
import { allowItems } from './table-rights.ts';

interface ServiceOptions extends Site {
  readonly state: ClusterState;
}

export function createServiceStack(app: App, options: ServiceOptions, props: StackProps): Stack {
  const { cluster, deployment } = options;
  const stack = new Stack(app, stackNames(cluster.name).service, {
    ...props,
    description: `Countersign, cluster ${cluster.name}: signs certificates`,
  });
  const { attestation } = options.state;
  const attest = attestation && createAttest(stack, options, attestation, callersOf(options));
  const sign = createSign(stack, options, attest);
  const ca = createCa(stack, options);
  const { authorizer, apis } = createFrontDoor(stack, { sign, attest }, options);
  const functions = new Map<Service, ServiceFunction>([
    ['sign', sign],
    ...(attest === undefined ? [] : [['attest', attest] as const]),
    ...(authorizer === undefined ? [] : [['authorizer', authorizer] as const]),
    ['ca', ca],
  ]);
  const watched = { functions, apis, functionUrls: deployment.frontDoor === 'functionUrl' };
  // The ca function logs the days left when the stack is deployed. The filters exist by then.
  createCas(stack, ca, cluster).node.addDependency(...countLines(stack, cluster, watched));
  const alarms = createAlarms(stack, { cluster, alarms: deployment.alarms, ...watched });
  const { table, attestations } = options.state;
  const tables = { certificates: table.tableName, attestations: attestations.tableName };
  if (deployment.dashboard) createDashboard(stack, { cluster: cluster.name, alarms, tables, ...watched });
  const output = (id: string, value: string, description: string) => new CfnOutput(stack, id, { value, description });
  output('CertificatesTable', table.tableName, 'The ledger, and the CA certificates');
  output('SignFunction', sign.function.functionName, 'Signs');
  output('SignLogGroup', sign.logGroup.logGroupName, 'The log of the sign function; countersign trace reads it');
  output('CaFunction', ca.function.functionName, 'Makes CA certificates; countersign ca init calls it');
  const logs = [sign, ...(attest === undefined ? [] : [attest])].map(({ logGroup }) => logGroup);
  const policy = createOperatorPolicy(stack, cluster, { attestations, certificates: table, logs });
  output('AttestationsTable', attestations.tableName, 'Locks, and which machine a node name belongs to');
  output(
    'OperatorPolicyArn',
    policy.managedPolicyArn,
    'For operators who run countersign lock, tofu, machines and trace',
  );
  if (attest !== undefined) {
    output('AttestFunction', attest.function.functionName, 'Proves machines');
    output(
      'AttestLogGroup',
      attest.logGroup.logGroupName,
      'The log of the attest function; countersign trace reads it',
    );
  }
  if (authorizer !== undefined) output('AuthorizerFunction', authorizer.function.functionName, 'Checks tokens');
  return stack;
}

/** The callers that sign and attest answer, even if IAM policies of the account let others through a front door. */
function callersOf({ cluster, deployment: { access } }: ServiceOptions): CallersAllowed {
  return {
    cluster: cluster.name,
    ...(access.iam === undefined ? {} : { role: callerRoleName(cluster.name) }),
    ...(access.jwt === undefined ? {} : { subjects: access.jwt.subjects }),
  };
}

/** The part of the environment that sign and ca have in common. */
function environment(stack: Stack, { cluster, state }: ServiceOptions): Record<string, string> {
  return {
    [environmentNames.cluster]: cluster.name,
    [environmentNames.certificatesTable]: state.table.tableName,
    [environmentNames.caKeys]: stack.toJsonString(Object.fromEntries(state.keys)),
    [environmentNames.logLevel]: 'info',
  };
}

/** Its rights on the CA keys are in the key policies only (lib/key-policy.ts). */
function createSign(stack: Stack, options: ServiceOptions, attest: ServiceFunction | undefined): ServiceFunction {
  const { cluster, state } = options;
  const { table, attestations } = state;
  const profiles = [...cluster.profiles.values()];
  // In audit mode sign needs no verdict. Otherwise it invokes attest for a request without one.
  const invoked = profiles.some((profile) => profile.attestation?.mode === 'enforce') ? attest?.function : undefined;
  const freshKeys = profiles.some((profile) => profile.freshKeys === true);
  return createFunction(stack, 'sign', options, {
    description: `Signs certificates of cluster ${cluster.name}`,
    role: state.signRole,
    statements: [
      allowItems('ReadRequestsAndCas', table, 'GetItem', ['uid', 'ca']),
      // Sign reads CA items and cannot write them, so it cannot replace a CA.
      allowItems('WriteRequests', table, ['PutItem', 'UpdateItem'], ['uid']),
      ...(freshKeys ? [allowItems('RememberKeys', table, 'UpdateItem', ['spki'])] : []),
      ...(invoked === undefined
        ? [allowItems('ReadLocks', attestations, 'GetItem', ['lock'])]
        : [
            allowItems('ReadLocksAndVerdicts', attestations, 'GetItem', ['lock', 'verdict', 'id']),
            new PolicyStatement({
              sid: 'AskAttest',
              actions: ['lambda:InvokeFunction'],
              resources: [invoked.functionArn],
            }),
          ]),
    ],
    environment: {
      ...environment(stack, options),
      [environmentNames.attestationsTable]: attestations.tableName,
      ...(invoked === undefined ? {} : { [environmentNames.attestFunction]: invoked.functionName }),
    },
    rules: bundleCluster(cluster),
    constants: { __COUNTERSIGN_CALLERS__: bundleCallers(callersOf(options)) },
    reserves: true,
  });
}

/** No front door leads to it. CloudFormation, its schedule and operators with the IAM right invoke it. */
function createCa(stack: Stack, options: ServiceOptions): ServiceFunction {
  const { cluster, state } = options;
  const ca = createFunction(stack, 'ca', options, {
    description: `Makes the CA certificates of cluster ${cluster.name}`,
    role: state.caRole,
    statements: [allowItems('KeepCas', state.table, ['GetItem', 'PutItem'], ['ca'])],
    environment: environment(stack, options),
    rules: bundleCluster(cluster),
    // Of invocations at the same time one creates a CA, by a conditional write (core/ca/create-authority.ts).
    reserves: false,
    // Longer than its pauses while IAM does not know a new role everywhere (lambdas/ca/handler.ts).
    timeout: Duration.minutes(2),
  });
  new Rule(stack, 'CaStatus', {
    description: 'Has the ca function log the days that its CAs have left, for an alarm',
    schedule: Schedule.rate(caStatusInterval),
    targets: [new LambdaTarget(ca.function, { event: RuleTargetInput.fromObject({ action: 'show' }) })],
  });
  return ca;
}

/** Creates missing CA certificates while the stack is deployed. */
function createCas(stack: Stack, ca: ServiceFunction, { cas }: ClusterConfiguration): CustomResource {
  return new CustomResource(stack, 'Cas', {
    resourceType: 'Custom::CountersignCas',
    serviceToken: ca.function.functionArn,
    // Longer than Lambda's three tries of an asynchronous invocation, with its pauses of one and two minutes.
    serviceTimeout: Duration.minutes(10),
    // Deleting the stack deletes no CA, so there is nothing to invoke.
    removalPolicy: RemovalPolicy.RETAIN,
    // Changes, and so invokes the function again, when a CA is added.
    properties: { cas: [...cas.keys()].sort() },
  });
}

interface FrontDoor {
  readonly authorizer?: ServiceFunction;
  readonly apis: ReadonlyMap<'iam' | 'jwt', LoggedApi>;
}

function createFrontDoor(
  stack: Stack,
  behind: { readonly sign: ServiceFunction; readonly attest: ServiceFunction | undefined },
  site: Site,
): FrontDoor {
  const { cluster, deployment } = site;
  const sign = behind.sign.function;
  const attest = behind.attest?.function;
  const { access, domains = {}, frontDoor, limits } = deployment;
  const base = `v1/clusters/${cluster.name}`;
  const output = (id: string, value: string, description: string) => new CfnOutput(stack, id, { value, description });
  const apis = new Map<'iam' | 'jwt', LoggedApi>();
  const role = access.iam === undefined ? undefined : createCallerRole(stack, cluster, access.iam.principals);
  if (role !== undefined) output('CallerRoleArn', role.roleArn, "The relay's COUNTERSIGN_CALLER_ROLE");

  if (frontDoor === 'functionUrl') {
    if (access.jwt !== undefined) throw new Error(`${cluster.name}: a function URL cannot check tokens`);
    if (role !== undefined) allowUrls(stack, role, attest === undefined ? [sign] : [sign, attest]);
    const addUrl = (id: string, of: LambdaFunction): string => `${createFunctionUrl(stack, id, of).url}${base}`;
    output('SignUrl', addUrl('FunctionUrl', sign), "The relay's COUNTERSIGN_URL");
    if (attest !== undefined)
      output('AttestUrl', addUrl('AttestFunctionUrl', attest), "The relay's COUNTERSIGN_ATTEST_URL");
    return { apis };
  }

  if (limits.throttle === undefined) throw new Error(`${cluster.name}: an HTTP API needs a throttle`);
  const api = { cluster, sign, attest, throttle: limits.throttle, logRetention: deployment.logRetentionDays };
  if (role !== undefined) {
    const iamApi = createIamApi(stack, { ...api, domain: domains.iam });
    allowApi(stack, role, iamApi.api, cluster);
    output('SignUrl', `${iamApi.origin}/${base}`, "The relay's COUNTERSIGN_URL");
    apis.set('iam', iamApi);
  }
  if (access.jwt === undefined) return { apis };
  const description = `Checks the tokens of callers of cluster ${cluster.name}`;
  const authorizer = createFunction(stack, 'authorizer', site, {
    description,
    role: new Role(stack, 'AuthorizerRole', { assumedBy: new ServicePrincipal('lambda.amazonaws.com'), description }),
    statements: [],
    environment: {},
    rules: bundleAccess({ cluster: cluster.name, jwt: access.jwt }),
    reserves: true,
  });
  const jwtApi = createJwtApi(stack, authorizer.function, { ...api, domain: domains.jwt });
  output(
    'JwtSignUrl',
    `${jwtApi.origin}/${base}`,
    'COUNTERSIGN_URL of a relay with --token-file; with /sign at its end, of gcp-controller-manager',
  );
  apis.set('jwt', jwtApi);
  return { authorizer, apis };
}
