/** The functions of a cluster, except attest, and the ways in to them. */
import { CustomResource, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Rule, RuleTargetInput, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction as LambdaTarget } from 'aws-cdk-lib/aws-events-targets';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import {
  bundleAccess,
  bundleAuthorities,
  bundleCallers,
  bundleCluster,
  bundleKubeadm,
} from '../core/configuration/bundled-configuration.ts';
import type { CallersAllowed } from '../core/configuration/bundled-configuration.ts';
import type { ClusterConfiguration } from '../core/configuration/model/cluster.ts';
import { callerRoleName } from '../core/configuration/resolve/deployment.ts';
import { environmentNames } from '../adapters/lambda/environment.ts';
import { allowApi, allowUrls, createCallerRole, createFunctionUrl, createIamApi, createJwtApi } from './front-door.ts';
import type { LoggedApi } from './front-door.ts';
import { createFunction } from './functions.ts';
import type { ServiceFunction, Site } from './functions.ts';
import { caStatusInterval } from './observability/alarms.ts';
import type { SigningState } from './signing-state.ts';
import { allowIndex, allowItems } from './table-rights.ts';
import { certificatesTable, itemKey } from '../adapters/dynamodb/table.ts';
import { kubeadmUidPrefix } from '../core/ports/certificate-ledger.ts';

export interface ServiceOptions extends Site {
  readonly state: SigningState;
}

/** The callers that sign and attest answer, even if IAM policies of the account let others through a front door. */
export function callersOf({ cluster, deployment: { access } }: ServiceOptions): CallersAllowed {
  return {
    cluster: cluster.name,
    ...(access.iam === undefined ? {} : { role: callerRoleName(cluster.name) }),
    ...(access.jwt === undefined ? {} : { subjects: access.jwt.subjects }),
  };
}

/** The part of the environment that sign and ca have in common. */
function environment(scope: Construct, { cluster, state }: ServiceOptions): Record<string, string> {
  return {
    [environmentNames.cluster]: cluster.name,
    [environmentNames.certificatesTable]: state.certificates.tableName,
    [environmentNames.caKeys]: Stack.of(scope).toJsonString(Object.fromEntries(state.caKeys)),
    [environmentNames.logLevel]: 'info',
  };
}

/** Its rights on the CA keys are in the key policies only (lib/key-policy.ts). */
export function createSign(
  scope: Construct,
  options: ServiceOptions,
  attest: ServiceFunction | undefined,
): ServiceFunction {
  const { cluster, state } = options;
  const { certificates, attestations } = state;
  const profiles = [...cluster.profiles.values()];
  // In audit mode sign needs no verdict. Otherwise it invokes attest for a request without one.
  const invoked = profiles.some((profile) => profile.attestation?.mode === 'enforce') ? attest?.function : undefined;
  const freshKeys = profiles.some((profile) => profile.freshKeys === true);
  return createFunction(scope, 'sign', options, {
    description: `Signs certificates of cluster ${cluster.name}`,
    role: state.signRole,
    statements: [
      allowItems('ReadRequestsCasAndCrls', certificates, 'GetItem', ['uid', 'ca', 'crl']),
      // Sign reads CA items and cannot write them, so it cannot replace a CA.
      allowItems('WriteRequests', certificates, ['PutItem', 'UpdateItem'], ['uid']),
      ...(freshKeys ? [allowItems('RememberKeys', certificates, 'UpdateItem', ['spki'])] : []),
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
      ...environment(scope, options),
      [environmentNames.attestationsTable]: attestations.tableName,
      ...(invoked === undefined ? {} : { [environmentNames.attestFunction]: invoked.functionName }),
    },
    rules: bundleCluster(cluster),
    constants: { __COUNTERSIGN_CALLERS__: bundleCallers(callersOf(options)) },
    reserves: true,
  });
}

/** No front door leads to it. CloudFormation, its schedule and operators with the IAM right invoke it. */
export function createCa(scope: Construct, options: ServiceOptions): ServiceFunction {
  const { cluster, state } = options;
  const { certificates } = state;
  const ca = createFunction(scope, 'ca', options, {
    description: `Makes the CA certificates of cluster ${cluster.name}`,
    role: state.caRole,
    statements: [
      allowItems('KeepCas', certificates, ['GetItem', 'PutItem'], ['ca']),
      allowItems('KeepCrls', certificates, ['GetItem', 'PutItem', 'DeleteItem'], ['crl']),
      // A record of each signature, which it can write and not delete.
      allowItems('RecordSignatures', certificates, 'PutItem', ['signed']),
      // It reads revocations and writes none: only operators revoke.
      allowItems('ReadRevocations', certificates, 'GetItem', ['revoked']),
      allowIndex('ListRevocations', certificates, certificatesTable.indexes.expiry.name, ['revoked']),
    ],
    environment: environment(scope, options),
    rules: bundleAuthorities(cluster),
    // Of invocations at the same time one creates a CA, by a conditional write (core/ca/create-authority.ts).
    reserves: false,
    // Longer than its pauses while IAM does not know a new role everywhere (lambdas/ca/handler.ts).
    timeout: Duration.minutes(2),
  });
  const target = (action: 'show' | 'crl'): LambdaTarget =>
    new LambdaTarget(ca.function, { event: RuleTargetInput.fromObject({ action }) });
  new Rule(scope, 'CaStatus', {
    description:
      'Has the ca function log the days that its CAs have left, for an alarm, and issue the CRLs that are due',
    schedule: Schedule.rate(caStatusInterval),
    targets: [target('show'), target('crl')],
  });
  return ca;
}

/** Undefined unless operators may have certificates of kubeadm's control plane signed. Operators with the IAM right invoke it, and nothing else. */
export function createKubeadm(scope: Construct, options: ServiceOptions): ServiceFunction | undefined {
  const { cluster, state } = options;
  const { certificates, attestations, kubeadmRole } = state;
  if (kubeadmRole === undefined) return undefined;
  return createFunction(scope, 'kubeadm', options, {
    description: `Signs certificates of the control plane of cluster ${cluster.name}`,
    role: kubeadmRole,
    statements: [
      allowItems('ReadCas', certificates, 'GetItem', ['ca']),
      // The records of what operators have signed, and no record of a request of the cluster.
      allowItems(
        'KeepOperatorsCertificates',
        certificates,
        ['GetItem', 'PutItem', 'UpdateItem'],
        [itemKey('uid', kubeadmUidPrefix)],
      ),
      allowItems('ReadLocks', attestations, 'GetItem', ['lock#node', 'lock#key']),
    ],
    environment: {
      ...environment(scope, options),
      [environmentNames.attestationsTable]: attestations.tableName,
    },
    rules: bundleKubeadm(cluster),
    reserves: false,
  });
}

/** Creates missing CA certificates while the stack is deployed. */
export function createCas(scope: Construct, ca: ServiceFunction, { cas }: ClusterConfiguration): CustomResource {
  return new CustomResource(scope, 'Cas', {
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

/** Where callers reach the functions, with the path of the cluster. */
export interface FrontDoor {
  readonly callerRole?: Role;
  readonly signUrl?: string;
  readonly attestUrl?: string;
  readonly jwtSignUrl?: string;
  readonly authorizer?: ServiceFunction;
  readonly apis: ReadonlyMap<'iam' | 'jwt', LoggedApi>;
}

export function createFrontDoor(
  scope: Construct,
  behind: { readonly sign: ServiceFunction; readonly attest: ServiceFunction | undefined },
  site: Site,
): FrontDoor {
  const { cluster, deployment } = site;
  const sign = behind.sign.function;
  const attest = behind.attest?.function;
  const { access, domains = {}, frontDoor, limits } = deployment;
  const base = `v1/clusters/${cluster.name}`;
  const callerRole = access.iam === undefined ? undefined : createCallerRole(scope, cluster, access.iam.principals);

  if (frontDoor === 'functionUrl') {
    if (access.jwt !== undefined) throw new Error(`${cluster.name}: a function URL cannot check tokens`);
    if (callerRole !== undefined) allowUrls(scope, callerRole, attest === undefined ? [sign] : [sign, attest]);
    const addUrl = (id: string, of: LambdaFunction): string => `${createFunctionUrl(scope, id, of).url}${base}`;
    return {
      ...(callerRole === undefined ? {} : { callerRole }),
      signUrl: addUrl('FunctionUrl', sign),
      ...(attest === undefined ? {} : { attestUrl: addUrl('AttestFunctionUrl', attest) }),
      apis: new Map(),
    };
  }

  if (limits.throttle === undefined) throw new Error(`${cluster.name}: an HTTP API needs a throttle`);
  const api = { cluster, sign, attest, throttle: limits.throttle, logRetention: deployment.logRetentionDays };
  const apis = new Map<'iam' | 'jwt', LoggedApi>();
  const urlOf = (of: LoggedApi): string => `${of.origin}/${base}`;
  const iamApi = callerRole === undefined ? undefined : createIamApi(scope, { ...api, domain: domains.iam });
  if (callerRole !== undefined && iamApi !== undefined) {
    allowApi(scope, callerRole, iamApi.api, cluster);
    apis.set('iam', iamApi);
  }
  const byRole = callerRole === undefined || iamApi === undefined ? {} : { callerRole, signUrl: urlOf(iamApi) };
  if (access.jwt === undefined) return { ...byRole, apis };
  const description = `Checks the tokens of callers of cluster ${cluster.name}`;
  const authorizer = createFunction(scope, 'authorizer', site, {
    description,
    role: new Role(scope, 'AuthorizerRole', { assumedBy: new ServicePrincipal('lambda.amazonaws.com'), description }),
    statements: [],
    environment: {},
    rules: bundleAccess({ cluster: cluster.name, jwt: access.jwt }),
    reserves: true,
  });
  const jwtApi = createJwtApi(scope, authorizer.function, { ...api, domain: domains.jwt });
  apis.set('jwt', jwtApi);
  return { ...byRole, jwtSignUrl: urlOf(jwtApi), authorizer, apis };
}
